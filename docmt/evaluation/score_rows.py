"""Score files: rows for one run with their provenance."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from docmt.checksums import sha256_file
from docmt.files import write_json
from docmt.provenance import describe_result

if TYPE_CHECKING:
    import numpy as np

log = logging.getLogger(__name__)

NOT_COMPUTED = "not computed: "  # signature prefix for a missing value, followed by the reason
WARNING = "warning:"  # prefix for signature parts that describe a defect in the scored text
NUMBERS = ("value", "low", "high", "chance")
N_GROUPS = 20  # maximum number of document groups, see `group_values`


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


def group_values(
    rows: "np.ndarray", documents: Sequence[object], score: "Callable[[np.ndarray], np.ndarray]"
) -> str | None:
    """Return the score's jackknife pseudo-values over groups of consecutive documents, or None for one document.

    A pseudo-value is the score times the number of groups G, minus the score without one group times G − 1. For a mean
    over groups of one size, it is the mean of the group. The standard error of the pseudo-values' mean estimates how
    much the score depends on the choice of documents. Runs on the same documents have the same groups, so this also
    holds for differences between runs.

    Args:
        rows: counts by segment, [segments, numbers].
        documents: document by segment. For items of a suite, every item is a document. Groups are consecutive because
            dependent items follow one another, for example pairs in a generated suite.
        score: function from summed counts [..., numbers] to the score.
    """
    import numpy as np  # planning a study imports this module without computing scores

    numbers = {document: number for number, document in enumerate(dict.fromkeys(documents))}
    n_groups = min(N_GROUPS, len(numbers))
    if n_groups < 2:
        return None
    groups = [numbers[document] * n_groups // len(numbers) for document in documents]
    sums = np.zeros((n_groups, rows.shape[1]))
    np.add.at(sums, groups, rows)
    total = sums.sum(0)
    with np.errstate(invalid="ignore"):
        values = n_groups * score(total) - (n_groups - 1) * score(total - sums)
    if not np.isfinite(values).all():
        return None
    return " ".join(f"{value:.6g}" for value in values)


def group_means(values: "Sequence[float] | np.ndarray", documents: Sequence[object] | None = None) -> str | None:
    """Return `group_values` for a mean. By default, every value is a document."""
    import numpy as np

    rows = np.stack([np.asarray(values, dtype="float64"), np.ones(len(values))], axis=1)
    if documents is None:
        documents = range(len(values))
    return group_values(rows, documents, share_of_counts)


def share_of_counts(counts: "np.ndarray") -> "np.ndarray":
    """Return the quotient of two summed counts [..., 2]. NaN without items."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        return counts[..., 0] / counts[..., 1]


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
    rows = []
    inputs = []
    for test in scores:
        files = {}
        for role, file in test.inputs.items():
            files[role] = {"name": file.name, "sha256": sha256_file(file)}
        inputs.append({"test": test.test, **files, **test.facts})
        # Also in the rows, since all scores in a table must have the same reference text.
        data = files["reference"]["sha256"][:12]
        for row in test.rows:
            columns = {"test": test.test, "phenomenon": None, "distance": None, "data": data}
            rows.append({**run, **columns, **with_finite_numbers(row)})
    provenance = describe_result(settings=settings, fingerprint=fingerprint, inputs=inputs, **facts)
    write_json(path, {"provenance": provenance, "scores": rows})


def with_finite_numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with None instead of NaN and infinity. The signature and the log contain a remark."""
    odd_keys = []
    for key in NUMBERS:
        if isinstance(row.get(key), float) and not math.isfinite(row[key]):
            odd_keys.append(key)
    if not odd_keys:
        return dict(row)
    numbers = ", ".join(f"{key} {row[key]}" for key in odd_keys)
    log.warning("%s has no number, but %s", row["metric"], numbers)
    reason = f"{row['signature']}|{WARNING}"
    if "value" in odd_keys:
        reason = NOT_COMPUTED
    return {**row, **dict.fromkeys(odd_keys), "signature": f"{reason}no number, but {numbers}"}
