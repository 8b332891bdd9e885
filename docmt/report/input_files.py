"""Report input: the long score table, training histories, counts and measurements."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from docmt.checksums import open_verified
from docmt.errors import UserError
from docmt.files import read_json
from docmt.paths import HISTORY, name_paths
from docmt.report.dataframes import column, records
from docmt.report.score_files import COLUMNS, KEY, NEEDED, TYPES, check_rows, gather_rows


def gather_scores(paths: Sequence[Path], *, fingerprints: Sequence[str] = ()) -> pd.DataFrame:
    """Read score files as the long table (empty without files). Raises UserError like `gather_rows`."""
    rows = []
    if paths:
        rows = gather_rows(paths, fingerprints=fingerprints)
    return pd.DataFrame(rows).reindex(columns=COLUMNS).astype(TYPES)


def read_scores_table(path: Path, *, fingerprints: Sequence[str] = ()) -> pd.DataFrame:
    """Read `scores.csv`."""
    table = read_table(path, needed=NEEDED, words=[name for name, kind in TYPES.items() if kind == "string"])
    try:
        scores = table.reindex(columns=COLUMNS).astype(TYPES)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: a numeric column contains other values ({error})") from None
    for name in NEEDED:
        if name in KEY and column(scores, name).isna().to_numpy().any():
            raise UserError(f"{path}: column {name!r} has empty cells")
    check_rows(records(scores.astype("object").where(scores.notna(), None)), fingerprints)
    return scores


def read_table(path: Path, *, needed: Sequence[str], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV file with numbers, and text in the columns `words`. Only empty cells are missing values."""
    try:
        # Names are text: a system can be called "NA", and a commit can consist of digits only.
        types: dict[Hashable, Any] = dict.fromkeys(words, "string")
        with open_verified(path) as file:
            table = pd.read_csv(file, keep_default_na=False, na_values=[""], encoding="utf-8", dtype=types)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV table ({error})") from None
    for name in needed:
        if name not in table:
            raise UserError(f"{path}: column {name!r} is missing")
    for name in table:
        if name in words:
            continue
        cells = column(table, name)
        numbers = pd.Series(pd.to_numeric(cells, errors="coerce"))
        bad = numbers.isna() & cells.notna() & (cells.astype(str).str.lower() != "nan")
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise UserError(f"{path}: line {row + 2}, column {name!r} is not a number: {cells[row]!r:.50}")
        table[name] = numbers
    return table


@dataclass(frozen=True)
class History:
    """A run's training history: a numeric table with one row per logging step and missing values."""

    dataset: str
    system: str
    seed: int
    table: pd.DataFrame

    @property
    def run(self) -> dict[str, str | int]:
        """Dataset, system and seed by name, for tables."""
        return {"dataset": self.dataset, "system": self.system, "seed": self.seed}


def read_histories(paths: Iterable[Path]) -> list[History]:
    """Read `history.csv` of trainings. Dataset, system and seed come from the path."""
    histories = []
    for (dataset, system, seed), path in name_paths(HISTORY, paths).items():
        table = read_table(path, needed=("step",)).astype("float64").dropna(subset=["step"])
        histories.append(History(dataset, system, int(seed), table))
    return histories


def read_tables(paths: Iterable[Path], *, needed: Sequence[str], words: Sequence[str]) -> pd.DataFrame:
    """Read CSV files with `read_table` and concatenate them. Empty without files."""
    tables = [read_table(path, needed=needed, words=words) for path in paths]
    if not tables:
        return pd.DataFrame()
    return pd.concat(tables, ignore_index=True)


def read_overlaps(paths: Mapping[str, Path]) -> list[tuple[str, str, dict[str, Any]]]:
    """Read `docmt corpora count-overlap` files, by dataset. Returns (dataset, test, counts) per test."""
    overlaps = []
    for dataset, content in read_measurements(paths, key="tests"):
        for test, counts in content["tests"].items():
            if not isinstance(counts, dict) or not all(map(_is_count, counts.items())):
                path = paths[dataset]
                raise UserError(f"{path}: key 'tests' must map tests to counts: run `docmt corpora count-overlap`")
            overlaps.append((dataset, test, counts))
    return overlaps


def _is_count(item: tuple[str, Any]) -> bool:
    name, value = item
    return isinstance(value, int | float) or name in ("test", "seen_document_ids")


def read_measurements(paths: Mapping[str, Path], *, key: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Read JSON files that contain a mapping, or a mapping under `key`, by name."""
    contents = []
    for name, path in paths.items():
        content = read_json(path)
        if not isinstance(content, dict):
            raise UserError(f"{path}: must be a mapping")
        if key is not None and not isinstance(content.get(key), dict):
            raise UserError(f"{path}: not a file of the expected kind: key {key!r} is missing")
        contents.append((name, content))
    return contents


def single_values(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts that are single values, without the test name."""
    return {key: value for key, value in counts.items() if key != "test" and not isinstance(value, list | dict)}


def flatten_counts(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested counts to `outer: inner`. `inputs` and `origin` are omitted: they have separate files."""
    flat: dict[str, Any] = {}
    for key, value in counts.items():
        if key in ("inputs", "origin"):
            continue
        if isinstance(value, dict):
            for inner, number in flatten_counts(value).items():
                flat[f"{key}: {inner}"] = number
        else:
            flat[key] = value
    return flat
