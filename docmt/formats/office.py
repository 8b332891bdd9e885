"""DOCX and ODT: XML parts in a ZIP archive. Only the text of paragraphs is rewritten.

A change of look within a paragraph (bold, italics) is a mark that may be left out.
"""

import copy
import io
import lzma
import re
import struct
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from docmt.decompression import check_expansion
from docmt.errors import UserError
from docmt.formats.file_segments import FileSegment, Mark, SegmentDraft
from docmt.formats.markup import Token, check_xml, draft_of, elements, merged, tokens
from docmt.formats.translatable_file import Languages, MarkupFile, TranslatableFile, language_of, language_tag

# DOCX elements that may separate two texts of a paragraph without changing more than their look.
RUN = ("r", "t", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen")
SPELLING = re.compile(
    r"<w:(?:proofErr|lastRenderedPageBreak|lang|noProof)\b[^>]*/>|</?w:rPr>|(?<!\s)\s++w:rsid\w*=\"[^\"]*\""
)
# DOCX elements read as one token: text, properties, and what holds further paragraphs, which are not of the sentence.
WHOLE = ("t", "rPr", "drawing", "pict", "AlternateContent", "object")
TEXT = '<w:t xml:space="preserve">'
# ODT elements within a paragraph that stay as they are, together with the paragraphs in them.
OPAQUE = ("text:note", "draw:frame", "office:annotation", "text:ruby", "draw:custom-shape")


class OfficePart(MarkupFile):
    """One XML file of an archive, as one document: a segment for each paragraph with text."""

    @override
    def find(self) -> list[list[FileSegment]]:
        check_xml(self.text, where=self.where)
        return [list(self.paragraphs(list(tokens(self.text))))]

    @abstractmethod
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        """The segments of the paragraphs."""

    @override
    def accepts(self, segment: FileSegment, filled: str) -> bool:
        waiting = []
        for token in tokens(self.render(segment, filled)):
            if token.kind == "open":
                waiting.append(token.name)
            elif token.kind == "close" and waiting and waiting.pop() != token.name:
                return False
        return True


class OfficeFile(TranslatableFile):
    """A ZIP archive, some parts of which hold text.

    Attributes:
        parts: pattern of the names of these parts.
        part: their class.
        languages_in: patterns of the names of all parts that declare languages, and of what precedes a language.
    """

    parts: ClassVar[str]
    part: ClassVar[type[OfficePart]]
    languages_in: ClassVar[tuple[str, bytes]] = "", b""

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            read = f"(?:{self.parts})|(?:{self.languages_in[0]})"
            n_bytes = sum(info.file_size for info in self._archive.infolist() if re.fullmatch(read, info.filename))
            check_expansion(n_bytes, len(data), where=where)
            found = [info for info in self._archive.infolist() if re.fullmatch(self.parts, info.filename)]
            contents = [self._archive.read(info) for info in found]
            for info in self._archive.infolist():
                self._archive.open(info).close()  # its header is whole, and it is not encrypted
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, ValueError, EOFError) as error:
            raise UserError(f"{where}: not a {self.name.upper()} file, or damaged or encrypted ({error})") from None
        self._parts: dict[str, OfficePart] = {}
        self._part_of: dict[int, OfficePart] = {}
        for info, content in zip(found, contents, strict=True):
            part = self.part(content, where=f"{where}: {info.filename}", languages=languages)
            self._parts[info.filename] = part
            self.documents += part.documents
            self._part_of |= {id(segment): part for segment in part.documents[0]}
        if not self._parts:
            raise UserError(f"{where}: a ZIP archive, but not a {self.name.upper()} file: it has no such text")

    @override
    def accepts(self, segment: FileSegment, filled: str) -> bool:
        return self._part_of[id(segment)].accepts(segment, filled)

    @override
    def translated(self) -> bytes:
        stream = io.BytesIO()
        names, before = self.languages_in
        src, tgt = language_of(self.languages.src).encode(), language_tag(self.languages.tgt).encode()
        language = re.compile(b"(" + before + b")" + src + rb"(?:-[^\"]*)?(?=\")")
        is_changed = any(any(part.edits()) for part in self._parts.values())
        with zipfile.ZipFile(stream, "w") as archive:
            for info in self._archive.infolist():
                part = self._parts.get(info.filename)
                is_new = part is not None and any(part.edits())
                content = part.translated() if part and is_new else b""
                if is_changed and re.fullmatch(names, info.filename):
                    content, n_found = language.subn(b"\\1" + tgt, content or self._archive.read(info))
                    is_new |= n_found > 0
                if is_new:  # `info` keeps the order, dates and compression of the members
                    archive.writestr(copy.copy(info), content)  # it changes what it is given
                else:
                    _copy_packed(self._archive, info, archive)
        return stream.getvalue()


