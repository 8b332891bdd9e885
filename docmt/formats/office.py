"""DOCX and ODT: XML parts in a ZIP archive. Only the text of paragraphs is rewritten.

A change of look within a paragraph (bold, italics) is a mark that may be left out.
"""

import io
import re
import zipfile
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import FileSegment, Mark, SegmentDraft
from docmt.formats.markup import Element, Token, check_xml, draft_of, elements, tokens
from docmt.formats.translatable_file import Languages, MarkupFile, TranslatableFile

# DOCX elements that may separate two texts of a paragraph without changing more than their look.
RUN = ("r", "t", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen")
SPELLING = re.compile(r"<w:(?:proofErr|lastRenderedPageBreak|lang|noProof)\b[^>]*/>|\s+w:rsid\w*=\"[^\"]*\"")
# DOCX elements within a paragraph that hold further paragraphs.
BOXES = ("drawing", "pict", "AlternateContent", "object")
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
    """

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

    @override
    def accepts(self, segment: FileSegment, filled: str) -> bool:
        return self._part_of[id(segment)].accepts(segment, filled)

    @override
    def translated(self) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for info, content in self._members:
                part = self._parts.get(info.filename)
                # `info` keeps the order, dates and compression of the members; untouched parts keep their bytes.
                archive.writestr(info, part.translated() if part and any(part.edits()) else content)
        return stream.getvalue()


class _WordPart(OfficePart):
    @override
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
        for paragraph in elements(stream, "p"):
            if paragraph.opening.name != "w:p":
                continue
            # Paragraphs of text boxes are inside another paragraph: they are not part of its sentence.
            boxes = [box.outer for name in BOXES for box in elements(paragraph.content, name)]
            texts = [
                text
                for text in elements(paragraph.content, "t")
                if text.opening.name == "w:t"
                and text.content
                and not any(start <= text.outer[0] < end for start, end in boxes)
            ]
            draft = SegmentDraft()
            for number, text in enumerate(texts):
                if number:
                    self._add_gap(draft, texts[number - 1].closing, text.opening, paragraph)
                draft.add("".join(token.text for token in text.content))
            if texts:
                yield draft.segment(texts[0].outer[0], texts[-1].inner[1])

    def _add_gap(self, draft: SegmentDraft, before: Token, after: Token, paragraph: Element) -> None:
        """Add the markup between two texts as a mark, unless it changes nothing: Word splits runs as it likes."""
        gap = [token for token in paragraph.content if before.end <= token.start < after.start]
        is_optional = all(_is_run(token, gap) for token in gap if token.name)
        if not is_optional or self._look(before.start) != self._look(after.start):
            raw = self.text[before.start : after.start] + TEXT
            draft.mark(Mark(raw, "tag", is_optional=is_optional, is_ordered=not is_optional))

    def _look(self, position: int) -> str:
        """The properties of the run around a position, except those for spelling."""
        start = max(self.text.rfind("<w:r>", 0, position), self.text.rfind("<w:r ", 0, position))
        found = re.compile(r"<w:r(?: [^>]*)?>\s*<w:rPr>(.*?)</w:rPr>", re.DOTALL).match(self.text, start)
        return SPELLING.sub("", found[1]) if found else ""

    @override
    def render(self, segment: FileSegment, text: str) -> str:
        # The place of a segment starts at the tag of its first text, which may lack `xml:space`.
        return TEXT + super().render(segment, text)


def _is_run(token: Token, gap: Sequence[Token]) -> bool:
    """Whether a token between two texts begins or ends a run, or is one of its properties."""
    if token.name.removeprefix("w:") in RUN:
        return True
    depth = sum((t.kind == "open") - (t.kind == "close") for t in gap if t.name == "w:rPr" and t.start < token.start)
    return depth > 0


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


class OdtFile(OfficeFile):
    """An OpenDocument text: the body, then headers and footers. Notes and frames inside a paragraph stay."""

    name, suffixes = "odt", (".odt",)
    parts, part = r"content\.xml|styles\.xml", _OpenDocumentPart
