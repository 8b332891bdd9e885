"""Base classes of formats: a file is read into documents of segments and written with translations in their places.

Only the places of translated segments are rewritten, so that everything else stays as it was, byte by byte.
"""

import html
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import MARK, FileSegment

# Start and end of a place in a text, and its new content.
Edit = tuple[int, int, str]


@dataclass(frozen=True)
class Languages:
    """The languages of a translation, as codes: `en`, `de`."""

    src: str
    tgt: str


class TranslatableFile(ABC):
    """A file of a format: each format is a subclass.

    Attributes:
        name: name of the format.
        suffixes: suffixes of its files.
        documents: the segments of each document, in order.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]] = ()

    documents: list[list[FileSegment]]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        """Read the bytes of a file; `where` names it in messages."""
        self.where, self.languages = where, languages
        self.documents = []

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether a translation can be written without changing the structure of the file."""
        return True

    @abstractmethod
    def translated(self) -> bytes:
        """The bytes of the file with the translations of its segments."""


class TextFile(TranslatableFile):
    """A text file in UTF-8."""

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
        """The text with characters escaped that the format reserves."""
        return text

    def render(self, segment: FileSegment, text: str) -> str:
        """The content of the file for a text with marks."""
        pieces, position = [], 0
        for found in MARK.finditer(text):
            mark = segment.mark(found[0])
            pieces += [self.escape(text[position : found.start()]), self.escape(mark.raw) if mark.is_text else mark.raw]
            position = found.end()
        return "".join([*pieces, self.escape(text[position:])])

    def edits(self) -> Iterable[Edit]:
        """The places to rewrite, in any order."""
        for document in self.documents:
            for segment in document:
                if segment.filled is not None:
                    yield segment.start, segment.end, self.render(segment, segment.filled)

    @override
    def translated(self) -> bytes:
        pieces, position = [], 0
        # By place only: two insertions at one place keep the order in which `edits` yields them.
        for start, end, new in sorted(self.edits(), key=lambda edit: edit[:2]):
            pieces += [self.text[position:start], new]
            position = end
        return "".join([*pieces, self.text[position:]]).encode("utf-8")


class MarkupFile(TextFile):
    """A text file with XML or HTML tags."""

    @override
    def escape(self, text: str) -> str:
        return html.escape(text, quote=False)
