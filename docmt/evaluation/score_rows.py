"""Score files: rows for one run with their provenance."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NotRequired, TypedDict

from docmt.files import sha256_file, write_json
from docmt.provenance import describe_result

log = logging.getLogger(__name__)

NOT_COMPUTED = "not computed: "  # signature prefix for a missing value, followed by the reason
WARNING = "warning:"  # prefix for signature parts that describe a defect in the scored text
NUMBERS = ("value", "low", "high", "chance")
N_GROUPS = 20  # item groups, see `group_means`


class ScoreRow(TypedDict):
    """A run's score on a test, in percent. None if it could not be computed (docs/files.md)."""

    metric: str
    value: float | None
    n: int
    signature: str
    phenomenon: NotRequired[str | None]
    distance: NotRequired[int | None]
    kind: NotRequired[str | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    chance: NotRequired[float]
    groups: NotRequired[str | None]


def group_means(values: Sequence[float]) -> str | None:
    """Return means over `N_GROUPS` groups of consecutive items, or None for fewer items.

    Runs on the same items have the same groups. Differences between two runs' group means vary from group to group.
    This variation estimates how much the difference between the runs depends on the choice of items (batch means).
    Groups are consecutive because dependent items follow one another, for example pairs in a generated suite.
    """
    if len(values) < N_GROUPS:
        return None
    ends = [len(values) * number // N_GROUPS for number in range(N_GROUPS + 1)]
    return " ".join(f"{fmean(values[start:end]):.6g}" for start, end in pairwise(ends))


@dataclass(frozen=True)
class TestScores:
    """A run's scores on one test.

    Attributes:
        test: test split or suite name.
        inputs: input files, by role. The scores were computed against `reference`.
        facts: provenance facts for this test, in addition to input checksums.
    """

    test: str
    rows: Sequence[ScoreRow]
    inputs: Mapping[str, Path]
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_scores(
    path: Path,
    scores: Sequence[TestScores],
    *,
    run: Mapping[str, Any],
    settings: Mapping[str, Any],
    fingerprint: str | None = None,
    **facts: Any,
) -> None:
    """Write the score file for one run (`dataset`, `system` and `seed`). `facts` are added to the provenance."""
    rows, inputs = [], []
    for test in scores:
        files = {role: {"name": file.name, "sha256": sha256_file(file)} for role, file in test.inputs.items()}
        inputs.append({"test": test.test, **files, **test.facts})
        # Also in the rows, since all scores in a table must have the same reference text.
        of_test = {"test": test.test, "phenomenon": None, "distance": None, "data": files["reference"]["sha256"][:12]}
        rows += [{**run, **of_test, **with_finite_numbers(row)} for row in test.rows]
    provenance = describe_result(settings=settings, fingerprint=fingerprint, inputs=inputs, **facts)
    write_json(path, {"provenance": provenance, "scores": rows})


def with_finite_numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with None instead of NaN and infinity. The signature and the log contain a remark."""
    odd = {key: row[key] for key in NUMBERS if isinstance(row.get(key), float) and not math.isfinite(row[key])}
    if not odd:
        return dict(row)
    shown = ", ".join(f"{key} {number}" for key, number in odd.items())
    log.warning("%s has no number, but %s", row["metric"], shown)
    reason = NOT_COMPUTED if "value" in odd else f"{row['signature']}|{WARNING}"
    return {**row, **dict.fromkeys(odd), "signature": f"{reason}no number, but {shown}"}
