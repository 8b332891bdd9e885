"""DOCX: the texts of runs make paragraphs; a change of look within one is a mark that may be left out."""

import re
from collections.abc import Iterator, Sequence

from docmt.formats.markup import Element, Token, elements
from docmt.formats.office import OfficeFile, OfficePart
from docmt.formats.segments import FileSegment, Mark, SegmentDraft

RUN = ("r", "t", "rPr", "proofErr", "lastRenderedPageBreak", "softHyphen")
"""What may be between two texts of a paragraph in DOCX if only the look changes."""
SPELLING = re.compile(r"<w:(?:proofErr|lastRenderedPageBreak|lang|noProof)\b[^>]*/>|\s+w:rsid\w*=\"[^\"]*\"")
TEXT = '<w:t xml:space="preserve">'


class _WordPart(OfficePart):
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
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


class DocxFile(OfficeFile):
    """A Word document: body, headers, footers and notes are a document each. Text boxes stay as they are."""

    name, suffixes = "docx", (".docx",)
    parts, part = r"word/(?:document|header\d*|footer\d*|footnotes|endnotes)\.xml", _WordPart
