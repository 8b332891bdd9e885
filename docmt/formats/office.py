"""Files of office programs: XML parts in an archive. Only the text of paragraphs is rewritten."""

import io
import re
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from docmt.errors import UserError
from docmt.formats.files import Languages, TextFile, TranslatableFile, escape_markup
from docmt.formats.markup import Token, check_xml, tokens
from docmt.formats.segments import FileSegment


class OfficePart(TextFile):
    """One XML file of an archive: its paragraphs are the segments of a document."""

    def find(self) -> list[list[FileSegment]]:
        """A segment for each paragraph with text."""
        check_xml(self.text, where=self.where)
        return [list(self.paragraphs(list(tokens(self.text))))]

    @abstractmethod
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        """The segments of the paragraphs."""

    def escape(self, text: str) -> str:
        """Text as XML writes it."""
        return escape_markup(text)

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether tags still nest."""
        waiting = []
        for token in tokens(self.render(segment, filled)):
            if token.kind == "open":
                waiting.append(token.name)
            elif token.kind == "close" and waiting and waiting.pop() != token.name:
                return False
        return True


class OfficeFile(TranslatableFile):
    """A ZIP archive, some parts of which hold text."""

    parts: ClassVar[str]
    part: ClassVar[type[OfficePart]]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                self._members = [(info, archive.read(info)) for info in archive.infolist()]
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise UserError(f"{where}: not a {self.name.upper()} file, or damaged or encrypted ({error})") from None
        self._parts: dict[str, OfficePart] = {}
        self._part_of: dict[int, OfficePart] = {}
        for info, content in self._members:
            if re.fullmatch(self.parts, info.filename):
                part = self.part(content, where=f"{where}: {info.filename}", languages=languages)
                self._parts[info.filename] = part
                self.documents += part.documents
                self._part_of |= {id(segment): part for segment in part.documents[0]}
        if not self._parts:
            raise UserError(f"{where}: a ZIP archive, but not a {self.name.upper()} file: it has no such text")

    def accepts(self, segment: FileSegment, filled: str) -> bool:
        """Whether the part of the segment accepts it."""
        return self._part_of[id(segment)].accepts(segment, filled)

    def translated(self) -> bytes:
        """The archive with the same members in the same order."""
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for info, content in self._members:
                part = self._parts.get(info.filename)
                archive.writestr(info, part.translated() if part and any(part.edits()) else content)
        return stream.getvalue()
