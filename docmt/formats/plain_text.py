"""Plain text: paragraphs, or lines as they are."""

import itertools
import re
import textwrap
from collections.abc import Iterator

from typing_extensions import override

from docmt.formats.file_segments import FileSegment, plain_segment
from docmt.formats.translatable_file import TextFile

LINE = re.compile(r"[^\n]*(?:\n|$)")
# Longer lines are paragraphs, and blocks of shorter lines are verses, addresses and lists, not wrapped text.
NARROWEST, WIDEST = 30, 100
# Indentation, and the sign or number of an item of a list.
ITEM = re.compile(r"[ \t]*+(?P<sign>(?:[-–—*+•‣▪◦]|\d{1,3}[.)]|[A-Za-z]\))[ \t]++(?=\S))?+")
# What separates two columns.
GAP = re.compile(r"[ \t]{3,}+|[ \t]?\t[ \t]?")
SENTENCE_ENDS = '.!?:;…。！？"”»“)'


class TextParagraphs(TextFile):
    """Paragraphs between blank lines; the file is one document.

    Lines that were wrapped (the next word would not have fit, and no sentence ends there) are joined into a segment,
    translated, and wrapped again; any other line end stays. Columns, between tabs or three blanks, are segments each.
    """

    name = "text"
    suffixes = (".txt", ".text")

    @override
    def find(self) -> list[list[FileSegment]]:
        segments = []
        for block in _blocks(self.text):
            width = max(end - start for start, end in block)
            places: list[tuple[int, int]] = []
            is_wrapped = is_list = False
            for number, (start, end) in enumerate(block):
                line = self.text[start:end].rstrip()
                item = ITEM.match(line)
                assert item is not None  # it matches nothing, too
                first, last = start + item.end(), start + len(line)
                gaps = (gap.span() for gap in GAP.finditer(self.text, first, last))
                edges = [first, *itertools.chain.from_iterable(gaps), last]
                columns = list(zip(edges[::2], edges[1::2], strict=True))
                # Wrapped prose may have a dash or a number at the beginning of a line.
                is_list |= bool(item["sign"]) and not is_wrapped
                if is_wrapped and len(columns) == 1 and not (item["sign"] and is_list):
                    places[-1] = places[-1][0], columns[0][1]
                else:
                    places += columns
                # A line was wrapped if the next word would not have fit behind it and no sentence ends there.
                next_words = self.text[slice(*block[number + 1])].split() if number + 1 < len(block) else []
                is_full = bool(next_words) and len(line) + 1 + len(next_words[0]) > width
                is_wrapped = is_full and len(columns) == 1 and NARROWEST <= width <= WIDEST
                is_wrapped &= not line.endswith(tuple(SENTENCE_ENDS))
            segments += [plain_segment(self.text[start:end], start, end) for start, end in places]
        for segment in segments:
            segment.text = re.sub(r"(?<![ \t])[ \t]*+\r?\n\s*+", " ", segment.text)
        return [segments]

    @override
    def render(self, segment: FileSegment, text: str) -> str:
        written, before = super().render(segment, text), self.text[segment.start : segment.end]
        if "\n" not in before:  # it was not wrapped
            return written
        first, second, *_ = lines = before.split("\n")
        column = segment.start - self.text.rfind("\n", 0, segment.start) - 1
        wrapped = textwrap.wrap(
            written,
            max(column + len(first), *map(len, lines[1:])),
            initial_indent=" " * column,
            subsequent_indent=second[: len(second) - len(second.lstrip())],
            break_long_words=False,
            break_on_hyphens=False,
        )
        return ("\r\n" if "\r\n" in before else "\n").join(wrapped)[column:]


class PlainLines(TextFile):
    """One sentence per line, blank lines between documents."""

    name = "lines"

    @override
    def find(self) -> list[list[FileSegment]]:
        return [
            [plain_segment(self.text[start:end], start, end, is_sentence=True) for start, end in block]
            for block in _blocks(self.text)
        ]


def _blocks(text: str) -> Iterator[list[tuple[int, int]]]:
    """The places of the lines of each block, without line ends; blank lines separate blocks."""
    block: list[tuple[int, int]] = []
    for found in LINE.finditer(text, 1 if text.startswith("\ufeff") else 0):
        line = found[0].rstrip("\r\n")
        if line.strip():
            block.append((found.start(), found.start() + len(line)))
        elif block:
            yield block
            block = []
    if block:
        yield block
