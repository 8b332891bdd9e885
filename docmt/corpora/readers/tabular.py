"""Tables and records: TSV, CSV, ParaDocs, Parquet, JSON, and lines with document ids in another file."""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt
from typing_extensions import override

from docmt.checksums import open_verified
from docmt.corpora.documents import Document
from docmt.corpora.file_patterns import existing_files
from docmt.corpora.readers.parallel_files import read_equal
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.errors import UserError, first_line
from docmt.files import iterate_jsonl, iterate_lines, read_json, read_text

# Line number (or row number), document id, and sentence pair.
Row = tuple[int, str, tuple[str, str]]
# Pages of a ParaDocs line, and its first and last line numbers on both.
PageLines = tuple[str, tuple[int, int], tuple[int, int]]
PARADOCS_CELLS = 18


class TsvLines(DocumentFormat):
    """One file (role `both`) with source, tab and target per line, without quoting. Blank lines separate documents.

    A line with only tabs is blank, too. With `id_column`, blank lines are left out and counted.
    """

    reader: FormatName[Literal["tsv"]]
    columns: list[PositiveInt] = Field(default=[1, 2], min_length=2, max_length=2)
    """Columns of source and target, counted from 1."""
    id_column: int | None = Field(default=None, ge=1)
    """Column of the document id. Default: blank lines separate documents."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        n_needed = max(*self.columns, self.id_column or 0)
        rows: list[Row] = []
        n_blocks = 0
        n_cells = 0
        n_blank = 0
        is_inside = False
        for number, line in enumerate(iterate_lines(path), start=1):
            if not line.strip():
                is_inside = False
                n_blank += 1
                continue
            if not is_inside:
                is_inside = True
                n_blocks += 1
            cells = line.removesuffix("\r").split("\t")
            if len(cells) < n_needed:
                raise UserError(
                    f"{path}: line {number} has {len(cells)} cells, but {n_needed} are needed: separate cells by tabs"
                )
            n_cells = n_cells or len(cells)
            if len(cells) != n_cells:
                raise UserError(
                    f"{path}: line {number} has {len(cells)} cells, but the lines before it have {n_cells}: does a "
                    "sentence contain a tab?"
                )
            name = f"{n_blocks:05d}"
            if self.id_column is not None:
                name = cells[self.id_column - 1]
            rows.append((number, name, (cells[self.columns[0] - 1], cells[self.columns[1] - 1])))
        if self.id_column is None:
            n_blank = 0
        return _documents(rows, path, if_empty="contains no sentences", n_blank=n_blank)


class NamedColumns(DocumentFormat):
    """A table whose columns have names."""

    id: str | None = "id"
    """Column of the document id. null: each row is a document."""
    source: str = "source"
    """Column of the source sentence."""
    target: str = "target"
    """Column of the target sentence."""

    def find_columns(self, header: Sequence[str], *, where: str) -> list[str]:
        """Return the columns to read, the id first."""
        columns = [name.strip() for name in (self.id, self.source, self.target) if name is not None]
        for name in columns:
            if name not in header:
                raise UserError(f"{where}: has no column {name!r}; it has {', '.join(header) or 'none'}")
        return columns


class DialogueCsv(NamedColumns):
    """One CSV file (role `both`) with a header line and columns for the dialogue id and both languages."""

    reader: FormatName[Literal["dialogue_csv"]]
    delimiter: str = Field(default=",", pattern=r'^[^\r\n"]$')
    """Character between cells."""
    quotes: bool = True
    """Quotation marks enclose cells. Set to false if they are text, as in TSV."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        # newline="" leaves line ends to the csv module, which accepts quoted ones. Neither splits at U+2028.
        quoting = csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE
        content = io.StringIO(read_text(path), newline="")
        reader = csv.reader(content, delimiter=self.delimiter, quoting=quoting, strict=True)
        rows: list[Row] = []
        try:
            header = [cell.strip() for cell in next(reader, [])]
            cells = [header.index(name) for name in self.find_columns(header, where=f"{path}: line 1")]
            for row in reader:
                number = reader.line_num
                if len(row) != len(header):
                    raise UserError(f"{path}: line {number} has {len(row)} cells, but the header has {len(header)}")
                *names, source, target = (row[cell] for cell in cells)
                name = names[0] if names else f"{len(rows) + 1:08d}"
                rows.append((number, name, (source, target)))
        except csv.Error as error:
            raise UserError(f"{path}: line {reader.line_num} is not CSV ({error})") from None
        return _documents(rows, path, if_empty="contains no sentences")


