"""Paired tests against a baseline, as marks in tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey

LEVELS = ((0.01, "**"), (0.05, "*"))
"""Marks with the level below which each p value has them."""
KEYS = ("dataset", "test", "system", "baseline", "metric", "phenomenon", "difference", "p", "sign_p", "n", "method")


@dataclass(frozen=True)
class Difference:
    """How a system differs from a baseline on one test by one metric (`docmt.evaluation.significance`)."""

    dataset: str
    test: str
    system: str
    baseline: str
    metric: str
    phenomenon: str | None
    difference: float
    p: float
    sign_p: float | None
    n: int
    method: str
    randomization_p: float | None = None

    @property
    def mark(self) -> str:
        """`*`, `**` or nothing."""
        return next((mark for level, mark in LEVELS if self.p < level), "")


class Differences:
    """The paired tests of a study."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self._found = {
            (one.baseline, one.system, ScoreKey(one.dataset, one.test, one.metric, one.phenomenon)): one
            for one in differences
        }

    def find(self, baseline: str | None, system: str, key: ScoreKey) -> Difference | None:
        """The test of one score against a baseline, or None."""
        return None if baseline is None else self._found.get((baseline, system, key))


UNTESTED = Differences([])
"""No paired tests."""


def read_differences(paths: Sequence[Path]) -> Differences:
    """Read the files of `docmt evaluate difference` and `contrast-difference`.

    Raises UserError when one has another form.
    """
    return Differences([one for path in paths for one in _read(path)])


def _read(path: Path) -> Iterator[Difference]:
    content = read_json(path)
    rows: Any = content.get("differences") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise UserError(f"{path}: not an output of `docmt evaluate difference`: key 'differences' is missing")
    for row in rows:
        try:
            # Studies of an older version lack the last one.
            yield Difference(**{key: row[key] for key in KEYS}, randomization_p=row.get("randomization_p"))
        except (KeyError, TypeError) as error:
            raise UserError(f"{path}: not an output of `docmt evaluate difference`: {error}") from None


def describe_marks(found: Sequence[Difference], settings: ReportSettings) -> str:
    """What the marks of a table mean; nothing without any test."""
    if not found:
        return ""
    baselines = ", ".join(dict.fromkeys(settings.label(one.baseline) for one in found))
    methods = "; ".join(dict.fromkeys(one.method for one in found))
    return f" * and **: differs from {baselines} with p < 0.05 and p < 0.01 ({methods})."
