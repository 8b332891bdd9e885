"""What the report reads beside scores: histories, statistics, overlaps, counts, evaluations, by name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.gathering import read_table


@dataclass(frozen=True)
class History:
    """The history of one run.

    Attributes:
        dataset, system, seed: the run.
        table: one row per logging step; numbers, missing where not measured.
    """

    dataset: str
    system: str
    seed: int
    table: pd.DataFrame


def read_histories(arguments: Sequence[str]) -> list[History]:
    """Read `DATASET/SYSTEM/seedN=FILE` each. Raises UserError for another form, or for a file that is no history."""
    histories = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        parts = name.split("/")
        if not equals or len(parts) != 3 or not parts[2].removeprefix("seed").isdigit():
            raise UserError(f"--histories {argument}: write DATASET/SYSTEM/seedN=FILE")
        table = read_table(Path(path), needed=("step",))
        for column in table:
            numbers = pd.to_numeric(table[column], errors="coerce")
            bad = numbers.isna() & table[column].notna() & (table[column].astype(str).str.lower() != "nan")
            if bad.any():
                line = int(bad.to_numpy().argmax()) + 2
                raise UserError(f"{path}: line {line}, column {column!r} is not a number: {table[column][line - 2]!r}")
            table[column] = numbers.astype("float64")
        seed = int(parts[2].removeprefix("seed"))
        histories.append(History(parts[0], parts[1], seed, table.dropna(subset="step")))
    return histories


def read_statistics(paths: Sequence[Path]) -> pd.DataFrame:
    """Join the CSV files of `docmt instances statistics`. Raises UserError when one is of another form."""
    keys = ("dataset", "segmentation", "split")
    tables = [read_table(path, needed=keys, words=keys) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def read_overlaps(arguments: Sequence[str], datasets: Iterable[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """Read the files of `docmt corpora overlap`, each given as `[DATASET=]FILE`.

    Without a name, the dataset is the folder on the file's path that is called as one of `datasets`.

    Returns:
        Dataset, test and counts of each overlap.
    """
    found = []
    for name, path in (_named(argument, datasets) for argument in arguments):
        content = read_json(path)
        tests = content.get("tests", content.get("overlaps")) if isinstance(content, dict) else content
        if isinstance(tests, list) and all(isinstance(test, dict) and "test" in test for test in tests):
            tests = {test["test"]: test for test in tests}
        if not (isinstance(tests, dict) and all(isinstance(counts, dict) for counts in tests.values())):
            raise UserError(f"{path}: not an output of `docmt corpora overlap`: key 'tests' is missing")
        found += [(name, test, counts) for test, counts in tests.items()]
    return found


def read_counts(arguments: Sequence[str], datasets: Iterable[str]) -> list[tuple[str, dict[str, Any]]]:
    """Read `counts.json` files, each given as `[NAME=]FILE`. Raises UserError when one is not a mapping."""
    found = []
    for name, path in (_named(argument, datasets, with_stem=True) for argument in arguments):
        content = read_json(path)
        if not isinstance(content, dict):
            raise UserError(f"{path}: a mapping of counts is needed")
        found.append((name, content))
    return found


def read_tree_tables(paths: Sequence[Path], *, needed: Sequence[str]) -> pd.DataFrame:
    """Join CSV files of `docmt discourse statistics`. Raises UserError when one is of another form."""
    tables = [read_table(path, needed=["name", *needed], words=("name", "relation")) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def read_measurements(arguments: Sequence[str], *, key: str) -> list[tuple[str, dict[str, Any]]]:
    """Read JSON files that hold a mapping under `key`, each given as `NAME=FILE`.

    Raises UserError for another form, or for a file without such a key.
    """
    found = []
    for argument in arguments:
        name, path = split_name(argument)
        content = read_json(path)
        if not (isinstance(content, dict) and isinstance(content.get(key), dict)):
            raise UserError(f"{path}: not a file of the measurements that are needed here: key {key!r} is missing")
        found.append((name, content))
    return found


def split_name(argument: str) -> tuple[str, Path]:
    """Name and path of `NAME=FILE`. Raises UserError for another form."""
    name, equals, path = argument.partition("=")
    if not (name and equals and path):
        raise UserError(f"{argument}: write NAME=FILE")
    return name, Path(path)


def _named(argument: str, datasets: Iterable[str], *, with_stem: bool = False) -> tuple[str, Path]:
    name, equals, path = argument.partition("=")
    if equals and not Path(argument).exists():
        return name, Path(path)
    path = Path(argument)
    stem = path.name.removesuffix(".json").removesuffix(".counts")
    known = set(datasets)
    folder = next((part for part in path.parts[:-1] if part in known), path.parent.name)
    return (f"{folder}/{stem}" if with_stem else folder), path
