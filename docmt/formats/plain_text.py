"""Plain text: paragraphs, or lines as they are."""

import re
import textwrap
from collections.abc import Iterator

from typing_extensions import override

from docmt.formats.file_segments import FileSegment, plain_segment
from docmt.formats.translatable_file import TextFile

LINE = re.compile(r"[^\n]*(?:\n|$)")
# Longer lines are paragraphs, not wrapped text.
WIDEST = 100
SENTENCE_ENDS = '.!?:;…。！？"”»“)'


class TextParagraphs(TextFile):
    """Paragraphs between blank lines; the file is one document.

    Lines that were wrapped (the next word would not have fit, and no sentence ends there) are joined into a segment,
    translated, and wrapped again; any other line end stays.
    """

    name = "text"
    suffixes = (".txt", ".text")

    @override
    def find(self) -> list[list[FileSegment]]:
        segments = []
        for block in _blocks(self.text):
            width = max(end - start for start, end in block)
            first = 0
            for number, (start, end) in enumerate(block):
                # A line was wrapped if the next word would not have fit behind it and no sentence ends there.
                line = self.text[start:end].rstrip()
                next_words = self.text[slice(*block[number + 1])].split() if number + 1 < len(block) else []
                is_full = bool(next_words) and len(line) + 1 + len(next_words[0]) > width
                is_wrapped = is_full and width <= WIDEST and not line.endswith(tuple(SENTENCE_ENDS))
                if not is_wrapped:
                    segments.append(plain_segment(self.text[block[first][0] : end], block[first][0], end))
                    first = number + 1
        for segment in segments:
            segment.text = re.sub(r"(?<![ \t])[ \t]*+\r?\n[ \t]*+", " ", segment.text)
        return [segments]

    @override
    def render(self, segment: FileSegment, text: str) -> str:
        written, before = super().render(segment, text), self.text[segment.start : segment.end]
        if "\n" not in before:  # it was not wrapped
            return written
        lines = textwrap.wrap(
            written, max(map(len, before.split("\n"))), break_long_words=False, break_on_hyphens=False
        )
        return ("\r\n" if "\r\n" in before else "\n").join(lines)


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
