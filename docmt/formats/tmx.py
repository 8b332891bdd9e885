"""TMX translation memories: units that lack the target language get it, marked for review; others are context."""

from collections.abc import Iterable

from typing_extensions import override

from docmt.formats.file_segments import FileSegment
from docmt.formats.markup import Element, draft_of, elements, indentation, read_xml
from docmt.formats.translatable_file import Edit, MarkupFile, language_of, language_tag

# Inline elements that hold code, not text.
OPAQUE = ("bpt", "ept", "it", "ph", "ut")
NOTE = '<prop type="x-docmt">machine translation, needs review</prop>'


class TmxFile(MarkupFile):
    """A TMX file, as one document: each unit with the source language is a segment."""

    name = "tmx"
    suffixes = (".tmx",)

    @override
    def find(self) -> list[list[FileSegment]]:
        self._open: list[tuple[Element | None, Element, FileSegment]] = []
        document = []
        units = read_units(self.text, where=self.where)
        codes = [_language(variant) for unit in units for variant in elements(unit.content, "tuv")]
        src, tgt = map(language_of, (self.languages.src, self.languages.tgt))
        tag = language_tag(self.languages.tgt)
        self._code = next((code for code in codes if language_of(code) == tgt), tag)  # as in other units
        if src not in map(language_of, codes):
            self.languages.check(next(iter(codes), None), None, where=self.where)
        for unit in units:
            variants = unit_variants(unit)
            source, target = variants.get(src), variants.get(tgt)
            if source is None:
                continue
            is_wanted = target is None or not self.text[slice(*target.inner)].strip()
            draft = draft_of(self.text, source.content, opaque=OPAQUE)
            segment = draft.segment(*source.inner, is_wanted=is_wanted)
            if is_wanted:
                self._open.append((target, unit, segment))
            document.append(segment)
        return [document]

    @override
    def edits(self) -> Iterable[Edit]:
        for target, unit, segment in self._open:
            if segment.filled is None:
                continue
            content = f"<seg>{self.render(segment, segment.filled)}</seg>"
            if target is not None:
                yield *target.outer, NOTE + content
                continue
            # The new variant follows the last one, with the same indentation.
            start, last = elements(unit.content, "tuv")[-1].outer
            new = f'<tuv xml:lang="{self._code}">{NOTE}{content}</tuv>'
            yield last, last, indentation(self.text, start) + new


def read_units(text: str, *, where: str) -> list[Element]:
    """The units of a TMX file."""
    return elements(read_xml(text, root="tmx", where=where)[1], "tu")


def unit_variants(unit: Element) -> dict[str, Element]:
    """The `seg` of each language of a unit, under its code and, if that is free, without region: `en-US`, `en`."""
    found: dict[str, Element] = {}
    for variant in elements(unit.content, "tuv"):
        lang = _language(variant).lower()
        if segments := elements(variant.content, "seg"):
            found.setdefault(lang, segments[0])
            found.setdefault(language_of(lang), segments[0])
    return found


def _language(variant: Element) -> str:
    return variant.opening.get("xml:lang") or variant.opening.get("lang") or ""
