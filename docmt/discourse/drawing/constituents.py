"""The constituent form: the tree at the left, its leaves from top to bottom at the text.

A constituent runs along the line of its head EDU (that of its leftmost nucleus), and its other children hang on it.
So every line carries one relation at most, and labels cannot meet whatever the shape of the tree. Lists that were
binarised are drawn as the lists they are, unless the document's arcs say otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from docmt.discourse.dependencies import depths, nary_to_dependencies
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.drawing.page import LABEL_SIZE, Row, TreeDrawing, compose, lay_out
from docmt.discourse.drawing.svg import COLOURS, dot, edged_text, escape, line, text_width
from docmt.discourse.trees import SPAN, Node, restore_nary
from docmt.errors import UserError

LEVEL_WIDTH, LEADER, MARK_SIZE = 21.0, 26.0, 8.5
GOOD_WIDTH = 700.0
LABEL_ROOMS = (200.0, 90.0, 55.0, LEVEL_WIDTH)
"""Room kept free for a relation before the next constituent begins; the widest is taken that fits GOOD_WIDTH."""
LEGEND = (
    "N nucleus, S satellite; double lines join nuclei; a line goes on to its nucleus; "
    "one colour per step from the root."
)


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A constituent on the page: x where it begins (0 at the text, falling to the left), and its head EDU."""

    x: float
    head: int
    node: Node
    children: tuple["PlacedNode", ...]


def draw_constituents(document: DiscourseDocument) -> str:
    """The constituent tree of a document as SVG text. Raises UserError when the document has EDUs but no such tree."""
    rows = lay_out(document)
    if document.tree is None and rows:
        raise UserError(f"discourse of {document.id!r}: it has no constituent tree: draw it with --form dependency")
    tree = _tree(_meant_tree(document, document.tree), rows) if document.tree else TreeDrawing(0.0, ())
    return compose(document, rows, tree, legend=LEGEND)


def _meant_tree(document: DiscourseDocument, tree: Node) -> Node:
    """The tree with its binarised lists restored; as it is where the document's own arcs say that lists are nested."""
    flat = restore_nary(tree)
    is_flat = document.arcs is None or nary_to_dependencies(flat, len(document.edus)).heads == document.arcs.heads
    return flat if is_flat else tree


def _tree(tree: Node, rows: Sequence[Row]) -> TreeDrawing:
    rooms = (place_constituents(tree, room) for room in LABEL_ROOMS)
    places = next((found for found in rooms if -found[-1].x <= GOOD_WIDTH), None)
    places = places or place_constituents(tree, LABEL_ROOMS[-1])
    steps = depths(nary_to_dependencies(tree, len(rows)).heads).tolist()
    colours = [COLOURS[step % len(COLOURS)] for step in steps]
    root = places[-1]
    elements = [dot(root.x, rows[root.head].middle, 4, colours[root.head])]
    # Labels come last: their white edge keeps them readable where a line runs through.
    labels: list[str] = []
    for place in places:
        if place.node.is_leaf:
            y = rows[place.head].middle
            elements.append(line([(place.x, y), (-2, y)], colours[place.head], width=0.8, extra='opacity="0.55"'))
        else:
            elements += _branches(place, rows, colours)
            labels += _labels(place, rows, colours)
    return TreeDrawing(14 - root.x, [*elements, *labels])


def place_constituents(tree: Node, room: float) -> list[PlacedNode]:
    """Where each constituent begins, children before parents: so far left that lines and labels have room.

    Args:
        room: at most this much is kept free for a relation above another constituent.
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
    """What a relation needs; that of a leaf ends before the text in any case, or it would run into it."""
    width = 14 + 1.05 * text_width(relation, LABEL_SIZE)
    return width - LEADER if child.node.is_leaf else min(room, width)


def _branches(place: PlacedNode, rows: Sequence[Row], colours: Sequence[str]) -> list[str]:
    """A horizontal line to each child, and an upright one that joins them; double between nuclei."""
    node, x, y = place.node, place.x, rows[place.head].middle
    about = f"EDUs {node.first + 1} to {node.last + 1}: {node.relation}, {node.nuclearity}"
    elements = [f"<g><title>{escape(about)}</title>"]
    for child, letter in zip(place.children, node.nuclearity, strict=True):
        target = rows[child.head].middle
        if child.head == place.head:
            elements.append(line([(x, y), (child.x, y)], colours[place.head], width=2))
        elif letter == "S":
            elements.append(line([(x, y), (x, target), (child.x, target)], colours[child.head], width=1.2))
        else:
            elements.append(line([(x, y), (x, target), (child.x, target)], colours[child.head], width=4))
            elements.append(line([(x, y), (x, target), (child.x, target)], "#ffffff", width=1.6))
    return [*elements, "</g>"]


def _labels(place: PlacedNode, rows: Sequence[Row], colours: Sequence[str]) -> list[str]:
    """N or S below the line of each child, its relation above the line."""
    node, x = place.node, place.x
    elements = []
    for child, letter, relation in zip(place.children, node.nuclearity, node.relations, strict=True):
        y, colour = rows[child.head].middle, colours[child.head]
        elements += edged_text(x + 5, y + 9.5, letter, size=MARK_SIZE, colour=colour)
        if child.head != place.head and relation != SPAN:
            elements += edged_text(x + 7, y - 3.5, relation, size=LABEL_SIZE, colour=colour)
    return elements
