"""A file that was read: its text, its documents of segments, and its text again with translations in their places.

Only the places of translated segments are rewritten, so that everything else stays as it was, byte by byte.
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from docmt.errors import UserError
from docmt.formats.segments import MARK, FileSegment

Edit = tuple[int, int, str]
"""Start and end of a place in a text, and what is written there instead."""


@dataclass(frozen=True)
class Languages:
    """The languages of a translation, as codes: `en`, `de`."""

    src: str
    tgt: str


class TranslatableFile(ABC):
    """A file of a format: each format is a subclass.

    Attributes:
        name: of the format.
        suffixes: of its files.
        documents: the segments of each document, in order.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()

    documents: list[list[FileSegment]]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        """Read the bytes of a file; `where` names it in messages. Raises UserError when it is not of the format."""
        self.where, self.languages = where, languages
        self.documents = []

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether a translation can be written without changing the structure of the file."""
        return True

    @abstractmethod
    def translated(self) -> bytes:
        """The bytes of the file with the translations of its segments."""


class TextFile(TranslatableFile):
    """A file that is text as a whole, in UTF-8."""

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        try:
            self.text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise UserError(f"{where}: line {line} is not UTF-8: convert the file, for example with iconv") from None
        self.documents = self.find()

    @abstractmethod
    def find(self) -> list[list[FileSegment]]:
        """The segments of each document."""

    def escape(self, text: str) -> str:
        """Text as this format writes it."""
        return text

    def render(self, segment: FileSegment, text: str) -> str:
        """A text with marks as the file writes it."""
        pieces, position = [], 0
        for found in MARK.finditer(text):
            mark = segment.mark(found[0])
            pieces += [self.escape(text[position : found.start()]), self.escape(mark.raw) if mark.is_text else mark.raw]
            position = found.end()
        return "".join([*pieces, self.escape(text[position:])])

    def edits(self) -> Iterable[Edit]:
        """What to rewrite."""
        for document in self.documents:
            for segment in document:
                if segment.filled is not None:
                    yield segment.start, segment.end, self.render(segment, segment.filled)

    def translated(self) -> bytes:
        """The bytes of the file with the translations of its segments."""
        return apply_edits(self.text, self.edits()).encode("utf-8")


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """A text with some places rewritten."""
    pieces, position = [], 0
    for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


def escape_markup(text: str) -> str:
    """Text as XML and HTML write it between tags."""
    return html.escape(text, quote=False)
