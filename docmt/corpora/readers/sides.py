"""One file per language: matching the documents and sentences of its sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.errors import UserError


@dataclass
class SideDocument:
    """One document of one language.

    Attributes:
        id: its name in the file, or None when the format has no names.
        line: line of the file where it starts, from 1.
        sentences: its sentences.
        lines: the line of each sentence, from 1.
        keys: the name of each sentence within the document (`<seg id>`); empty when the format has none.
    """

    id: str | None
    line: int
    sentences: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def add(self, sentence: str, *, line: int, key: str | None = None) -> None:
        """Append a sentence."""
        self.sentences.append(sentence)
        self.lines.append(line)
        if key is not None:
            self.keys.append(key)

    @property
    def end(self) -> int:
        """The line after the last sentence."""
        return (self.lines[-1] if self.lines else self.line) + 1


@dataclass(frozen=True)
class SideFile:
    """All documents of one language, and the file they come from."""

    path: Path
    parts: Sequence[SideDocument]


def pick(files: Mapping[str, Path], role: str, reader: str) -> Path:
    """The file with a role. Raises UserError that lists the roles that the split has."""
    if role not in files:
        raise UserError(f"format {reader}: needs a file for {role!r}; the split has only {', '.join(files) or 'none'}")
    return files[role]


def align(sides: Sequence[SideFile], collector: Collector | None = None) -> ReaderResult:
    """Make documents of one side, or of two whose documents and sentences correspond.

    Raises UserError that names both files, the document and the first bad line when a document or a sentence has
    no counterpart, or when a side has no sentences.
    """
    collector = collector or Collector()
    for side in sides:
        if not any(part.sentences for part in side.parts):
            raise UserError(f"{side.path}: contains no sentences")
    rows = _pairs(*sides) if len(sides) == 2 else [(part,) for part in sides[0].parts]
    for number, parts in enumerate(rows, start=1):
        collector.add(_name(number, parts), zip(*(part.sentences for part in parts), strict=True))
    return collector.documents, collector.counts


def _name(number: int, parts: Sequence[SideDocument]) -> str:
    return next((part.id for part in parts if part.id), f"{number:05d}")


def _pairs(src: SideFile, tgt: SideFile) -> list[tuple[SideDocument, SideDocument]]:
    """The documents of both sides, with equal numbers of sentences."""
    pairs = list(zip(src.parts, _in_order(src, tgt), strict=False))
    for number, pair in enumerate(pairs, start=1):
        _check_part(_name(number, pair), src, pair[0], tgt, pair[1])
    _check_numbers(src, tgt)
    return pairs


def _in_order(src: SideFile, tgt: SideFile) -> Sequence[SideDocument]:
    """The target parts in the order of the source parts if both have names, else in file order."""
    src_ids, tgt_ids = ([part.id for part in side.parts] for side in (src, tgt))
    if src_ids == tgt_ids or None in src_ids or None in tgt_ids:
        return tgt.parts
    by_id = {part.id: part for part in tgt.parts}
    if len(by_id) != len(tgt_ids) or len(set(src_ids)) != len(src_ids):
        number = next(i for i, (a, b) in enumerate(zip_longest(src_ids, tgt_ids)) if a != b)
        place = src.parts[min(number, len(src_ids) - 1)]
        raise UserError(f"{src.path} line {place.line}: document {place.id} is in a different position in {tgt.path}")
    for one, other in ((src, tgt), (tgt, src)):
        known = {part.id for part in other.parts}
        lost = next((part for part in one.parts if part.id not in known), None)
        if lost:
            raise UserError(f"{one.path} line {lost.line}: document {lost.id} is not in {other.path}")
    return [by_id[name] for name in src_ids]


def _check_part(name: str, src: SideFile, src_part: SideDocument, tgt: SideFile, tgt_part: SideDocument) -> None:
    counts = len(src_part.sentences), len(tgt_part.sentences)
    for index, (src_key, tgt_key) in enumerate(zip(src_part.keys, tgt_part.keys, strict=False)):
        if src_key != tgt_key:
            raise UserError(
                f"document {name}: sentence {src_key} ({src.path} line {src_part.lines[index]}) is paired with "
                f"sentence {tgt_key} ({tgt.path} line {tgt_part.lines[index]}): a sentence is missing on one side"
            )
    if counts[0] == counts[1]:
        return
    shorter = min(counts)
    src_line, tgt_line = (p.lines[shorter] if len(p.lines) > shorter else p.end for p in (src_part, tgt_part))
    raise UserError(
        f"document {name}: {counts[0]} sentences in {src.path}, {counts[1]} in {tgt.path}; they diverge no later than "
        f"line {src_line} of the first file and line {tgt_line} of the second: align the files"
    )


def _check_numbers(src: SideFile, tgt: SideFile) -> None:
    n_src, n_tgt = len(src.parts), len(tgt.parts)
    if n_src != n_tgt:
        longer, shorter = (src, tgt) if n_src > n_tgt else (tgt, src)
        first = longer.parts[len(shorter.parts)]
        raise UserError(
            f"{n_src} documents in {src.path}, {n_tgt} in {tgt.path}: document {len(shorter.parts) + 1} "
            f"({longer.path} line {first.line}) has no counterpart"
        )