def _copy_packed(source: zipfile.ZipFile, info: zipfile.ZipInfo, target: zipfile.ZipFile) -> None:
    """Copy a member as it is packed, which `zipfile` has no method for: pictures are never unpacked."""
    assert source.fp is not None
    assert target.fp is not None
    source.fp.seek(info.header_offset + 26)
    n_name, n_extra = struct.unpack("<HH", source.fp.read(4))
    source.fp.seek(n_name + n_extra, io.SEEK_CUR)
    new = copy.copy(info)
    new.flag_bits &= ~8  # sizes stand in front of the data, not behind it
    new.header_offset = target.fp.tell()
    target.fp.write(new.FileHeader() + source.fp.read(info.compress_size))
    target.filelist.append(new)
    target.NameToInfo[new.filename] = new
    target.start_dir = target.fp.tell()  # type: ignore[attr-defined]


class _WordPart(OfficePart):
    @override
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        for paragraph in elements(stream, "p"):
            if paragraph.opening.name != "w:p":
                continue
            draft, first, last = SegmentDraft(), 0, 0
            # The looks of this run and of the run of the last text, and whether nothing but their ends is between them.
            look = look_before = ""
            is_optional = True
            for token in merged(paragraph.content, lambda token: token.name.rpartition(":")[2] in WHOLE):
                if token.name in ("w:r", "w:rPr"):
                    look = SPELLING.sub("", self.text[token.start : token.end]) if token.kind == "whole" else ""
                inner = list(tokens(self.text, token.start, token.end))[1:] if token.name == "w:t" else []
                if len(inner) < 2:  # no text
                    is_optional &= not token.name or token.name.removeprefix("w:") in RUN
                    continue
                if not last:
                    first = token.start
                elif not is_optional or look != look_before:  # else, Word has split a run as it likes
                    raw = self.text[last : token.start] + TEXT
                    draft.mark(Mark(raw, "tag", is_optional=is_optional, is_ordered=not is_optional))
                draft.add("".join(part.text for part in inner))
                last, look_before, is_optional = inner[-1].start, look, True
            if last:
                yield draft.segment(first, last)

    @override
    def render(self, segment: FileSegment, text: str) -> str:
        # The place of a segment starts at the tag of its first text, which may lack `xml:space`.
        return TEXT + super().render(segment, text)


class _OpenDocumentPart(OfficePart):
    @override
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        found = [*elements(stream, "p"), *elements(stream, "h")]
        for each in sorted(found, key=lambda element: element.opening.start):
            if each.opening.name in ("text:p", "text:h") and each.content:
                draft = draft_of(
                    self.text,
                    each.content,
                    opaque=lambda token: token.name in OPAQUE,
                    optional=("text:span",),
                    collapse=True,
                )
                yield draft.segment(*each.inner)


class DocxFile(OfficeFile):
    """A Word document: body, headers, footers and notes are a document each. Text boxes stay as they are."""

    name, suffixes = "docx", (".docx",)
    parts, part = r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml", _WordPart
    languages_in = r"word/\w+\.xml", rb"<w:(?:lang|themeFontLang)\s[^<>]*?\bw:val=\""


class OdtFile(OfficeFile):
    """An OpenDocument text: the body, then headers and footers. Notes and frames inside a paragraph stay."""

    name, suffixes = "odt", (".odt",)
    parts, part = r"content\.xml|styles\.xml", _OpenDocumentPart
