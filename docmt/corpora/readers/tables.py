"""Sentence pairs in tables: TSV without quoting, Parquet, and lines whose documents another file names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from docmt.corpora.readers.collector import Collector, ReaderResult
from docmt.corpora.readers.sides import pick
from docmt.errors import UserError
from docmt.files import iterate_lines, read_lines
from docmt.settings import Settings

Pair = tuple[str, str]


class TsvLines(Settings):
    """One file (role `both`): source, tab, target on each line, without quoting; blank lines between documents."""

    reader: Literal["tsv"]
    """Name of the format."""
    columns: list[int] = Field(default=[1, 2], min_length=2, max_length=2)
    """Numbers, from 1, of the columns of source and target."""
    id_column: int | None = Field(default=None, ge=1)
    """Number of the column with the id of the document; null where blank lines separate documents."""


class NamedLines(Settings):
    """One file per language, one sentence per line, and a third (role `ids`) with the document id of each line."""

    reader: Literal["named_lines"]
    """Name of the format."""


class ParquetTable(Settings):
    """A Parquet file (role `both`), read by pandas: a row is a sentence pair. Needs the package pyarrow."""

    reader: Literal["parquet"]
    """Name of the format."""
    id: str | None = "id"
    """Column of the document's id; null makes each row a document."""
    source: str = "source"
    """Column of the source sentence."""
    target: str = "target"
    """Column of the target sentence."""


def read_tsv(files: Mapping[str, Path], *, form: TsvLines, languages: Sequence[str]) -> ReaderResult:
    """Read a table without quoting. Raises UserError that names a line with too few cells."""
    path = pick(files, "both", form.reader)
    rows: list[tuple[str, Pair]] = []
    n_blocks = 0
    is_inside = False
    for number, line in enumerate(iterate_lines(path), start=1):
        cells = line.removesuffix("\r").split("\t")
        if not line.strip():
            is_inside = False
            continue
        n_needed = max(*form.columns, form.id_column or 0)
        if len(cells) < n_needed:
            raise UserError(f"{path}: line {number} has {len(cells)} cells, {n_needed} are needed: separate by tabs")
        n_blocks += not is_inside
        is_inside = True
        name = f"{n_blocks:05d}" if form.id_column is None else cells[form.id_column - 1]
        rows.append((name, (cells[form.columns[0] - 1], cells[form.columns[1] - 1])))
    return _grouped(rows, if_empty=f"{path}: contains no sentences", where=str(path))


def read_named_lines(files: Mapping[str, Path], *, form: NamedLines, languages: Sequence[str]) -> ReaderResult:
    """Read lines whose documents another file names. Raises UserError when the numbers of lines differ."""
    paths = [pick(files, role, form.reader) for role in ("ids", *languages)]
    ids, src, tgt = (read_lines(path) for path in paths)
    for path, lines in zip(paths[1:], (src, tgt), strict=True):
        if len(lines) != len(ids):
            raise UserError(f"{path}: {len(lines)} lines, but {paths[0]} has {len(ids)}: one id per line is needed")
    rows = zip((name.strip() for name in ids), zip(src, tgt, strict=True), strict=True)
    return _grouped(rows, if_empty=f"{paths[0]}: names no documents", where=str(paths[0]))


def _grouped(rows: Iterable[tuple[str, Pair]], *, if_empty: str, where: str) -> ReaderResult:
    """Documents of rows, whose ids must be together."""
    collector = Collector()
    documents: dict[str, list[Pair]] = {}
    last = None
    for name, pair in rows:
        if name != last and name in documents:
            raise UserError(f"{where}: document {name} continues after another one: sort the lines")
        documents.setdefault(name, []).append(pair)
        last = name
    for name, pairs in documents.items():
        collector.add(name, pairs)
    return collector.result(if_empty=if_empty)


def read_parquet(files: Mapping[str, Path], *, form: ParquetTable, languages: Sequence[str]) -> ReaderResult:
    """Read a table. Raises UserError when pyarrow is missing, or a column."""
    import pandas as pd

    path = pick(files, "both", form.reader)
    columns = [name for name in (form.id, form.source, form.target) if name is not None]
    try:
        table = pd.read_parquet(path)
    except ImportError:
        raise UserError(f"{path}: reading Parquet needs the package pyarrow: pip install pyarrow") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    if missing := [name for name in columns if name not in table.columns]:
        raise UserError(f"{path}: has no column {missing[0]!r}; it has {', '.join(map(str, table.columns))}")
    ids = [f"{number:08d}" for number in range(1, len(table) + 1)] if form.id is None else table[form.id].astype(str)
    pairs = zip(*(table[name].fillna("").astype(str) for name in (form.source, form.target)), strict=True)
    return _grouped(zip(ids, pairs, strict=True), if_empty=f"{path}: contains no rows", where=str(path))
