"""Pictures of discourse trees as SVG, without a browser or other tools.

EDUs are lines of text in one band per sentence, with a tree to their left. The dependency form shows arcs from heads to
dependents, long ones on outer lanes. In the constituent form, a constituent runs along the line of its head EDU (that
of its leftmost nucleus), and its other children branch off: every line carries at most one relation, and labels cannot
collide whatever the shape of the tree. Lengths are in pixels; y grows downwards.
"""

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape as escape_markup

import numpy as np

from docmt.discourse.constituents import SPAN, Node, restore_nary
from docmt.discourse.dependencies import NO_HEAD, depths, nary_to_dependencies
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError

# The page.
FONT = "Helvetica, Arial, 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
TEXT_SIZE, LABEL_SIZE, TITLE_SIZE, MARK_SIZE = 13.0, 10.5, 15.0, 8.5
TEXT_WIDTH, LINE_HEIGHT = 560.0, 17.0
MARGIN, SENTENCE_WIDTH, NUMBER_WIDTH = 14.0, 34.0, 32.0
HEADER_HEIGHT, ROW_GAP, BAND_GAP = 58.0, 8.0, 5.0
BANDS, GREY, PARAGRAPH_LINE = ("#ffffff", "#f1f4f8"), "#6b7280", "#9aa3b2"
COLORS = ("#1f3a5f", "#b3541e", "#2b7a4b", "#7a4a9c", "#a8324a", "#1c7c8c", "#7d6a14")
"""One per step from the root, repeated cyclically; dark enough for text on white."""
BOLD = 'font-weight="bold"'

# The text.
CLOSING = ",.;:!?)]}%…"
"""Punctuation that must not begin a line."""
NARROW, WIDE = "fijlrtI.,;:'|!()[]-` ", "mwMW@%—"
XML_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# The trees.
LANE_WIDTH, MAX_TREE_WIDTH = 13.0, 700.0
OFFSET = 4.0
"""Arcs reach an EDU a little above its middle and leave it a little below, so that they do not overlap."""
LEVEL_WIDTH, LEADER = 21.0, 26.0
LABEL_ROOMS = (200.0, 90.0, 55.0, LEVEL_WIDTH)
"""Space for a relation before the next constituent begins; the widest that fits `MAX_TREE_WIDTH` is used."""
DEPENDENCY_LEGEND = "Arrows go from head to dependent; thick ones cross sentences; one color per step from the root."
CONSTITUENT_LEGEND = (
    "N nucleus, S satellite; double lines join nuclei; a line continues to its nucleus; "
    "one color per step from the root."
)


@dataclass(frozen=True, slots=True)
class Row:
    """An EDU on the page."""

    sentence: int
    top: float  # y of its upper and lower edge; the bottom of a row is the top of the next one
    bottom: float
    middle: float  # y of the middle of its first line of text, where the tree meets it
    lines: tuple[str, ...]  # its words, wrapped


# The dependency form.


def draw_dependencies(document: DiscourseDocument) -> str:
    """Draw the dependency tree of a document as SVG."""
    rows = lay_out(document)
    if not rows:
        return compose(document, rows, [], tree_width=0.0, legend=DEPENDENCY_LEGEND)
    tree, middles = document.dependencies, [row.middle for row in rows]
    lanes = assign_lanes(tree.heads, middles)
    pitch = min(LANE_WIDTH, MAX_TREE_WIDTH / (1 + max(lanes)))
    # Lanes at the left; the relation of each EDU between them and the text.
    end = -(10 + max(text_width(relation, LABEL_SIZE) for relation in set(tree.relations)) * 1.1) - 4
    colors = [COLORS[depth % len(COLORS)] for depth in depths(tree.heads).tolist()]
    elements = []
    for edu, head in enumerate(tree.heads):
        color, y = colors[edu], middles[edu] - OFFSET
        if head != NO_HEAD:
            x, start = end - 12 - pitch * lanes[head], middles[head] + OFFSET
            width = 1.1 if rows[head].sentence == rows[edu].sentence else 2.0
            elements.append(line([(end, start), (x, start), (x, y), (end - 3, y)], color, width=width))
            arrow_head = f"M{end - 6:.1f} {y - 3:.1f}L{end:.1f} {y:.1f}L{end - 6:.1f} {y + 3:.1f}Z"
            elements += [f'<path d="{arrow_head}" fill="{color}"/>', dot(end, start, 2.2, color)]
        else:
            elements.append(dot(end - 5, y, 4, color))
        weight = BOLD if head == NO_HEAD else ""
        elements.append(text(end + 5, y + 3.5, tree.relations[edu], size=LABEL_SIZE, color=color, extra=weight))
    return compose(document, rows, elements, tree_width=-end + 24 + pitch * max(lanes), legend=DEPENDENCY_LEGEND)


