"""ODT: paragraphs and headings."""

from collections.abc import Iterator, Sequence

from docmt.formats.markup import Token, draft_of, elements
from docmt.formats.office import OfficeFile, OfficePart
from docmt.formats.segments import FileSegment

OPAQUE = ("text:note", "draw:frame", "office:annotation", "text:ruby", "draw:custom-shape")
"""Elements within a paragraph of ODT that are left alone, with the paragraphs that they hold."""


class _OpenPart(OfficePart):
    def paragraphs(self, stream: Sequence[Token]) -> Iterator[FileSegment]:
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


class OdtFile(OfficeFile):
    """An OpenDocument text: the body, then headers and footers. Notes and frames inside a paragraph stay."""

    name, suffixes = "odt", (".odt",)
    parts, part = r"content\.xml|styles\.xml", _OpenPart
