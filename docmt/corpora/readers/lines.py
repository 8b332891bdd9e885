"""Lines: `<d>` markers (Maruf et al. 2019), blank lines, files, no boundaries, line numbers (MSCTD), CoNLL-U."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from typing_extensions import override

from docmt.corpora.documents import Document
from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.parallel_files import SideDocument, SideFormat, check_equal, read_equal
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.corpora.readers.tar_files import read_members
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines
from docmt.languages import language_of

CONLLU_DOCUMENT, CONLLU_SENTENCE = "# newdoc id = ", "# text = "


class MarkedLines(SideFormat):
    """One file per language, one sentence per line, and a marker line before each document."""

    n_languages = (1, 2)

    reader: FormatName[Literal["marked_lines"]]
    marker: str = "<d>"
    """The line that begins a document."""

    @override
    def side_documents(self, path: Path) -> list[SideDocument]:
        documents: list[SideDocument] = []
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip() == self.marker:
                documents.append(SideDocument(None, number))
            elif documents:
                documents[-1].add(line, line=number)
            else:
                raise UserError(f"{path}: line {number} comes before the first {self.marker!r} line")
        return documents


class BlankLines(SideFormat):
    """One file per language, one sentence per line, and blank lines between documents."""

    n_languages = (1, 2)

    reader: FormatName[Literal["blank_lines"]]

    @override
    def side_documents(self, path: Path) -> list[SideDocument]:
        documents: list[SideDocument] = []
        is_inside = False  # a run of blank lines is one boundary, so that no sentence can be empty
        for number, line in enumerate(read_lines(path), start=1):
            was_inside, is_inside = is_inside, bool(line.strip(" \t\r"))
            if is_inside and not was_inside:
                documents.append(SideDocument(None, number))
            if is_inside:
                documents[-1].add(line, line=number)
        return documents


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
            collector.add(Path(name).stem, zip(*read_equal(src_path, tgt[name]), strict=True))
        return collector.result(if_empty=f"{paths[0]}: contains no sentences")


class SingleLines(DocumentFormat):
    """One file per language; every line is a document."""

    holds = "sentences"

    reader: FormatName[Literal["single_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src, tgt = (self.pick(files, lang) for lang in languages)
        # Counted before anything is yielded: a difference must show at the beginning, not after millions of lines.
        n_pairs, n_tgt = (sum(1 for _ in iterate_lines(path)) for path in (src, tgt))
        check_equal(src, n_pairs, tgt, n_tgt)
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
        src, tgt = read_equal(src_path, tgt_path)
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


class Conllu(SideFormat):
    """A tar (or tar.gz) of CoNLL-U files, role: the language. Documents are at `# newdoc id`, sentences at `# text`."""

    n_languages = (1,)

    reader: FormatName[Literal["conllu"]]

    @override
    def side_documents(self, path: Path) -> list[SideDocument]:
        documents: list[SideDocument] = []
        for member, content in read_members(path, ".conllu", what="CoNLL-U"):
            n_before = len(documents)
            for number, line in enumerate(content.split("\n"), start=1):
                if line.startswith(CONLLU_DOCUMENT):
                    documents.append(SideDocument(line.removeprefix(CONLLU_DOCUMENT) or "unnamed", number))
                elif line.startswith(CONLLU_SENTENCE):
                    if len(documents) == n_before:
                        start = CONLLU_DOCUMENT.strip()
                        raise UserError(f"{path}:{member}: a sentence comes before the first `{start}`")
                    documents[-1].add(line.removeprefix(CONLLU_SENTENCE), line=number)
        return documents
