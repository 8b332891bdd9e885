"""The page of a picture: EDUs as lines of text in one band per sentence, with a tree to their left."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.tree_drawing.svg import FONT, is_wide, line, rectangle, text, text_width

TEXT_SIZE, LABEL_SIZE, TITLE_SIZE = 13.0, 10.5, 15.0
TEXT_WIDTH, LINE_HEIGHT = 560.0, 17.0
MARGIN, SENTENCE_WIDTH, NUMBER_WIDTH = 14.0, 34.0, 32.0
HEADER_HEIGHT, ROW_GAP, BAND_GAP = 58.0, 8.0, 5.0
BANDS = ("#ffffff", "#f1f4f8")
GREY = "#6b7280"
CLOSING = ",.;:!?)]}%…"
"""Punctuation that must not begin a line."""


@dataclass(frozen=True, slots=True)
class Row:
    """An EDU on the page.

    Attributes:
        top, bottom: y of its upper and lower edge; the bottom of a row is the top of the next one.
        middle: y of the middle of its first line of text, where the tree meets it.
        lines: its words, wrapped.
    """

    sentence: int
    top: float
    bottom: float
    middle: float
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreeDrawing:
    """SVG elements that end at x = 0 on the right and reach `width` to the left of it."""

    width: float
    elements: Sequence[str]


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


def compose(document: DiscourseDocument, rows: Sequence[Row], tree: TreeDrawing, *, legend: str) -> str:
    """Compose the picture as SVG: header, bands, sentence numbers, tree, EDU numbers, EDUs."""
    counts = f"{len(document.sentences):,} sentences, {len(rows):,} EDUs"
    header_width = max(text_width(document.id, TITLE_SIZE), text_width(f"{counts}. {legend}", LABEL_SIZE) * 1.05)
    tree_end = MARGIN + SENTENCE_WIDTH + tree.width
    text_start = tree_end + NUMBER_WIDTH
    used = max((text_width(part, TEXT_SIZE) for row in rows for part in row.lines), default=0.0)
    # Leave some room, because the viewer may use a wider font than assumed.
    width = max(text_start + min(used, TEXT_WIDTH) * 1.1 + MARGIN, header_width + 2 * MARGIN)
    height = (rows[-1].bottom if rows else HEADER_HEIGHT) + MARGIN
    elements = [
        rectangle(0, 0, width, height, "#ffffff"),
        text(MARGIN, 26, document.id, size=TITLE_SIZE, extra='font-weight="bold"'),
        text(MARGIN, 45, f"{counts}. {legend}", size=LABEL_SIZE, color=GREY),
        *_bands(document, rows, width),
        f'<g transform="translate({tree_end:.1f} 0)">',
        *tree.elements,
        "</g>",
        *itertools.chain.from_iterable(_edu(number, row, text_start) for number, row in enumerate(rows, start=1)),
    ]
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" xml:space="preserve">'
    )
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', start, *elements, "</svg>"]) + "\n"


def _bands(document: DiscourseDocument, rows: Sequence[Row], width: float) -> list[str]:
    """Draw a numbered band per sentence, every second one tinted, and a line above each paragraph but the first."""
    elements = []
    paragraphs = set(document.paragraphs or ()) - {0}
    for sentence, group in itertools.groupby(rows, key=lambda row: row.sentence):
        band = list(group)
        top = band[0].top
        elements.append(rectangle(0, top, width, band[-1].bottom - top, BANDS[sentence % 2]))
        if sentence in paragraphs:
            elements.append(line([(0, top), (width, top)], "#9aa3b2", width=1))
        place = {"size": LABEL_SIZE, "color": GREY, "extra": 'font-weight="bold"'}
        elements.append(text(MARGIN, band[0].middle + 4, str(sentence + 1), **place))
    return elements


def _edu(number: int, row: Row, x: float) -> list[str]:
    baseline = row.middle + 4.5
    elements = [text(x - 8, baseline - 0.5, str(number), size=LABEL_SIZE, color=GREY, extra='text-anchor="end"')]
    if row.lines == ("",):
        return [*elements, text(x, baseline, "(empty)", size=TEXT_SIZE, color=GREY, extra='font-style="italic"')]
    for place, part in enumerate(row.lines):
        elements.append(text(x, baseline + LINE_HEIGHT * place, part, size=TEXT_SIZE))
    return elements
