"""The long table: one row per score of each run."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from docmt.checksums import open_verified
from docmt.errors import UserError
from docmt.files import atomic_writer, read_json

KEY = ["dataset", "system", "seed", "test", "metric", "phenomenon", "distance", "kind"]
"""The columns that identify a row."""
TYPES = {
    "dataset": "string",
    "system": "string",
    "seed": "Int64",
    "test": "string",
    "metric": "string",
    "value": "float64",
    "n": "Int64",
    "phenomenon": "string",
    "distance": "Int64",
    "kind": "string",
    "low": "float64",
    "high": "float64",
    "chance": "float64",
    "signature": "string",
    "commit": "string",
    "fingerprint": "string",
    "data": "string",
    "versions": "string",
}
"""The columns with their types."""
COLUMNS = list(TYPES)
NEEDED = ("dataset", "system", "seed", "test", "metric", "value", "n", "signature")


def gather_scores(paths: Sequence[Path]) -> pd.DataFrame:
    """The rows of all score files, in order, with commit, fingerprint, data version and package versions.

    Raises UserError when a file is not a score file, or when two rows are of the same run, test and metric.
    """
    rows: list[dict[str, Any]] = []
    origin: dict[tuple, Path] = {}
    for path in paths:
        for row in _read_rows(path):
            key = tuple(row.get(name) for name in KEY)
            if key in origin:
                shown = ", ".join(f"{name} {value}" for name, value in zip(KEY, key, strict=True) if value is not None)
                raise UserError(f"{path}: {shown} is also in {origin[key]}; give each score once")
            origin[key] = path
            rows.append(row)
    if not rows:
        raise UserError("no scores: the given files contain no rows")
    return pd.DataFrame(rows).reindex(columns=COLUMNS).astype(TYPES)


def _read_rows(path: Path) -> list[dict[str, Any]]:
    content = read_json(path)
    if not (isinstance(content, dict) and isinstance(content.get("scores"), list)):
        raise UserError(f"{path}: not a score file of `docmt evaluate`: key 'scores' is missing")
    provenance = content.get("provenance", {})
    versions = {"docmt": provenance.get("docmt")} | provenance.get("versions", {})
    reference = provenance.get("inputs", {}).get("reference", {}).get("sha256")
    facts = {
        "commit": provenance.get("commit"),
        "fingerprint": provenance.get("fingerprint"),
        "data": reference[:12] if reference else None,
        "versions": "; ".join(f"{name} {version}" for name, version in versions.items() if version) or None,
    }
    for number, row in enumerate(content["scores"], start=1):
        missing = next((key for key in NEEDED if key not in row), None)
        if missing:
            raise UserError(f"{path}: score {number} has no key {missing!r}")
    return [row | facts for row in content["scores"]]


def write_scores_table(path: Path, scores: pd.DataFrame) -> None:
    """Write the long table as CSV."""
    with atomic_writer(path) as file:
        scores.to_csv(file, index=False)


def read_scores_table(path: Path) -> pd.DataFrame:
    """Read `scores.csv`. Raises UserError when the file has another form."""
    scores = read_table(path, needed=NEEDED, words=[name for name, kind in TYPES.items() if kind == "string"])
    try:
        return scores.reindex(columns=COLUMNS).astype(TYPES)
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: a column of numbers contains something else ({error})") from None


def read_table(path: Path, *, needed: Sequence[str], words: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV file in which only an empty cell is a missing value, and the columns `words` are kept as text.

    Raises UserError when it is missing, is not CSV, or lacks a column.
    """
    try:
        # Names are data: a system may be called "NA", and a commit may be made of digits only.
        types: dict[Hashable, Any] = dict.fromkeys(words, "string")
        with open_verified(path) as file:
            table = pd.read_csv(file, keep_default_na=False, na_values=[""], encoding="utf-8", dtype=types)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV table ({error})") from None
    missing = next((column for column in needed if column not in table), None)
    if missing:
        raise UserError(f"{path}: column {missing!r} is missing")
    return table
