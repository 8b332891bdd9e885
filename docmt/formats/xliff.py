"""XLIFF 1.2 and 2: units without a translation are filled and marked for review; translated ones are context."""

import re
from collections.abc import Iterable, Iterator

from typing_extensions import override

from docmt.formats.file_segments import FileSegment
from docmt.formats.markup import Element, Token, draft_of, elements, indentation, merged, read_xml
from docmt.formats.translatable_file import Edit, MarkupFile, language_tag

# Inline elements that hold code, not text.
OPAQUE = ("bpt", "ept", "ph", "it", "x", "bx", "ex", "cp", "sc", "ec")
# Element with the attribute `state`, and its value; in version 2, the states after `translated` mean a review.
REVIEW = {"1": ("target", "needs-review-translation"), "2": ("segment", "translated")}
STATE = re.compile(r"(?<!\s)\s++(?:state|subState|state-qualifier)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
OPEN_STATES = ("new", "needs-translation", "initial")


class XliffFile(MarkupFile):
    """An XLIFF file: each of its `file` elements is a document, each unit a segment.

    `_open` holds the units to fill (a `trans-unit`, or a `segment` of version 2), with their sources and targets.
    """

    name = "xliff"
    suffixes = (".xlf", ".xliff")

    @override
    def find(self) -> list[list[FileSegment]]:
        root, stream = read_xml(self.text, root="xliff", where=self.where)
        self._version = "2" if (root.get("version") or "").startswith("2") else "1"
        self._prefix = root.name.removesuffix("xliff")
        self._open: list[tuple[Element, Element, Element | None, FileSegment]] = []
        documents = []
        self._undeclared: dict[int, Token] = {}
        src, self._target = ("source-language", "target-language") if self._version == "1" else ("srcLang", "trgLang")
        for file in elements(stream, "file"):
            holder = file.opening if self._version == "1" else root
            self.languages.check(holder.get(src), holder.get(self._target), where=self.where)
            if holder.get(self._target) is None:
                self._undeclared[holder.start] = holder
            units = elements(file.content, "trans-unit" if self._version == "1" else "unit")
            documents.append([segment for unit in units for segment in self._segments(unit)])
        return documents

    def _segments(self, unit: Element) -> Iterator[FileSegment]:
        for element in [unit] if self._version == "1" else elements(unit.content, "segment"):
            # Proposals of a translation memory have a source and a target, too.
            stream = list(merged(element.content, lambda token: token.local_name == "alt-trans"))
            source, target = (next(iter(elements(stream, name)), None) for name in ("source", "target"))
            if source is None or unit.opening.get("translate") == "no":
                continue
            source = next(iter(elements(stream, "seg-source")), source)
            state = (element if self._version == "2" else target or element).opening.get("state")
            is_empty = target is None or not self.text[slice(*target.inner)].strip()
            is_wanted = (is_empty or state in OPEN_STATES) and unit.opening.get("approved") != "yes"
            collapse = unit.opening.get("xml:space") != "preserve"
            draft = draft_of(self.text, source.content, opaque=OPAQUE, collapse=collapse)
            segment = draft.segment(*source.inner, is_wanted=is_wanted)
            if is_wanted:
                self._open.append((element, source, target, segment))
            yield segment

    @override
    def edits(self) -> Iterable[Edit]:
        marked, state = REVIEW[self._version]
        if any(segment.filled is not None for *_, segment in self._open):
            for holder in self._undeclared.values():
                place = holder.start + 1 + len(holder.name)
                yield place, place, f' {self._target}="{language_tag(self.languages.tgt)}"'
        for element, source, target, segment in self._open:
            if segment.filled is None:
                continue
            content = self.render(segment, segment.filled)
            attribute = f' state="{state}"' if marked == "target" else ""
            if target is None:
                new = f"<{self._prefix}target{attribute}>{content}</{self._prefix}target>"
                _, place = source.outer
                yield place, place, indentation(self.text, source.opening.start) + new
            else:
                kept, name = target.opening.attributes, target.opening.name
                kept = STATE.sub("", kept) if attribute else kept
                yield *target.outer, f"<{name}{kept.rstrip()}{attribute}>{content}</{name}>"
            if marked == "segment":
                opening = element.opening
                kept = STATE.sub("", opening.attributes).rstrip()
                yield opening.start, opening.end, f'<{opening.name}{kept} state="{state}">'
