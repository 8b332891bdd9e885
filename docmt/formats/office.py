"""DOCX and ODT: XML parts in a ZIP archive. Only the text of paragraphs is rewritten."""

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
OPAQUE = ("note", "frame", "annotation", "ruby", "custom-shape")


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
    """A ZIP archive, some parts of which hold text, and some declare languages: patterns of their names."""

    parts: ClassVar[str]
    part: ClassVar[type[OfficePart]]
    languages_in: ClassVar[str]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(data))
            read = f"(?:{self.parts})|(?:{self.languages_in})"
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

    @abstractmethod
    def declared(self, content: bytes) -> bytes:
        """A part that declares the target language where it declared the source language."""

    @override
    def translated(self) -> bytes:
        stream = io.BytesIO()
        contents = {name: part.translated() for name, part in self._parts.items() if any(part.edits())}
        with zipfile.ZipFile(stream, "w") as archive:
            for info in self._archive.infolist():
                content = contents.get(info.filename)
                if contents and re.fullmatch(self.languages_in, info.filename):
                    before = content or self._archive.read(info)
                    after = self.declared(before)
                    content = content if after == before else after
                if content is None:
                    _copy_packed(self._archive, info, archive)
                else:  # `info` keeps the order, dates and compression of the members
                    archive.writestr(copy.copy(info), content)  # it changes what it is given
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


def _is_whole(token: Token) -> bool:
    return token.local_name in WHOLE


class _WordPart(OfficePart):
    @override
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        for paragraph in elements(stream, "p"):
            if paragraph.opening.name != "w:p":
                continue
            draft, first, last = SegmentDraft(), 0, 0
            # The looks of this run, of the run of the last text, and before the last change of look.
            look = look_before = ""
            look_outside: str | None = None
            n_looks = 0
            for token in merged(paragraph.content, _is_whole):
                if token.name in ("w:r", "w:rPr"):
                    look = SPELLING.sub("", self.text[token.start : token.end]) if token.kind == "whole" else ""
                inner = list(tokens(self.text, token.start, token.end))[1:] if token.name == "w:t" else []
                if len(inner) < 2:  # no text
                    continue
                if not last:
                    first = token.start
                else:
                    raw = self.text[last : token.start] + TEXT
                    pieces = merged(list(tokens(raw)), _is_whole)
                    between = [t for t in pieces if t.name and t.name.removeprefix("w:") not in RUN]
                    if between:
                        # A link begins or ends here, or there is a tab: in its place among all such marks.
                        side = between[0].kind if len(between) == 1 else "other"
                        kind = side if side in ("open", "close") else "tag"
                        draft.mark(Mark(raw, kind, is_ordered=kind == "tag"), name=between[0].name)
                        look_outside = look_outside if look == look_before else None
                    elif look == look_outside:
                        draft.mark(Mark(raw, "close"), name=f"look {n_looks}")
                        look_outside = None
                    elif look != look_before:  # else, Word has split a run as it likes
                        n_looks += 1
                        draft.mark(Mark(raw, "open"), name=f"look {n_looks}")
                        look_outside = look_before
                draft.add("".join(part.text for part in inner))
                last, look_before = inner[-1].start, look
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
        end = 0
        for each in sorted(found, key=lambda element: element.opening.start):
            # The paragraphs of a note in a heading are a part of it that stays.
            if each.opening.name in ("text:p", "text:h") and each.content and each.opening.start >= end:
                end = each.closing.end
                draft = draft_of(self.text, each.content, opaque=OPAQUE, collapse=True)
                yield draft.segment(*each.inner)


class DocxFile(OfficeFile):
    """A Word document: body, headers, footers and notes are a document each. Text boxes stay as they are."""

    name, suffixes = "docx", (".docx",)
    parts, part = r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml", _WordPart
    languages_in = r"word/\w+\.xml"

    @override
    def declared(self, content: bytes) -> bytes:
        src, tgt = language_of(self.languages.src).encode(), language_tag(self.languages.tgt).encode()
        before = rb"(<w:(?:lang|themeFontLang)\s[^<>]*?\bw:val=\")" + src
        return re.sub(before + rb"(?:-[^\"]*)?(?=\")", rb"\1" + tgt, content)


class OdtFile(OfficeFile):
    """An OpenDocument text: the body, then headers and footers. Notes and frames inside a paragraph stay."""

    name, suffixes = "odt", (".odt",)
    parts, part = r"content\.xml|styles\.xml", _OpenDocumentPart
    languages_in = parts

    @override
    def declared(self, content: bytes) -> bytes:
        src, (tgt, *others) = language_of(self.languages.src), language_tag(self.languages.tgt).split("-")
        region = next((part for part in others if len(part) == 2), "none")

        def renamed(found: re.Match[bytes]) -> bytes:
            tag = found[0].replace(f'fo:language="{src}"'.encode(), f'fo:language="{tgt}"'.encode())
            return re.sub(rb"(\bfo:country=\")[^\"]*", rb"\1" + region.encode(), tag)

        return re.sub(rf'<[^<>]*\sfo:language="{src}"[^<>]*>'.encode(), renamed, content)
