"""Items of a contrastive test set as the reader shows them."""

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from docmt.corpora.contrastive import ContrastiveItem, read_suite
from docmt.evaluation.contrast import is_right, read_log_probabilities


def read_items(suite: Path, probabilities: Mapping[int, Path]) -> list[dict[str, Any]]:
    """The items of a suite, with what the runs say of them.

    Args:
        suite: the test set.
        probabilities: files of `docmt decode contrast`, by number of the run.

    Returns:
        In the order of the suite, objects with the keys `id`, `phenomenon`, `distance`, `kind`, `src`, `candidates`
        (lists of sentences), `correct` and `runs`: by number of the run, whether it is `right`, and the `scores` of the
        candidates (log probabilities in nats, null for that of the impossible).

    Raises:
        UserError: a file is missing or malformed, or scores are missing or not numbers.
    """
    scores = {run: read_log_probabilities(path)[0] for run, path in probabilities.items()}
    return [
        {
            "id": item.id,
            "phenomenon": item.phenomenon,
            "distance": item.distance,
            "kind": item.kind,
            "src": item.src,
            "candidates": item.candidates,
            "correct": item.correct,
            "runs": {run: _verdict(item, of_run) for run, of_run in scores.items()},
        }
        for item in read_suite(suite)
    ]


def _verdict(item: ContrastiveItem, scores: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    right = is_right(item, scores)
    return {"right": right, "scores": [round(score, 3) if isfinite(score) else None for score in scores[item.id]]}
