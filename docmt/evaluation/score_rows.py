"""Score files: rows of one run with their provenance."""

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

NOT_COMPUTED = "not computed: "  # prefix of a signature without a value, before the reason
WARNING = "warning:"  # prefix of a part of a signature that names a defect of the scored text
NUMBERS = ("value", "low", "high", "chance")
N_GROUPS = 20  # of items, see `group_means`


class ScoreRow(TypedDict):
    """One score of a run on a test, in percent. None if it could not be computed (docs/files.md)."""

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
    """Return the means of `N_GROUPS` groups of consecutive items, or None for fewer items.

    Runs on the same items have the same groups. The variation of the differences of their means from group to group
    estimates the contribution of the choice of items to the difference of the runs (batch means). Groups are
    consecutive because items that depend on each other, such as the pairs of a generated suite, follow each other.
    """
    if len(values) < N_GROUPS:
        return None
    ends = [len(values) * number // N_GROUPS for number in range(N_GROUPS + 1)]
    return " ".join(f"{fmean(values[start:end]):.6g}" for start, end in pairwise(ends))


@dataclass(frozen=True)
class TestScores:
    """Scores of a run on one test.

    Attributes:
        test: name of the test split or suite.
        inputs: files that were read, by role. The scores were computed against `reference`.
        facts: facts for the provenance of this test, in addition to the checksums of its inputs.
    """

    test: str
    rows: Sequence[ScoreRow]
    inputs: Mapping[str, Path]
    facts: Mapping[str, Any] = field(default_factory=dict)


def write_scores(
    path: Path, scores: Sequence[TestScores], *, run: Mapping[str, Any], settings: Mapping[str, Any], **facts: Any
) -> None:
    """Write the score file of one run (`dataset`, `system` and `seed`). `facts` are added to the provenance."""
    rows, inputs = [], []
    for test in scores:
        files = {role: {"name": file.name, "sha256": sha256_file(file)} for role, file in test.inputs.items()}
        inputs.append({"test": test.test, **files, **test.facts})
        # Also in the rows, since a table may only contain scores against the same text.
        of_test = {"test": test.test, "phenomenon": None, "distance": None, "data": files["reference"]["sha256"][:12]}
        rows += [{**run, **of_test, **with_finite_numbers(row)} for row in test.rows]
    write_json(path, {"provenance": describe_result(settings=settings, inputs=inputs, **facts), "scores": rows})


def with_finite_numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with None instead of NaN and infinity, with a remark in its signature and the log."""
    odd = {key: row[key] for key in NUMBERS if isinstance(row.get(key), float) and not math.isfinite(row[key])}
    if not odd:
        return dict(row)
    shown = ", ".join(f"{key} {number}" for key, number in odd.items())
    log.warning("%s has no number, but %s", row["metric"], shown)
    reason = NOT_COMPUTED if "value" in odd else f"{row['signature']}|{WARNING}"
    return {**row, **dict.fromkeys(odd), "signature": f"{reason}no number, but {shown}"}