def assign_lanes(heads: Sequence[int], middles: Sequence[float]) -> list[int]:
    """Assign lanes, counted from 0 (next to the text), to the arcs that leave each EDU; they share one lane.

    Short arcs come first; each takes the lane beyond all shorter ones that it overlaps. EDUs without dependents get
    lane 0. `middles` are the y of the EDUs, ascending.
    """
    low, high = np.array(middles) + OFFSET, np.array(middles) + OFFSET
    for edu, head in enumerate(heads):
        if head != NO_HEAD:
            low[head] = min(low[head], middles[edu] - OFFSET)
            high[head] = max(high[head], middles[edu] - OFFSET)
    length = high - low
    lanes = np.full(len(heads), -1, dtype=np.int64)
    for edu in np.argsort(length, kind="stable"):
        if length[edu] > 0:
            is_beside = (lanes >= 0) & (low <= high[edu]) & (high >= low[edu])
            lanes[edu] = 1 + lanes[is_beside].max(initial=-1)
    return np.maximum(lanes, 0).tolist()


# The constituent form.


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """A constituent on the page: x of its start (0 at the text, negative to the left), and its head EDU."""

    x: float
    head: int
    node: Node
    children: tuple["PlacedNode", ...]


def draw_constituents(document: DiscourseDocument) -> str:
    """Draw the constituent tree of a document as SVG."""
    rows, tree = lay_out(document), document.tree
    if tree is None:
        if rows:
            raise UserError(f"discourse of {document.id!r}: it has no constituent tree; draw it with --form dependency")
        return compose(document, rows, [], tree_width=0.0, legend=CONSTITUENT_LEGEND)
    # Binarized lists are drawn as lists, unless the document's arcs say that they are nested.
    flat = restore_nary(tree)
    if document.arcs is None or nary_to_dependencies(flat, len(rows)).heads == document.arcs.heads:
        tree = flat
    # From the widest room for labels to the narrowest; the tree of a long document fits with none.
    places: list[PlacedNode] = []
    for room in LABEL_ROOMS:
        places = place_constituents(tree, room)
        if -places[-1].x <= MAX_TREE_WIDTH:
            break
    colors = [COLORS[step % len(COLORS)] for step in depths(nary_to_dependencies(tree, len(rows)).heads).tolist()]
    root = places[-1]
    elements = [dot(root.x, rows[root.head].middle, 4, colors[root.head])]
    labels: list[str] = []
    for place in places:
        x, y = place.x, rows[place.head].middle
        if place.node.is_leaf:
            elements.append(line([(x, y), (-2, y)], colors[place.head], width=0.8, extra='opacity="0.55"'))
            continue
        node = place.node
        about = f"EDUs {node.first + 1} to {node.last + 1}: {node.relation}, {node.nuclearity}"
        elements.append(f"<g><title>{escape(about)}</title>")
        for child, letter, relation in zip(place.children, node.nuclearity, node.relations, strict=True):
            target, color = rows[child.head].middle, colors[child.head]
            branch = [(x, y), (x, target), (child.x, target)]
            if child.head == place.head:
                elements.append(line([(x, y), (child.x, y)], color, width=2))
            elif letter == "S":
                elements.append(line(branch, color, width=1.2))
            else:  # a double line: white inside a thick one
                elements += [line(branch, color, width=4), line(branch, "#ffffff", width=1.6)]
            labels += edged_text(x + 5, target + 9.5, letter, size=MARK_SIZE, color=color)
            if child.head != place.head and relation != SPAN:
                labels += edged_text(x + 7, target - 3.5, relation, size=LABEL_SIZE, color=color)
        elements.append("</g>")
    # Labels come last, so that their white outline keeps them readable on lines.
    return compose(document, rows, [*elements, *labels], tree_width=14 - root.x, legend=CONSTITUENT_LEGEND)


