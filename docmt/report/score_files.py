"""Score files as rows in the long table, without pandas. Importing pandas takes longer than writing the table."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.evaluation.score_rows import N_GROUPS, with_finite_numbers
from docmt.files import atomic_writer, read_json

# The columns that identify a row
KEY = ["dataset", "system", "seed", "test", "metric", "phenomenon", "distance", "kind"]
# The columns with their types
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
    "groups": "string",
    "signature": "string",
    "commit": "string",
    "fingerprint": "string",
    "data": "string",
    "versions": "string",
}
COLUMNS = list(TYPES)
NEEDED = ("dataset", "system", "seed", "test", "metric", "value", "n", "signature")


def gather_rows(paths: Sequence[Path], *, fingerprints: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Read the rows in all score files, in order, with commit, fingerprint and package versions."""
    rows: list[dict[str, Any]] = []
    origin: dict[tuple, Path] = {}
    for path in paths:
        for row in _read_rows(path):
            key = tuple(row.get(name) for name in KEY)
            if key in origin:
                names = ", ".join(f"{name} {value}" for name, value in zip(KEY, key, strict=True) if value is not None)
                raise UserError(f"{path}: {names} is also in {origin[key]}; pass each score once")
            origin[key] = path
            rows.append(row)
    if not rows:
        raise UserError("no scores: the score files contain no rows")
    check_rows(rows, fingerprints)
    return rows


def _read_rows(path: Path) -> list[dict[str, Any]]:
    content = read_json(path)
    if not (isinstance(content, dict) and isinstance(content.get("scores"), list)):
        raise UserError(f"{path}: not a score file of `docmt evaluate`: key 'scores' is missing")
    try:
        provenance = content.get("provenance", {})
        versions = {"docmt": provenance.get("docmt")} | provenance.get("versions", {})
        facts = {
            "commit": provenance.get("commit"),
            "fingerprint": provenance.get("fingerprint"),
            "versions": "; ".join(f"{name} {version}" for name, version in versions.items() if version) or None,
        }
        rows = [dict(row) | facts for row in content["scores"]]
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a score file of `docmt evaluate`: {error}") from None
    return [_with_types(row, where=f"{path}: score {number}") for number, row in enumerate(rows, start=1)]


def _with_types(row: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return the row with values converted to `TYPES`, because JSON files can contain whole numbers as 3.0 or 3."""
    for key in NEEDED:
        if key not in row or (key in KEY and row[key] in (None, "")):
            raise UserError(f"{where} has no key {key!r}")
    typed = with_finite_numbers(row)
    for name, kind in TYPES.items():
        value = typed.get(name)
        if value is not None:
            try:
                value = VALUES[kind](value)
            except (OverflowError, TypeError, ValueError):
                raise UserError(f"{where}: the {name} cannot be {value!r:.50}") from None
        typed[name] = value
    return typed


def _text(value: Any) -> str:
    text = str(value)
    if not isinstance(value, str | int | float) or "\r" in text:  # `csv` writes it bare, but takes it for a line end
        raise ValueError
    return text.encode().decode()  # UTF-8 has no lone surrogates


def _whole_number(value: Any) -> int:
    number = int(value)
    if (isinstance(value, float) and number != value) or abs(number) >= 2**63:
        raise ValueError
    return number


VALUES: dict[str, Callable[[Any], Any]] = {"string": _text, "Int64": _whole_number, "float64": float}


def check_rows(rows: Iterable[Mapping[str, Any]], fingerprints: Sequence[str] = ()) -> None:
    """Raise UserError for inconsistent rows. Missing values are None.

    A value must have at least one item, and groups as from `group_values`. All rows with the same test and metric must
    have the same reference text. `fingerprints` are the study's score fingerprints (default: any).
    """

    def describe(row: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {row[name]}" for name in ("dataset", "system", "seed", "test"))

    first: dict[tuple[str, ...], Mapping[str, Any]] = {}
    expected = set(fingerprints)
    for row in rows:
        try:
            groups = [float(mean) for mean in (row.get("groups") or "").split()]
        except ValueError:
            groups = [math.nan]
        has_odd_groups = groups and not (2 <= len(groups) <= N_GROUPS and all(map(math.isfinite, groups)))
        if row["value"] is not None and (not (row["n"] or 0) > 0 or has_odd_groups):
            raise UserError(
                f"scores of {describe(row)}, metric {row['metric']}: n must be above 0 (it is {row['n']}), and "
                f"groups must be 2 to {N_GROUPS} numbers or empty: compute the scores again"
            )
        first_row = row
        if row.get("data"):
            first_row = first.setdefault((row["dataset"], row["test"], row["metric"]), row)
        if first_row.get("data") != row.get("data"):
            raise UserError(
                f"{row['metric']} of dataset {row['dataset']}, test {row['test']}: system {row['system']} was "
                f"scored against a different text (SHA-256 {row['data']}…) than system {first_row['system']} "
                f"({first_row['data']}…): score both on the same test set"
            )
        if expected and row["fingerprint"] not in expected:
            raise other_study(f"scores of {describe(row)}: their fingerprint {row['fingerprint']}")


def other_study(fingerprint: str) -> UserError:
    """Return the error for a file with another fingerprint than the study's. The text names file and fingerprint."""
    return UserError(
        f"{fingerprint} does not belong to this study, so settings or data differ: make the translations and scores of "
        "this run again (remove its folder `decoding` together with its scores), without --touch or --rerun-triggers"
    )


def write_scores_table(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write the long table as CSV. Missing values are empty cells."""
    with atomic_writer(path) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        table.writerows(map(row.get, COLUMNS) for row in rows)