class NamedLines(DocumentFormat):
    """One file per language with one sentence per line, and a file (role `ids`) with the document id of each line."""

    reader: FormatName[Literal["named_lines"]]
    id_cells: int | None = Field(default=None, ge=1)
    """Number of tab-separated cells in the id, for example 2 in OPUS's `.ids` files. Default: the whole line."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, role) for role in ("ids", *languages)]
        ids, src, tgt = read_equal(*paths)
        if self.id_cells is not None:
            ids = [" ".join(line.split("\t")[: self.id_cells]) for line in ids]
        rows = zip(itertools.count(1), map(str.strip, ids), zip(src, tgt, strict=True))
        return _documents(rows, paths[0], if_empty="names no documents")


class ParaDocs(DocumentFormat):
    """ParaDocs files (role `both`), filtered as published (Wicks et al. 2024)."""

    reader: FormatName[Literal["paradocs"]]
    max_frequency: int = 100
    """Maximum frequency of a line in the collection. More frequent lines are left out and end a document."""
    min_language: float = 0.5
    """Minimum probability of both languages. Lines below it are left out and end a document."""
    max_gap: int = 2
    """Maximum number of missing lines between two sentences of a document."""
    min_sentences: int = 2
    """Minimum number of sentences per document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()

        # One document at a time, since the files have gigabytes.
        def documents() -> Iterator[Document]:
            pairs: list[tuple[str, str]] = []
            last = None
            n_documents = 0
            for number, line, file in _numbered_lines(path):
                page_lines = None
                if line.strip():
                    page_lines = self._place(line, file, number)
                if last and not (page_lines and self._are_consecutive(last, page_lines)):
                    n_documents += 1
                    document = None
                    if len(pairs) < self.min_sentences:
                        collector.drop("document too short", len(pairs))
                    else:
                        document = collector.clean(f"{last[0]}/{n_documents}", pairs)
                    if document:
                        yield document
                    pairs = []
                last = page_lines
                if page_lines:
                    pairs.append((line.split("\t")[0], line.split("\t")[1]))
                elif line.strip():
                    collector.drop("frequent, empty, misplaced or in another language")
            if not collector.counts.documents:
                raise UserError(f"{path}: contains no documents with at least {self.min_sentences} sentences")

        return documents(), collector.counts

    def _are_consecutive(self, last: PageLines, following: PageLines) -> bool:
        """True if a line continues the document of the last line."""
        last_page, _, (src_end, tgt_end) = last
        page, (src_start, tgt_start), _ = following
        return page == last_page and max(src_start - src_end, tgt_start - tgt_end) <= self.max_gap

    def _place(self, line: str, path: Path, number: int) -> PageLines | None:
        """Return pages and line numbers. None if the filter leaves the line out and thus ends a document."""
        cells = line.split("\t")
        try:
            if len(cells) != PARADOCS_CELLS:
                raise ValueError
            probabilities = float(cells[13]), float(cells[14])
            frequency = int(cells[15])
            is_good = min(probabilities) >= self.min_language and frequency <= self.max_frequency
            if not is_good or not cells[0].strip() or not cells[1].strip() or "None" in cells[9:13]:
                return None
            starts = int(cells[9]), int(cells[11])
            ends = int(cells[10]), int(cells[12])
        except ValueError:
            raise UserError(
                f"{path}: line {number} is not a ParaDocs line, which has {PARADOCS_CELLS} cells, with numbers in "
                "cells 10 to 16"
            ) from None
        return f"{cells[16]}-{cells[17]}".strip(), starts, ends


