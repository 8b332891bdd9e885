"""Translation memories in TMX."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from docmt.corpora.patterns import matching_files
from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.files import read_text
from docmt.formats.markup import Element, draft_of, elements
from docmt.formats.segments import MARK
from docmt.formats.tmx import OPAQUE, read_units, unit_variants
from docmt.settings import Settings

Pair = tuple[str, str]


class Tmx(Settings):
    """A TMX translation memory (role `both`; a pattern such as `*.tmx` reads many): a file is a document."""

    reader: Literal["tmx"]
    """Name of the format."""
    document_prop: str | None = None
    """Type of the `<prop>` of a unit that names its document; null makes each file one document."""


def read_tmx(files: Mapping[str, Path], *, form: Tmx, languages: Sequence[str]) -> ReaderResult:
    """Read units that have both languages; inline tags are removed, others are counted as dropped."""
    path = pick(files, "both", form.reader)
    collector = Collector()
    for name, file in matching_files(path):
        documents: dict[str, list[Pair]] = {}
        text = read_text(file)
        for unit in read_units(text, where=str(file)):
            variants = unit_variants(unit)
            if not all(lang in variants for lang in languages):
                collector.drop("unit without both languages")
                continue
            src, tgt = (_plain(text, variants[lang]) for lang in languages)
            documents.setdefault(_prop(unit, form.document_prop) or name.removesuffix(".tmx"), []).append((src, tgt))
        for document, rows in documents.items():
            collector.add(document, rows)
    return collector.result(if_empty=f"{path}: contains no units in {' and '.join(languages)}")


def _plain(text: str, element: Element) -> str:
    """The text of a `seg` without inline elements, whose text is native code."""
    segment = draft_of(text, element.content, opaque=lambda token: token.name in OPAQUE).segment(0, 0)
    return MARK.sub(lambda found: segment.mark(found[0]).raw if segment.mark(found[0]).is_text else "", segment.text)


def _prop(unit: Element, kind: str | None) -> str | None:
    if kind is None:
        return None
    found = (each for each in elements(unit.content, "prop") if each.opening.get("type") == kind)
    return next(("".join(token.text for token in each.content).strip() for each in found), None)
