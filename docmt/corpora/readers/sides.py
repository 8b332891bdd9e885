"""Two files, one per language, that hold the same documents: how their parts are brought together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from docmt.corpora.documents import Document
from docmt.corpora.readers.collector import Collector, Counts
from docmt.errors import UserError


@dataclass
class Part:
    """One document of one language.

    Attributes:
        id: its name in the file, or None when the format has no names.
        line: line of the file where it starts, from 1.
        sentences: its sentences.
        lines: the line of each sentence, from 1.
        keys: the name of each sentence inside the document (`<seg id>`), or empty when the format has none.
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
class Side:
    """All documents of one language, and the file they come from."""

    path: Path
    parts: Sequence[Part]


def pick(files: Mapping[str, Path], role: str, reader: str) -> Path:
    """The file that plays a role. Raises UserError that lists the roles that are there."""
    if role not in files:
        raise UserError(
            f"format {reader}: needs a file for {role!r}; the split names only {', '.join(files) or 'none'}"
        )
    return files[role]


def align(src: Side, tgt: Side, collector: Collector | None = None) -> tuple[list[Document], Counts]:
    """Pair document with document and sentence with sentence.

    Raises UserError that names both files, the document and the first bad line when a document or a sentence has
    no partner, or when there is nothing at all.
    """
    collector = collector or Collector()
    for side in (src, tgt):
        if not any(part.sentences for part in side.parts):
            raise UserError(f"{side.path}: holds no sentences")
    tgt_parts = _in_order(src, tgt)
    for number, (src_part, tgt_part) in enumerate(zip(src.parts, tgt_parts, strict=False), start=1):
        name = src_part.id or tgt_part.id or f"{number:05d}"
        _check_part(name, src, src_part, tgt, tgt_part)
        collector.add(name, zip(src_part.sentences, tgt_part.sentences, strict=True))
    _check_numbers(src, tgt)
    return collector.documents, collector.counts


def _in_order(src: Side, tgt: Side) -> Sequence[Part]:
    """The target parts in the order of the source parts, when both have names; otherwise as they stand."""
    src_ids, tgt_ids = ([part.id for part in side.parts] for side in (src, tgt))
    if src_ids == tgt_ids or None in src_ids or None in tgt_ids:
        return tgt.parts
    by_id = {part.id: part for part in tgt.parts}
    if len(by_id) != len(tgt_ids) or len(set(src_ids)) != len(src_ids):
        number = next(i for i, (a, b) in enumerate(zip([*src_ids, None], [*tgt_ids, None], strict=False)) if a != b)
        place = src.parts[min(number, len(src_ids) - 1)]
        raise UserError(f"{src.path} line {place.line}: document {place.id} has another place in {tgt.path}")
    for one, other in ((src, tgt), (tgt, src)):
        known = {part.id for part in other.parts}
        lost = next((part for part in one.parts if part.id not in known), None)
        if lost:
            raise UserError(f"{one.path} line {lost.line}: document {lost.id} is not in {other.path}")
    return [by_id[name] for name in src_ids]


def _check_part(name: str, src: Side, src_part: Part, tgt: Side, tgt_part: Part) -> None:
    counts = len(src_part.sentences), len(tgt_part.sentences)
    for index, (src_key, tgt_key) in enumerate(zip(src_part.keys, tgt_part.keys, strict=False)):
        if src_key != tgt_key:
            raise UserError(
                f"document {name}: sentence {src_key} ({src.path} line {src_part.lines[index]}) stands beside sentence "
                f"{tgt_key} ({tgt.path} line {tgt_part.lines[index]}): a sentence is missing on one side"
            )
    if counts[0] == counts[1]:
        return
    shorter = min(counts)
    src_line, tgt_line = (p.lines[shorter] if len(p.lines) > shorter else p.end for p in (src_part, tgt_part))
    raise UserError(
        f"document {name}: {counts[0]} sentences in {src.path}, {counts[1]} in {tgt.path}; they part at the latest at "
        f"line {src_line} of the first and line {tgt_line} of the second file: align the files"
    )


def _check_numbers(src: Side, tgt: Side) -> None:
    n_src, n_tgt = len(src.parts), len(tgt.parts)
    if n_src != n_tgt:
        longer, shorter = (src, tgt) if n_src > n_tgt else (tgt, src)
        first = longer.parts[len(shorter.parts)]
        raise UserError(
            f"{n_src} documents in {src.path}, {n_tgt} in {tgt.path}: document {len(shorter.parts) + 1} "
            f"({longer.path} line {first.line}) has no partner"
        )
