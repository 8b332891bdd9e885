"""The constituent form: the tree to the left of the text, its leaves from top to bottom.

A constituent runs along the line of its head EDU (that of its leftmost nucleus), and its other children branch off.
So every line carries at most one relation, and labels cannot collide whatever the shape of the tree. Binarized lists
are drawn as lists, unless the document's arcs say that they are nested.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from docmt.discourse.constituents import SPAN, Node, restore_nary
from docmt.discourse.dependencies import depths, nary_to_dependencies
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.tree_drawing.edu_rows import LABEL_SIZE, Row, TreeDrawing, compose, lay_out
from docmt.discourse.tree_drawing.svg import COLORS, dot, edged_text, escape, line, text_width
from docmt.errors import UserError

LEVEL_WIDTH, LEADER, MARK_SIZE = 21.0, 26.0, 8.5
GOOD_WIDTH = 700.0
LABEL_ROOMS = (200.0, 90.0, 55.0, LEVEL_WIDTH)
"""Space for a relation before the next constituent begins; the widest that fits `GOOD_WIDTH` is used."""
LEGEND = (
    "N nucleus, S satellite; double lines join nuclei; a line continues to its nucleus; "
    "one color per step from the root."
)


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A constituent on the page: x of its start (0 at the text, negative to the left), and its head EDU."""

    x: float
    head: int
    node: Node
    children: tuple["PlacedNode", ...]


def draw_constituents(document: DiscourseDocument) -> str:
    """Draw the constituent tree of a document as SVG.

    Raises UserError when the document has EDUs but no constituent tree.
    """
    rows = lay_out(document)
    if document.tree is None and rows:
        raise UserError(f"discourse of {document.id!r}: it has no constituent tree; draw it with --form dependency")
    tree = _tree(_meant_tree(document, document.tree), rows) if document.tree else TreeDrawing(0.0, ())
    return compose(document, rows, tree, legend=LEGEND)


def _meant_tree(document: DiscourseDocument, tree: Node) -> Node:
    """Restore binarized lists, unless the document's arcs say that lists are nested."""
    flat = restore_nary(tree)
    is_flat = document.arcs is None or nary_to_dependencies(flat, len(document.edus)).heads == document.arcs.heads
    return flat if is_flat else tree


def _tree(tree: Node, rows: Sequence[Row]) -> TreeDrawing:
    rooms = (place_constituents(tree, room) for room in LABEL_ROOMS)
    places = next((found for found in rooms if -found[-1].x <= GOOD_WIDTH), None)
    places = places or place_constituents(tree, LABEL_ROOMS[-1])
    steps = depths(nary_to_dependencies(tree, len(rows)).heads).tolist()
    colors = [COLORS[step % len(COLORS)] for step in steps]
    root = places[-1]
    elements = [dot(root.x, rows[root.head].middle, 4, colors[root.head])]
    # Labels come last, so that their white outline keeps them readable on lines.
    labels: list[str] = []
    for place in places:
        if place.node.is_leaf:
            y = rows[place.head].middle
            elements.append(line([(place.x, y), (-2, y)], colors[place.head], width=0.8, extra='opacity="0.55"'))
        else:
            elements += _branches(place, rows, colors)
            labels += _labels(place, rows, colors)
    return TreeDrawing(14 - root.x, [*elements, *labels])


def place_constituents(tree: Node, room: float) -> list[PlacedNode]:
    """Place constituents, children before parents, far enough to the left for lines and labels.

    `room` is the largest space kept free for a relation above another constituent.
    """
    places: list[PlacedNode] = []

    def put(node: Node, below: list[PlacedNode]) -> PlacedNode:
        if node.is_leaf:
            place = PlacedNode(-LEADER, node.first, node, ())
        else:
            head = node.nuclearity.index("N")
            needs = [
                LEVEL_WIDTH if i == head else max(LEVEL_WIDTH, _label_room(relation, child, room))
                for i, (relation, child) in enumerate(zip(node.relations, below, strict=True))
            ]
            x = min(child.x - need for child, need in zip(below, needs, strict=True))
            place = PlacedNode(x, below[head].head, node, tuple(below))
        places.append(place)
        return place

    tree.fold(put)
    return places


def _label_room(relation: str, child: PlacedNode, room: float) -> float:
    """Compute the space for a relation; that of a leaf always gets enough, or it would run into the text."""
    width = 14 + 1.05 * text_width(relation, LABEL_SIZE)
    return width - LEADER if child.node.is_leaf else min(room, width)


def _branches(place: PlacedNode, rows: Sequence[Row], colors: Sequence[str]) -> list[str]:
    """Draw a horizontal line to each child and a vertical one that joins them; double between nuclei."""
    node, x, y = place.node, place.x, rows[place.head].middle
    about = f"EDUs {node.first + 1} to {node.last + 1}: {node.relation}, {node.nuclearity}"
    elements = [f"<g><title>{escape(about)}</title>"]
    for child, letter in zip(place.children, node.nuclearity, strict=True):
        target = rows[child.head].middle
        if child.head == place.head:
            elements.append(line([(x, y), (child.x, y)], colors[place.head], width=2))
        elif letter == "S":
            elements.append(line([(x, y), (x, target), (child.x, target)], colors[child.head], width=1.2))
        else:
            elements.append(line([(x, y), (x, target), (child.x, target)], colors[child.head], width=4))
            elements.append(line([(x, y), (x, target), (child.x, target)], "#ffffff", width=1.6))
    return [*elements, "</g>"]


def _labels(place: PlacedNode, rows: Sequence[Row], colors: Sequence[str]) -> list[str]:
    """Write N or S below the line of each child, and its relation above."""
    node, x = place.node, place.x
    elements = []
    for child, letter, relation in zip(place.children, node.nuclearity, node.relations, strict=True):
        y, color = rows[child.head].middle, colors[child.head]
        elements += edged_text(x + 5, y + 9.5, letter, size=MARK_SIZE, color=color)
        if child.head != place.head and relation != SPAN:
            elements += edged_text(x + 7, y - 3.5, relation, size=LABEL_SIZE, color=color)
    return elements