def place_constituents(tree: Node, room: float) -> list[PlacedNode]:
    """Place constituents, children before parents, far enough to the left for lines and labels.

    `room` is the largest space kept free for a relation above another constituent.
    """
    places: list[PlacedNode] = []

    def put(node: Node, below: list[PlacedNode]) -> PlacedNode:
        x, head = -LEADER, node.first
        if below:
            nucleus = node.nuclearity.index("N")
            starts, head = [], below[nucleus].head
            for i, (relation, child) in enumerate(zip(node.relations, below, strict=True)):
                width = 14 + 1.05 * text_width(relation, LABEL_SIZE)
                # The relation of a leaf always gets enough space, or it would run into the text.
                need = width - LEADER if child.node.is_leaf else min(room, width)
                starts.append(child.x - (LEVEL_WIDTH if i == nucleus else max(LEVEL_WIDTH, need)))
            x = min(starts)
        places.append(PlacedNode(x, head, node, tuple(below)))
        return places[-1]

    tree.fold(put)
    return places


# The page.


def join_words(words: Sequence[str]) -> str:
    """Join words with spaces, except between two full-width characters."""
    pieces = list(words[:1])
    for before, word in itertools.pairwise(words):
        is_solid = before and word and is_wide(before[-1]) and is_wide(word[0])
        pieces.append(word if is_solid else f" {word}")
    return "".join(pieces)


def wrap(content: str) -> tuple[str, ...]:
    """Break a text into lines of `TEXT_WIDTH`, at spaces where there are any."""
    lines, start, last_blank, width = [], 0, -1, 0.0
    for place, character in enumerate(content):
        width += text_width(character, TEXT_SIZE)
        if character == " " and content[place + 1 : place + 2] not in CLOSING:
            last_blank = place
        elif width > TEXT_WIDTH and place > start:
            end = last_blank if last_blank > start else place
            lines.append(content[start:end])
            start = end + 1 if end == last_blank else end
            width = text_width(content[start : place + 1], TEXT_SIZE)
    return (*lines, content[start:])


def lay_out(document: DiscourseDocument) -> list[Row]:
    """Lay out one row per EDU, from top to bottom."""
    rows: list[Row] = []
    top = HEADER_HEIGHT
    for number, edu in enumerate(document.edus):
        lines = wrap(join_words(document.edu_words(number)))
        is_first = not rows or rows[-1].sentence != edu.sentence
        is_last = number + 1 == len(document.edus) or document.edus[number + 1].sentence != edu.sentence
        start = top + BAND_GAP * is_first
        bottom = start + ROW_GAP + LINE_HEIGHT * len(lines) + BAND_GAP * is_last
        rows.append(Row(edu.sentence, top, bottom, start + (ROW_GAP + LINE_HEIGHT) / 2, lines))
        top = bottom
    return rows


