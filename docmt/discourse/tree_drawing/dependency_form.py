"""The dependency form: arcs from heads to dependents, with long ones on outer lanes."""

from collections.abc import Sequence

import numpy as np

from docmt.discourse.dependencies import NO_HEAD, DependencyTree, depths
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.tree_drawing.edu_rows import LABEL_SIZE, Row, TreeDrawing, compose, lay_out
from docmt.discourse.tree_drawing.svg import COLORS, arrow_head, dot, line, text, text_width

LANE_WIDTH, MAX_LANES_WIDTH = 13.0, 700.0
OFFSET = 4.0
"""Arcs reach an EDU a little above its middle and leave it a little below, so that they do not overlap."""
LEGEND = "Arrows go from head to dependent; thick ones cross sentences; one color per step from the root."


def draw_dependencies(document: DiscourseDocument) -> str:
    """Draw the dependency tree of a document as SVG; raises UserError when the document has EDUs but no tree."""
    rows = lay_out(document)
    tree = _arcs(document.dependencies, rows) if rows else TreeDrawing(0.0, ())
    return compose(document, rows, tree, legend=LEGEND)


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


def _arcs(tree: DependencyTree, rows: Sequence[Row]) -> TreeDrawing:
    """Draw lanes at the left, and the relation of each EDU between them and the text."""
    middles = [row.middle for row in rows]
    lanes = assign_lanes(tree.heads, middles)
    pitch = min(LANE_WIDTH, MAX_LANES_WIDTH / (1 + max(lanes)))
    label_width = 10 + max(text_width(relation, LABEL_SIZE) for relation in set(tree.relations)) * 1.1
    end = -label_width - 4
    colors = [COLORS[depth % len(COLORS)] for depth in depths(tree.heads).tolist()]
    elements = []
    for edu, head in enumerate(tree.heads):
        color, y = colors[edu], middles[edu] - OFFSET
        if head != NO_HEAD:
            x = end - 12 - pitch * lanes[head]
            width = 1.1 if rows[head].sentence == rows[edu].sentence else 2.0
            points = [(end, middles[head] + OFFSET), (x, middles[head] + OFFSET), (x, y), (end - 3, y)]
            elements += [line(points, color, width=width), arrow_head(end, y, color)]
            elements.append(dot(end, middles[head] + OFFSET, 2.2, color))
        else:
            elements.append(dot(end - 5, y, 4, color))
        weight = 'font-weight="bold"' if head == NO_HEAD else ""
        elements.append(text(end + 5, y + 3.5, tree.relations[edu], size=LABEL_SIZE, color=color, extra=weight))
    return TreeDrawing(-end + 24 + pitch * max(lanes), elements)
