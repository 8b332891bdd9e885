"""TMX translation memories: units that lack the target language get it, marked for review; others are context."""

from collections.abc import Iterable, Iterator

from docmt.errors import UserError
from docmt.formats.files import Edit, TextFile, escape_markup
from docmt.formats.markup import Element, check_xml, draft_of, elements, tokens
from docmt.formats.segments import FileSegment

OPAQUE = ("bpt", "ept", "it", "ph", "ut")
"""Inline elements that hold code, not text."""
NOTE = '<prop type="x-docmt">machine translation, needs review</prop>'


class TmxFile(TextFile):
    """A TMX file, as one document."""

    name = "tmx"
    suffixes = (".tmx",)

    def find(self) -> list[list[FileSegment]]:
        """A segment for each unit with the source language."""
        self._open: list[tuple[Element | None, Element, FileSegment]] = []
        return [list(self._document())]

    def _document(self) -> Iterator[FileSegment]:
        for unit in read_units(self.text, where=self.where):
            variants = unit_variants(unit)
            source, target = (variants.get(lang) for lang in (self.languages.src, self.languages.tgt))
            if source is None:
                continue
            is_wanted = target is None or not self.text[slice(*target.inner)].strip()
            draft = draft_of(self.text, source.content, opaque=lambda token: token.name in OPAQUE)
            segment = draft.segment(*source.inner, is_wanted=is_wanted)
            if is_wanted:
                self._open.append((target, unit, segment))
            yield segment

    def escape(self, text: str) -> str:
        """Text as XML writes it."""
        return escape_markup(text)

    def edits(self) -> Iterable[Edit]:
        """A variant in the target language for each filled unit."""
        for target, unit, segment in self._open:
            if segment.filled is None:
                continue
            content = f"<seg>{self.render(segment, segment.filled)}</seg>"
            if target is not None:
                yield *target.outer, NOTE + content
                continue
            start, last = elements(unit.content, "tuv")[-1].outer
            blanks = self.text[len(self.text[:start].rstrip()) : start]
            new = f'<tuv xml:lang="{self.languages.tgt}">{NOTE}{content}</tuv>'
            yield last, last, (blanks if "\n" in blanks else "") + new


def read_units(text: str, *, where: str) -> list[Element]:
    """The units of a TMX file. Raises UserError when it is none."""
    check_xml(text, where=where)
    stream = list(tokens(text))
    root = next(token for token in stream if token.kind != "other" and token.name)
    if root.name != "tmx":
        raise UserError(f"{where}: is XML, but not TMX (its root is <{root.name}>)")
    return elements(stream, "tu")


def unit_variants(unit: Element) -> dict[str, Element]:
    """The `seg` of each language of a unit, under its code and, if that is free, without region: `en-US`, `en`."""
    found: dict[str, Element] = {}
    for variant in elements(unit.content, "tuv"):
        lang = (variant.opening.get("xml:lang") or variant.opening.get("lang") or "").lower()
        if segments := elements(variant.content, "seg"):
            found.setdefault(lang, segments[0])
            found.setdefault(lang.partition("-")[0], segments[0])
    return found
