"""Lines: `<d>` markers (Maruf et al. 2019), blank lines, files, no boundaries, line numbers (MSCTD), CoNLL-U."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from typing_extensions import override

from docmt.corpora.documents import Document
from docmt.corpora.file_patterns import paired_files
from docmt.corpora.readers.parallel_files import SideDocument, SideFormat, check_equal, read_equal
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.corpora.readers.tar_files import is_tar, read_members
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines, read_text

CONLLU_DOCUMENT = re.compile(r"#\s*newdoc(?:[\s_]+id)?\s*(?:=(.*))?$")
CONLLU_TEXT = re.compile(r"#\s*text\s*=\s?(.*)$")
CONLLU_NUMBER = re.compile(r"\d{1,6}(?:[.-]\d{1,6})?")
CONLLU_CELLS = 10


class MarkedLines(SideFormat):
    """One file per language with one sentence per line, and a marker line before each document."""

    n_languages = (1, 2)

    reader: FormatName[Literal["marked_lines"]]
    marker: str = "<d>"
    """Line that begins a document."""

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
    """One file per language with one sentence per line, and blank lines between documents."""

    n_languages = (1, 2)

    reader: FormatName[Literal["blank_lines"]]

    @override
    def side_documents(self, path: Path) -> list[SideDocument]:
        documents: list[SideDocument] = []
        is_inside = False  # a run of blank lines is one boundary, so sentences cannot be empty
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip(" \t\r"):
                is_inside = False
                continue
            if not is_inside:
                documents.append(SideDocument(None, number))
                is_inside = True
            documents[-1].add(line, line=number)
        return documents


class DocumentFiles(DocumentFormat):
    """One pattern of files per language, for example `en/*.txt`. Each file is a document with one sentence per line."""

    reader: FormatName[Literal["document_files"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        collector = DocumentCollector()
        for name, src, tgt in paired_files(paths, languages):
            collector.add(Path(name).stem, zip(*read_equal(src, tgt), strict=True))
        return collector.result(if_empty=f"{paths[0]}: contains no sentences")


class SingleLines(DocumentFormat):
    """One file per language. Each line is a document."""

    holds = "sentences"

    reader: FormatName[Literal["single_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src_lang, tgt_lang = languages
        src = self.pick(files, src_lang)
        tgt = self.pick(files, tgt_lang)
        # Counted first, so that a difference raises UserError at once, not after millions of lines.
        n_pairs = sum(1 for _ in iterate_lines(src))
        check_equal(src, n_pairs, tgt, sum(1 for _ in iterate_lines(tgt)))
        if not n_pairs:
            raise UserError(f"{src}: contains no sentences")
        collector = DocumentCollector()

        # One pair at a time, since such files have millions.
        def documents() -> Iterator[Document]:
            for number, pair in enumerate(zip(iterate_lines(src), iterate_lines(tgt), strict=True), start=1):
                document = collector.clean(f"{number:08d}", [pair])
                if document:
                    yield document

        return documents(), collector.counts


class IndexedLines(DocumentFormat):
    """One file per language, and a file (role `index`) with the line numbers of each document, from 0."""

    reader: FormatName[Literal["indexed_lines"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        src_lang, tgt_lang = languages
        src_path = self.pick(files, src_lang)
        tgt_path = self.pick(files, tgt_lang)
        src, tgt = read_equal(src_path, tgt_path)
        index = self.pick(files, "index")
        collector = DocumentCollector()
        used: set[int] = set()
        for number, line in enumerate(read_lines(index), start=1):
            problem = f"{index}: line {number} must be a list of line numbers such as [0, 1, 2]"
            try:
                line_numbers = json.loads(line)
            except (RecursionError, ValueError):  # thousands of brackets; a number of thousands of digits
                raise UserError(problem) from None
            if not isinstance(line_numbers, list):
                raise UserError(problem)
            for line_number in line_numbers:
                if type(line_number) is not int or line_number < 0:
                    raise UserError(problem)
                if line_number >= len(src):
                    raise UserError(
                        f"{index}: line {number} names line {line_number} (from 0), but {src_path} has {len(src)}"
                    )
                if line_number in used:
                    raise UserError(f"{index}: line {number} names line {line_number} (from 0) a second time")
                used.add(line_number)
            collector.add(f"{number:05d}", [(src[line_number], tgt[line_number]) for line_number in line_numbers])
        collector.drop("line in no document", len(src) - len(used))
        return collector.result(if_empty=f"{index}: names no sentences")


class Conllu(SideFormat):
    """CoNLL-U (the role is the language), as a file or as a tar or tar.gz of files. Documents begin at `# newdoc`.

    The text of a sentence is its `# text`, otherwise its words.
    """

    n_languages = (1,)

    reader: FormatName[Literal["conllu"]]

    @override
    def side_documents(self, path: Path) -> list[SideDocument]:
        if not is_tar(path):
            return list(self._documents(read_text(path), where=str(path)))
        documents: list[SideDocument] = []
        for name, text in read_members(path, ".conllu", what="CoNLL-U"):
            documents += self._documents(text, where=f"{path}:{name}")
        return documents

    def _documents(self, content: str, *, where: str) -> Iterator[SideDocument]:
        document = None
        text = None
        words: list[list[str]] = []
        # A sentence ends at an empty line, or where the next sentence or document begins.
        for number, line in enumerate([*content.split("\n"), ""], start=1):
            line = line.removesuffix("\r")
            new = CONLLU_DOCUMENT.match(line)
            named = CONLLU_TEXT.match(line)
            if (words or text is not None) and (new or not line or (named and text is not None)):
                if document is None:
                    raise UserError(f"{where}: line {number}: a sentence comes before the first `# newdoc`")
                if text is None:
                    text = _spelled(words, where=f"{where}: line {number}")
                document.add(text, line=number - 1)
                text = None
                words = []
            if new:
                name = (new[1] or "").strip()
                # Some treebanks repeat the document name at every sentence.
                if document is None or not name or document.id != name:
                    if document is not None:
                        yield document
                    document = SideDocument(name or "unnamed", number)
            elif named:
                text = named[1]
            elif line and not line.startswith("#"):
                words.append(line.split("\t"))
        if document is not None:
            yield document


def _spelled(rows: Sequence[Sequence[str]], *, where: str) -> str:
    """Return the text of a CoNLL-U sentence that ends at `where`, from word forms and `SpaceAfter=No`."""
    text = ""
    last = 0
    for cells in rows:
        if len(cells) != CONLLU_CELLS or not CONLLU_NUMBER.fullmatch(cells[0]):
            raise UserError(f"{where}: the previous sentence has a line that is not a word (number and 9 cells)")
        first, _, end = cells[0].partition("-")
        # A multiword token (`3-4`) precedes its words. Empty nodes (`5.1`) are not in the text.
        if "." in first or int(first) <= last:
            continue
        last = int(end or first)
        text += cells[1]
        # A whole entry: `CorrectSpaceAfter=No` describes corrected text.
        if "SpaceAfter=No" not in cells[9].split("|"):
            text += " "
    return text.rstrip()
