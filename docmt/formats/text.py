"""Plain text: paragraphs, or lines as they are."""

import re
import textwrap
from collections.abc import Iterator

from docmt.formats.files import TextFile
from docmt.formats.segments import FileSegment, plain_segment

LINE = re.compile(r"[^\n]*(?:\n|$)")
WIDEST = 100
"""Longer lines are paragraphs, not wrapped text."""
SENTENCE_ENDS = '.!?:;…。！？"”»“)'


class TextParagraphs(TextFile):
    """Paragraphs between blank lines; the file is one document.

    Lines that were wrapped (the next word would not have fit, and no sentence ends there) are joined, translated, and
    wrapped again; any other line end stays where it is.
    """

    name = "text"
    suffixes = (".txt", ".text")

    def find(self) -> list[list[FileSegment]]:
        """One segment for each run of wrapped lines."""
        segments = []
        for block in _blocks(self.text):
            width = max(end - start for start, end in block)
            first = 0
            for number, (start, end) in enumerate(block):
                is_last = number + 1 == len(block)
                if is_last or not self._is_wrapped(start, end, block[number + 1], width):
                    segments.append(plain_segment(self.text[block[first][0] : end], block[first][0], end))
                    first = number + 1
        for segment in segments:
            segment.text = re.sub(r"[ \t]*\r?\n[ \t]*", " ", segment.text)
        return [segments]

    def _is_wrapped(self, start: int, end: int, following: tuple[int, int], width: int) -> bool:
        line, word = self.text[start:end], self.text[slice(*following)].split()[0]
        fits = len(line.rstrip()) + 1 + len(word) <= width
        return width <= WIDEST and not fits and not line.rstrip().endswith(tuple(SENTENCE_ENDS))

    def render(self, segment: FileSegment, text: str) -> str:
        """The translation, wrapped as the lines were."""
        written, before = super().render(segment, text), self.text[segment.start : segment.end]
        if "\n" not in before:
            return written
        lines = textwrap.wrap(
            written, max(map(len, before.split("\n"))), break_long_words=False, break_on_hyphens=False
        )
        return ("\r\n" if "\r\n" in before else "\n").join(lines)


class PlainLines(TextFile):
    """One sentence per line, blank lines between documents."""

    name = "lines"

    def find(self) -> list[list[FileSegment]]:
        """One document for each run of lines."""
        return [
            [plain_segment(self.text[start:end], start, end, is_sentence=True) for start, end in block]
            for block in _blocks(self.text)
        ]


def _blocks(text: str) -> Iterator[list[tuple[int, int]]]:
    """Where the lines of each block are, without line ends; blank lines separate blocks."""
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
