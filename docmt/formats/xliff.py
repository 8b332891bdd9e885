"""XLIFF 1.2 and 2: units without a translation are filled and marked for review; translated ones are context."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from docmt.errors import UserError
from docmt.formats.files import Edit, TextFile, escape_markup
from docmt.formats.markup import Element, check_xml, draft_of, elements, tokens
from docmt.formats.segments import FileSegment

OPAQUE = ("bpt", "ept", "ph", "it", "x", "bx", "ex", "cp", "sc", "ec")
"""Inline elements that hold code, not text."""
REVIEW = {"1": ("target", "needs-review-translation"), "2": ("segment", "translated")}
"""What gets the attribute `state`, and its value: in version 2, the states after `translated` say it was reviewed."""
STATE = re.compile(r"\s+(?:state|subState|state-qualifier)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
OPEN_STATES = ("new", "needs-translation", "initial")


@dataclass(frozen=True)
class _Unit:
    """A unit that is to be filled: a `trans-unit`, or a `segment` of version 2."""

    element: Element
    source: Element
    target: Element | None
    segment: FileSegment


class XliffFile(TextFile):
    """An XLIFF file: each of its `file` elements is a document."""

    name = "xliff"
    suffixes = (".xlf", ".xliff")

    def find(self) -> list[list[FileSegment]]:
        """A segment for each unit."""
        check_xml(self.text, where=self.where)
        stream = list(tokens(self.text))
        root = next(token for token in stream if token.kind != "other" and token.name)
        if root.name.rpartition(":")[2] != "xliff":
            raise UserError(f"{self.where}: is XML, but not XLIFF (its root is <{root.name}>)")
        self._version = "2" if (root.get("version") or "").startswith("2") else "1"
        self._prefix = root.name.removesuffix("xliff")
        self._units: list[_Unit] = []
        return [list(self._document(file)) for file in elements(stream, "file")]

    def _document(self, file: Element) -> Iterator[FileSegment]:
        for unit in elements(file.content, "trans-unit" if self._version == "1" else "unit"):
            for element in [unit] if self._version == "1" else elements(unit.content, "segment"):
                yield from self._unit(element, unit)

    def _unit(self, element: Element, unit: Element) -> Iterator[FileSegment]:
        alternatives = [each.outer for each in elements(element.content, "alt-trans")]
        stream = [t for t in element.content if not any(start <= t.start < end for start, end in alternatives)]
        source, target = (next(iter(elements(stream, name)), None) for name in ("source", "target"))
        if source is None or unit.opening.get("translate") == "no":
            return
        source = next(iter(elements(stream, "seg-source")), source)
        state = (element if self._version == "2" else target or element).opening.get("state")
        is_empty = target is None or not self.text[slice(*target.inner)].strip()
        is_wanted = (is_empty or state in OPEN_STATES) and unit.opening.get("approved") != "yes"
        collapse = unit.opening.get("xml:space") != "preserve"
        draft = draft_of(
            self.text, source.content, opaque=lambda token: token.name.rpartition(":")[2] in OPAQUE, collapse=collapse
        )
        segment = draft.segment(*source.inner, is_wanted=is_wanted)
        if is_wanted:
            self._units.append(_Unit(element, source, target, segment))
        yield segment

    def escape(self, text: str) -> str:
        """Text as XML writes it."""
        return escape_markup(text)

    def edits(self) -> Iterable[Edit]:
        """A target for each filled unit, and its state."""
        marked, state = REVIEW[self._version]
        for unit in self._units:
            if unit.segment.filled is None:
                continue
            content = self.render(unit.segment, unit.segment.filled)
            attribute = f' state="{state}"' if marked == "target" else ""
            if unit.target is None:
                new = f"<{self._prefix}target{attribute}>{content}</{self._prefix}target>"
                yield unit.source.closing.end, unit.source.closing.end, self._indent(unit.source) + new
            else:
                kept = _without_state(unit.target.opening.attributes) if attribute else unit.target.opening.attributes
                name = unit.target.opening.name
                yield *unit.target.outer, f"<{name}{kept.rstrip()}{attribute}>{content}</{name}>"
            if marked == "segment":
                opening = unit.element.opening
                kept = _without_state(opening.attributes).rstrip()
                yield opening.start, opening.end, f'<{opening.name}{kept} state="{state}">'

    def _indent(self, source: Element) -> str:
        """The line end and the blanks before the source, so that the target stands below it."""
        before = self.text[: source.opening.start]
        blanks = before[len(before.rstrip()) :]
        return blanks if "\n" in blanks else ""


def _without_state(attributes: str) -> str:
    """The attributes of a tag without its state."""
    return STATE.sub("", attributes)