def compose(
    document: DiscourseDocument, rows: Sequence[Row], tree: Sequence[str], *, tree_width: float, legend: str
) -> str:
    """Compose the picture as SVG: header, bands, sentence numbers, tree, EDU numbers, EDUs.

    The elements of the tree end at x = 0 on the right and reach `tree_width` to the left of it.
    """
    header = f"{len(document.sentences):,} sentences, {len(rows):,} EDUs. {legend}"
    header_width = max(text_width(document.id, TITLE_SIZE), text_width(header, LABEL_SIZE) * 1.05)
    tree_end = MARGIN + SENTENCE_WIDTH + tree_width
    text_start = tree_end + NUMBER_WIDTH
    used = max((text_width(part, TEXT_SIZE) for row in rows for part in row.lines), default=0.0)
    # Leave some room, because the viewer may use a wider font than assumed.
    width = max(text_start + min(used, TEXT_WIDTH) * 1.1 + MARGIN, header_width + 2 * MARGIN)
    height = (rows[-1].bottom if rows else HEADER_HEIGHT) + MARGIN
    elements = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" xml:space="preserve">',
        rectangle(0, 0, width, height, "#ffffff"),
        text(MARGIN, 26, document.id, size=TITLE_SIZE, extra=BOLD),
        text(MARGIN, 45, header, size=LABEL_SIZE, color=GREY),
    ]
    # A numbered band per sentence, every second one tinted, and a line above each paragraph but the first.
    for sentence, group in itertools.groupby(rows, key=lambda row: row.sentence):
        band = list(group)
        top = band[0].top
        elements.append(rectangle(0, top, width, band[-1].bottom - top, BANDS[sentence % 2]))
        if sentence and sentence in (document.paragraphs or ()):
            elements.append(line([(0, top), (width, top)], PARAGRAPH_LINE, width=1))
        elements.append(text(MARGIN, band[0].middle + 4, str(sentence + 1), size=LABEL_SIZE, color=GREY, extra=BOLD))
    elements += [f'<g transform="translate({tree_end:.1f} 0)">', *tree, "</g>"]
    for number, row in enumerate(rows, start=1):
        y, place = row.middle + 4.5, 'text-anchor="end"'
        elements.append(text(text_start - 8, y - 0.5, str(number), size=LABEL_SIZE, color=GREY, extra=place))
        if row.lines == ("",):
            elements.append(text(text_start, y, "(empty)", size=TEXT_SIZE, color=GREY, extra='font-style="italic"'))
            continue
        for below, part in enumerate(row.lines):
            elements.append(text(text_start, y + LINE_HEIGHT * below, part, size=TEXT_SIZE))
    return "\n".join([*elements, "</svg>"]) + "\n"


# SVG elements.


def escape(text: str) -> str:
    """Escape text for XML content or attributes; characters that XML forbids become U+FFFD."""
    return escape_markup(XML_FORBIDDEN.sub("\ufffd", text), {'"': "&quot;"})


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in a common sans-serif font of `size` pixels."""

    def em(character: str) -> float:
        if unicodedata.combining(character):
            return 0.0
        if is_wide(character):
            return 1.0
        if character in NARROW:
            return 0.31
        return 0.87 if character in WIDE else 0.68 if character.isupper() else 0.55

    return size * sum(map(em, text))


def is_wide(character: str) -> bool:
    """Tell whether a character is full-width, as Chinese characters are."""
    return unicodedata.east_asian_width(character) in "WF"


def text(x: float, y: float, content: str, *, size: float, color: str = "#222", extra: str = "") -> str:
    """Make a line of text whose baseline starts at (x, y); `extra` holds further attributes."""
    more = extra and f" {extra}"
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}"{more}>{escape(content)}</text>'


def edged_text(x: float, y: float, content: str, *, size: float, color: str) -> list[str]:
    """Make a line of text with a white outline, which keeps it readable on lines."""
    # Two elements, because not every SVG viewer supports `paint-order`.
    edge = 'stroke="#ffffff" stroke-width="3" stroke-linejoin="round"'
    return [text(x, y, content, size=size, color="#ffffff", extra=edge), text(x, y, content, size=size, color=color)]


def line(points: Sequence[tuple[float, float]], color: str, *, width: float, extra: str = "") -> str:
    """Make a line through points, with rounded corners where it makes a right angle."""

    def towards(corner: tuple[float, float], other: tuple[float, float]) -> str:
        """The point 4 pixels from a corner towards another point, or halfway there if that is nearer."""
        dx, dy = other[0] - corner[0], other[1] - corner[1]
        length = abs(dx) + abs(dy)
        share = min(4.0 / length, 0.5) if length else 0.0
        return f"{corner[0] + share * dx:.1f} {corner[1] + share * dy:.1f}"

    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        path += f"L{towards(corner, before)}Q{corner[0]:.1f} {corner[1]:.1f} {towards(corner, after)}"
    path += f"L{points[-1][0]:.1f} {points[-1][1]:.1f}"
    more = extra and f" {extra}"
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{more}/>'


def dot(x: float, y: float, radius: float, color: str) -> str:
    """Make a filled circle."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{color}"/>'


def rectangle(x: float, y: float, width: float, height: float, color: str) -> str:
    """Make a filled rectangle without outline."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'