class ParquetTable(NamedColumns):
    """A Parquet file (role `both`) with one sentence pair per row. Requires the package pyarrow."""

    reader: FormatName[Literal["parquet"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        import pandas as pd

        path = self.pick(files, "both")
        # The whole table, so that the message for a missing column can list all columns.
        try:
            with open_verified(path) as file:
                table = pd.read_parquet(file)
        except ImportError:
            raise UserError(f"{path}: reading Parquet needs the package pyarrow: pip install pyarrow") from None
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read as Parquet ({first_line(error)})") from None
        self.find_columns(list(map(str, table.columns)), where=f"{path}:")
        numbers = range(1, len(table) + 1)
        if self.id is None:
            ids = [f"{number:08d}" for number in numbers]
        else:
            n_nameless = table[self.id].isna().tolist().count(True)
            if n_nameless:
                raise UserError(f"{path}: {n_nameless} rows have no {self.id!r}: `id: null` makes each row a document")
            ids = table[self.id].astype(str)
        sides = table[[self.source, self.target]].fillna("").astype(str)
        pairs = sides.itertuples(index=False, name=None)
        return _documents(zip(numbers, ids, pairs, strict=True), path, if_empty="contains no rows")


class DialogueJson(DocumentFormat):
    """One JSON file (role `both`) of the form `{dialogue: [{speaker, source, target}, …]}`, as in BConTrasT."""

    reader: FormatName[Literal["dialogue_json"]]
    reversed_speakers: list[str] = Field(default=[])
    """Speakers whose `source` is in the target language. Their sides are swapped."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        dialogues = read_json(path, make_object=_unique)
        if not isinstance(dialogues, dict):
            raise UserError(f"{path}: must be an object of dialogues, not {type(dialogues).__name__}")
        collector = DocumentCollector()
        for name, utterances in dialogues.items():
            if not isinstance(utterances, list):
                raise UserError(f"{path}: dialogue {name} is not a list of utterances")
            where = f"{path}: dialogue {name}, utterance"
            rows: list[tuple[str, str]] = []
            for number, utterance in enumerate(utterances):
                match utterance:
                    case {"source": str(src), "target": str(tgt)}:
                        if utterance.get("speaker") in self.reversed_speakers:
                            src, tgt = tgt, src
                        rows.append((src, tgt))
                    case _:
                        raise UserError(f"{where} {number}: `source` and `target` must be text")
            collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no sentences")


class JsonLines(DocumentFormat):
    """One file (role `both`) with one JSON object per document and line: `{"id", "src": […], "tgt": […]}`."""

    n_languages = (1, 2)

    reader: FormatName[Literal["jsonl"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        is_parallel = len(languages) == 2
        if is_parallel:
            keys = ("src", "tgt")
            path = self.pick(files, "both")
        else:
            keys = ("sentences",)
            path = self.pick(files, languages[0])
        collector = DocumentCollector()
        for number, value in enumerate(iterate_jsonl(path), start=1):
            where = f"{path}: line {number}"
            if not isinstance(value, dict) or not isinstance(value.get("id"), str):
                raise UserError(f"{where}: must be an object with `{'`, `'.join(['id', *keys])}`")
            sides = []
            for key in keys:
                side = value.get(key)
                if not isinstance(side, list) or not all(isinstance(sentence, str) for sentence in side):
                    raise UserError(f"{where}: document {value['id']}: `{key}` must be a list of sentences")
                sides.append(side)
            if is_parallel and len(sides[0]) != len(sides[1]):
                counts = f"{len(sides[0])} source and {len(sides[1])} target sentences"
                raise UserError(f"{where}: document {value['id']}: {counts}")
            collector.add(value["id"], zip(*sides, strict=True))
        return collector.result(if_empty=f"{path}: contains no sentences")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises ValueError for a repeated key, whose first value would be lost."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{key!r} occurs twice in an object: rename one of them")
        values[key] = value
    return values


def _numbered_lines(path: Path) -> Iterator[tuple[int, str, Path]]:
    """Yield number, line and file of all lines in matching files, and an empty line at the end."""
    for _, file in existing_files(path):
        for number, line in enumerate(iterate_lines(file), start=1):
            yield number, line, file
    yield 0, "", path


def _documents(rows: Iterable[Row], path: Path, *, if_empty: str, n_blank: int = 0) -> ReaderResult:
    """Group rows to documents. Rows of a document must be consecutive. `n_blank` lines were left out before."""
    documents: dict[str, list[tuple[str, str]]] = {}
    last = None
    for number, name, pair in rows:
        if name != last and name in documents:
            raise UserError(f"{path}: line {number}: document {name} continues after another one: sort the lines")
        documents.setdefault(name, []).append(pair)
        last = name
    collector = DocumentCollector()
    collector.drop("blank line", n_blank)
    for name, pairs in documents.items():
        collector.add(name, pairs)
    return collector.result(if_empty=f"{path}: {if_empty}")
