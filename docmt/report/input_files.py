"""What the report reads beside scores: the histories, statistics and evaluations that the manifest lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.dataframes import column
from docmt.report.long_table import read_table
from docmt.report.manifest import Manifest

# How documents are cut into instances: the name of that column now, and the one in files of older versions
CUTTING_COLUMNS = ("cutting", "segmentation")


@dataclass(frozen=True)
class History:
    """The history of one run: a table of numbers, one row per logging step; missing where not measured."""

    dataset: str
    system: str
    seed: int
    table: pd.DataFrame


def read_histories(manifest: Manifest) -> list[History]:
    """Read `history.csv` of each trained run. Raises UserError when one is missing or is not a history."""
    return [History(*run, _read_history(manifest.folder(*run) / "history.csv")) for run in manifest.trained()]


def _read_history(path: Path) -> pd.DataFrame:
    table = read_table(path, needed=("step",))
    for name in table:
        cells = column(table, name)
        numbers = pd.Series(pd.to_numeric(cells, errors="coerce"))
        bad = numbers.isna() & cells.notna() & (cells.astype(str).str.lower() != "nan")
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise UserError(f"{path}: line {row + 2}, column {name!r} is not a number: {cells[row]!r}")
        table[name] = numbers.astype("float64")
    return table.dropna(subset=["step"])


def read_statistics(paths: Sequence[Path]) -> pd.DataFrame:
    """Join the CSV files of `docmt instances statistics`. Raises UserError when one has another form."""
    tables = [
        read_table(path, needed=("dataset", "split"), words=("dataset", *CUTTING_COLUMNS, "split")) for path in paths
    ]
    names = set()
    for path, table in zip(paths, tables, strict=True):
        name = next((name for name in CUTTING_COLUMNS if name in table), None)
        if name is None:
            raise UserError(f"{path}: column {CUTTING_COLUMNS[0]!r} is missing")
        names.add(name)
    if len(names) > 1:
        tables = [table.rename(columns=dict.fromkeys(CUTTING_COLUMNS, CUTTING_COLUMNS[0])) for table in tables]
    return _join(tables)


def read_overlaps(paths: Mapping[str, Path]) -> list[tuple[str, str, dict[str, Any]]]:
    """Read the files of `docmt corpora overlap`, given by dataset: dataset, test and counts of each overlap.

    Raises UserError when a file has another form.
    """
    found = []
    for dataset, content in read_measurements(paths, key="tests"):
        if not all(isinstance(counts, dict) for counts in content["tests"].values()):
            raise UserError(f"{paths[dataset]}: key 'tests' must map tests to counts, as `docmt corpora overlap` does")
        found += [(dataset, test, counts) for test, counts in content["tests"].items()]
    return found


def read_tree_tables(paths: Sequence[Path], *, needed: Sequence[str]) -> pd.DataFrame:
    """Join CSV files of `docmt discourse statistics`. Raises UserError when one has another form."""
    return _join([read_table(path, needed=["name", *needed], words=("name", "relation")) for path in paths])


def read_measurements(paths: Mapping[str, Path], *, key: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Read JSON files that hold a mapping, or another one under `key`, given by name.

    Raises UserError when a file has no such mapping.
    """
    found = []
    for name, path in paths.items():
        content = read_json(path)
        if not isinstance(content, dict):
            raise UserError(f"{path}: must be a mapping")
        if key is not None and not isinstance(content.get(key), dict):
            raise UserError(f"{path}: not a file of the expected kind: key {key!r} is missing")
        found.append((name, content))
    return found


def _join(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
