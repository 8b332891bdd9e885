"""Plain lines: `<d>` markers (Maruf et al. 2019), blank lines, files, no boundaries, or line numbers (MSCTD)."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from typing_extensions import override

from docmt.corpora.documents import Document
from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.parallel_files import SideDocument, SideFile, align
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines
from docmt.formats.translatable_file import language_of


class MarkedLines(DocumentFormat):
    """One file per language, one sentence per line, and a marker line before each document."""

    n_languages = (1, 2)

    reader: FormatName[Literal["marked_lines"]]
    marker: str = "<d>"
    """The line that begins a document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        return align([self._side(self.pick(files, lang)) for lang in languages])

    def _side(self, path: Path) -> SideFile:
        documents: list[SideDocument] = []
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip() == self.marker:
                documents.append(SideDocument(None, number))
            elif documents:
                documents[-1].add(line, line=number)
            else:
                raise UserError(f"{path}: line {number} comes before the first {self.marker!r} line")
        return SideFile(path, documents)


class BlankLines(DocumentFormat):
    """One file per language, one sentence per line, and blank lines between documents."""

    n_languages = (1, 2)

    reader: FormatName[Literal["blank_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        return align([self._side(self.pick(files, lang)) for lang in languages])

    def _side(self, path: Path) -> SideFile:
        documents: list[SideDocument] = []
        is_inside = False  # a run of blank lines is one boundary, so that no sentence can be empty
        for number, line in enumerate(read_lines(path), start=1):
            was_inside, is_inside = is_inside, bool(line.strip(" \t\r"))
            if is_inside and not was_inside:
                documents.append(SideDocument(None, number))
            if is_inside:
                documents[-1].add(line, line=number)
        return SideFile(path, documents)


class DocumentFiles(DocumentFormat):
    """A pattern of files per language (`en/*.txt`): a file is a document, one sentence per line."""

    reader: FormatName[Literal["document_files"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        src, tgt = sides = dict[str, Path](), dict[str, Path]()
        for side, path, lang in zip(sides, paths, languages, strict=True):
            # Names without the language, as the pattern spells it (`*.eng`): alone between dots, dashes, slashes, ….
            words = re.split("[._/-]", path.as_posix())
            spelled = {lang, *(word for word in words if language_of(word) == language_of(lang))}
            codes = "|".join(map(re.escape, spelled))
            for name, file in matching_files(path):
                if side.setdefault(re.sub(rf"(^|[._/-])(?:{codes})(?![^._/-])", "", name), file) != file:
                    raise UserError(f"{file}: differs from another file of {path} in the language alone: rename it")
        for side, other, where in ((src, tgt, paths[1]), (tgt, src, paths[0])):
            if lone := next((file for name, file in side.items() if name not in other), None):
                raise UserError(f"{lone}: has no counterpart among {where}")
        collector = DocumentCollector()
        for name, src_path in src.items():
            src_lines, tgt_lines = read_lines(src_path), read_lines(tgt[name])
            _check_equal(src_path, len(src_lines), tgt[name], len(tgt_lines))
            collector.add(Path(name).stem, zip(src_lines, tgt_lines, strict=True))
        return collector.result(if_empty=f"{paths[0]}: contains no sentences")


class SingleLines(DocumentFormat):
    """One file per language, one sentence per line, no documents: every line is a separate document."""

    holds = "sentences"

    reader: FormatName[Literal["single_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src, tgt = (self.pick(files, lang) for lang in languages)
        # Counted before anything is yielded: a difference must show at the beginning, not after millions of lines.
        n_pairs, n_tgt = (sum(1 for _ in iterate_lines(path)) for path in (src, tgt))
        _check_equal(src, n_pairs, tgt, n_tgt)
        if not n_pairs:
            raise UserError(f"{src}: contains no sentences")
        collector = DocumentCollector()

        # One pair at a time: such files have millions.
        def documents() -> Iterator[Document]:
            for number, pair in enumerate(zip(iterate_lines(src), iterate_lines(tgt), strict=True), start=1):
                if document := collector.clean(f"{number:08d}", [pair]):
                    yield document

        return documents(), collector.counts


class IndexedLines(DocumentFormat):
    """One file per language, and a third (role `index`) with the line numbers (from 0) of each document."""

    reader: FormatName[Literal["indexed_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src_path, tgt_path = (self.pick(files, lang) for lang in languages)
        src, tgt = read_lines(src_path), read_lines(tgt_path)
        _check_equal(src_path, len(src), tgt_path, len(tgt))
        index = self.pick(files, "index")
        collector = DocumentCollector()
        used: set[int] = set()
        for number, line in enumerate(read_lines(index), start=1):
            try:
                places = json.loads(line)
            except (RecursionError, ValueError):  # thousands of brackets; a number of thousands of digits
                places = None
            if not isinstance(places, list) or any(type(place) is not int or place < 0 for place in places):
                raise UserError(f"{index}: line {number} is not a list of line numbers such as [0, 1, 2]")
            for place in places:
                if place >= len(src):
                    raise UserError(
                        f"{index}: line {number} names line {place} (from 0), but {src_path} has {len(src)}"
                    )
                if place in used:
                    raise UserError(f"{index}: line {number} names line {place} (from 0) a second time")
                used.add(place)
            collector.add(f"{number:05d}", [(src[place], tgt[place]) for place in places])
        collector.drop("line in no document", len(src) - len(used))
        return collector.result(if_empty=f"{index}: names no sentences")


def _check_equal(src: Path, n_src: int, tgt: Path, n_tgt: int) -> None:
    if n_src != n_tgt:
        raise UserError(
            f"{n_src} lines in {src}, {n_tgt} in {tgt}: line {min(n_src, n_tgt) + 1} is the first without a counterpart"
        )
