"""Plain lines: `<d>` markers (Maruf et al. 2019), blank lines, no boundaries, or a list of line numbers (MSCTD)."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import SideDocument, SideFile, align, pick
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines
from docmt.settings import Settings


class MarkedLines(Settings):
    """One file per language, one sentence per line, and a marker line before each document."""

    reader: Literal["marked_lines"]
    """Name of the format."""
    marker: str = "<d>"
    """The line that begins a document."""


class BlankLines(Settings):
    """One file per language, one sentence per line, and blank lines between documents."""

    reader: Literal["blank_lines"]
    """Name of the format."""


class SingleLines(Settings):
    """One file per language, one sentence per line, no documents: every line is a separate document."""

    reader: Literal["single_lines"]
    """Name of the format."""


class IndexedLines(Settings):
    """One file per language, and a third (role `index`) with the line numbers (from 0) of each document."""

    reader: Literal["indexed_lines"]
    """Name of the format."""


def read_marked_lines(files: Mapping[str, Path], *, form: MarkedLines, languages: Sequence[str]) -> ReaderResult:
    """Read files with marker lines; an empty line is an empty sentence.

    Raises UserError when text precedes the first marker or the sides do not correspond.
    """
    paths = [pick(files, lang, form.reader) for lang in languages]
    return align([SideFile(path, _marked_parts(path, form.marker)) for path in paths])


def _marked_parts(path: Path, marker: str) -> list[SideDocument]:
    """The documents of one file with marker lines. Raises UserError when text precedes the first marker."""
    parts: list[SideDocument] = []
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip() == marker:
            parts.append(SideDocument(None, number))
        elif parts:
            parts[-1].add(line, line=number)
        else:
            raise UserError(f"{path}: line {number} comes before the first {marker!r} line")
    return parts


def read_blank_lines(files: Mapping[str, Path], *, form: BlankLines, languages: Sequence[str]) -> ReaderResult:
    """Read documents separated by blank lines. A run of blank lines is one boundary, so no sentence can be empty.

    Raises UserError when the sides do not correspond.
    """
    paths = [pick(files, lang, form.reader) for lang in languages]
    return align([SideFile(path, _blank_parts(path)) for path in paths])


def _blank_parts(path: Path) -> list[SideDocument]:
    """The documents of one file, separated by blank lines."""
    parts: list[SideDocument] = []
    is_inside = False
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip(" \t\r"):
            is_inside = False
            continue
        if not is_inside:
            parts.append(SideDocument(None, number))
            is_inside = True
        parts[-1].add(line, line=number)
    return parts


def read_single_lines(files: Mapping[str, Path], *, form: SingleLines, languages: Sequence[str]) -> ReaderResult:
    """Read sentence pairs without documents, one at a time. Raises UserError when the numbers of lines differ."""
    src, tgt = (pick(files, lang, form.reader) for lang in languages)
    n_pairs, n_tgt = (sum(1 for _ in iterate_lines(path)) for path in (src, tgt))
    _check_equal(src, n_pairs, tgt, n_tgt)
    if not n_pairs:
        raise UserError(f"{src}: contains no sentences")
    pairs = zip(iterate_lines(src), iterate_lines(tgt), strict=True)
    collector = Collector()
    return collector.stream((f"{n:08d}", [pair]) for n, pair in enumerate(pairs, start=1)), collector.counts


def read_indexed_lines(files: Mapping[str, Path], *, form: IndexedLines, languages: Sequence[str]) -> ReaderResult:
    """Read documents whose line numbers are in an index file, one JSON list per line.

    Lines that no list names are counted as dropped. Raises UserError when a list is malformed, or names a line that
    does not exist or was already named.
    """
    src_path, src, tgt = _line_pairs(files, form.reader, languages)
    index = pick(files, "index", form.reader)
    collector = Collector()
    used: set[int] = set()
    for number, line in enumerate(read_lines(index), start=1):
        for place in (places := _places(line, f"{index}: line {number}")):
            if place >= len(src):
                raise UserError(f"{index}: line {number} names line {place} (from 0), but {src_path} has {len(src)}")
            if place in used:
                raise UserError(f"{index}: line {number} names line {place} (from 0) a second time")
            used.add(place)
        collector.add(f"{number:05d}", [(src[place], tgt[place]) for place in places])
    collector.drop("line in no document", len(src) - len(used))
    return collector.result(if_empty=f"{index}: names no sentences")


def _places(line: str, where: str) -> list[int]:
    try:
        places = json.loads(line)
    except json.JSONDecodeError:
        places = None
    if not isinstance(places, list) or any(type(place) is not int or place < 0 for place in places):
        raise UserError(f"{where} is not a list of line numbers such as [0, 1, 2]")
    return places


def _line_pairs(files: Mapping[str, Path], reader: str, languages: Sequence[str]) -> tuple[Path, list[str], list[str]]:
    """The path of the source file, and both files as lines. Raises UserError when the numbers of lines differ."""
    (src_path, src), (tgt_path, tgt) = ((path := pick(files, lang, reader), read_lines(path)) for lang in languages)
    _check_equal(src_path, len(src), tgt_path, len(tgt))
    return src_path, src, tgt


def _check_equal(src: Path, n_src: int, tgt: Path, n_tgt: int) -> None:
    if n_src != n_tgt:
        raise UserError(
            f"{n_src} lines in {src}, {n_tgt} in {tgt}: line {min(n_src, n_tgt) + 1} is the first without a counterpart"
        )
