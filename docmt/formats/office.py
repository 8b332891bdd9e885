"""DOCX and ODT: the text of paragraphs. Their parts are XML in an archive, of which nothing else is rewritten."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import ClassVar

from docmt.errors import UserError
from docmt.formats.files import Languages, TextFile, TranslatableFile, escape_markup
from docmt.formats.markup import Element, Token, check_xml, draft_of, elements, tokens
from docmt.formats.segments import FileSegment, Mark, SegmentDraft

RUN = ("r", "t", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen")
"""What may be between two texts of a paragraph in DOCX if only the look changes."""
SPELLING = re.compile(r"<w:(?:proofErr|lastRenderedPageBreak|lang|noProof)\b[^>]*/>|\s+w:rsid\w*=\"[^\"]*\"")
OPAQUE = ("text:note", "draw:frame", "office:annotation", "text:ruby", "draw:custom-shape")
"""Elements within a paragraph of ODT that are left alone, with the paragraphs that they hold."""
TEXT = '<w:t xml:space="preserve">'


class _Part(TextFile):
    """One XML file of an archive: its paragraphs are the segments of a document."""

    def find(self) -> list[list[FileSegment]]:
        check_xml(self.text, where=self.where)
        return [list(self._paragraphs(list(tokens(self.text))))]

    def _paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        raise NotImplementedError

    def escape(self, text: str) -> str:
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


class _WordPart(_Part):
    def _paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        """The texts of each paragraph, with what is between two of them as marks, unless it changes nothing."""
        for paragraph in elements(stream, "p"):
            if paragraph.opening.name != "w:p":
                continue
            texts = [each for each in _elements_outside(paragraph.content, "t") if each.opening.name == "w:t"]
            draft = SegmentDraft()
            for number, text in enumerate(texts):
                if number:
                    self._between(draft, texts[number - 1].closing, text.opening, paragraph.content)
                draft.add("".join(token.text for token in text.content))
            if texts:
                yield draft.segment(texts[0].outer[0], texts[-1].inner[1])

    def _between(self, draft: SegmentDraft, before: Token, after: Token, stream: Sequence[Token]) -> None:
        inner = [token for token in stream if before.end <= token.start < after.start]
        raw = self.text[before.start : after.start]
        looks = [_look(self.text, token.start) for token in (before, after)]
        is_optional = all(_is_run(token, inner) for token in inner if token.name)
        if not is_optional or looks[0] != looks[1]:
            draft.mark(Mark(raw + TEXT, "tag", is_optional=is_optional, is_ordered=not is_optional))

    def render(self, segment: FileSegment, text: str) -> str:
        """The texts of a paragraph, from the tag of the first one on."""
        return TEXT + super().render(segment, text)


def _is_run(token: Token, inner: Sequence[Token]) -> bool:
    """Whether a token is part of a run without content."""
    name = token.name.removeprefix("w:")
    if name in RUN:
        return True
    depth = sum((t.kind == "open") - (t.kind == "close") for t in inner if t.name == "w:rPr" and t.start < token.start)
    return depth > 0


def _look(text: str, position: int) -> str:
    """The properties of the run around a position, without what only concerns spelling."""
    start = max(text.rfind("<w:r>", 0, position), text.rfind("<w:r ", 0, position))
    found = re.compile(r"<w:r(?: [^>]*)?>\s*<w:rPr>(.*?)</w:rPr>", re.DOTALL).match(text, start)
    return SPELLING.sub("", found[1]) if found else ""


def _elements_outside(stream: Sequence[Token], name: str) -> list[Element]:
    """The elements of a paragraph that are not in a drawing or a text box."""
    boxes = [each.outer for box in ("drawing", "pict", "AlternateContent", "object") for each in elements(stream, box)]
    return [
        each
        for each in elements(stream, name)
        if each.content and not any(start <= each.outer[0] < end for start, end in boxes)
    ]


class _OpenPart(_Part):
    def _paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        """Paragraphs and headings; notes, frames and tracked changes inside are marks."""
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


class _Archive(TranslatableFile):
    """A ZIP archive, some parts of which hold text."""

    parts: ClassVar[str]
    part: ClassVar[type[_Part]]

    def __init__(self, data: bytes, *, where: str, languages: Languages) -> None:
        super().__init__(data, where=where, languages=languages)
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                self._members = [(info, archive.read(info)) for info in archive.infolist()]
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise UserError(f"{where}: not a {self.name.upper()} file, or damaged or encrypted ({error})") from None
        self._parts: dict[str, _Part] = {}
        self._part_of: dict[int, _Part] = {}
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


class DocxFile(_Archive):
    """A Word document: body, headers, footers and notes are a document each. Text boxes stay as they are."""

    name, suffixes = "docx", (".docx",)
    parts, part = r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml", _WordPart


class OdtFile(_Archive):
    """An OpenDocument text: the body, then headers and footers. Notes and frames inside a paragraph stay."""

    name, suffixes = "odt", (".odt",)
    parts, part = r"content\.xml|styles\.xml", _OpenPart
