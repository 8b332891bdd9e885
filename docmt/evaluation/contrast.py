"""Accuracy on contrastive test sets."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

from docmt.corpora.contrastive import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACY
from docmt.evaluation.rows import ScoreRow
from docmt.files import read_json

SIGNATURE = "the right candidate scores strictly highest|score:log probability of the whole target|interval:Wilson 95 %"


def read_log_probabilities(path: Path) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Read the output of `docmt decode contrast`: the candidates' scores by item id, and the provenance.

    Raises UserError when the file is not of that form.
    """
    content = read_json(path)
    try:
        scores = {item["id"]: [float(score) for score in item["scores"]] for item in content["items"]}
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f'{path}: not an output of `docmt decode contrast` ({{"items": [{{"id", "scores"}}]}}): {error!r}'
        ) from None
    if len(scores) != len(content["items"]):
        raise UserError(f"{path}: duplicate item id")
    return scores, content.get("provenance", {})


def score_contrast(items: Sequence[ContrastiveItem], scores: Mapping[str, Sequence[float]]) -> list[ScoreRow]:
    """Accuracy in percent: over the suite, and by phenomenon, by distance and by kind. A tie counts as wrong.

    Returns:
        Rows with the keys metric, value, n, phenomenon, distance, kind, low and high (95 % Wilson interval), chance
        (accuracy of guessing) and signature. The whole suite has phenomenon null when it holds several.

    Raises:
        UserError: items without scores, scores without items, or a wrong number of them.
    """
    results = [(item, is_right(item, scores)) for item in items]
    known = {item.id for item in items}
    stranger = next((name for name in scores if name not in known), None)
    if stranger is not None:
        raise UserError(f"log probabilities contain item {stranger!r}, which is not in the suite: use the same suite")
    phenomena = list(dict.fromkeys(item.phenomenon for item in items))
    rows = []
    if len(phenomena) > 1:
        rows.append(_row(results))
    for phenomenon in phenomena:
        members = [(item, right) for item, right in results if item.phenomenon == phenomenon]
        rows.append(_row(members, phenomenon=phenomenon))
        for key in ("distance", "kind"):
            values = {getattr(item, key) for item, _ in members} - {None}
            for value in sorted(values, key=lambda value: (isinstance(value, str), value)):
                group = [(item, right) for item, right in members if getattr(item, key) == value]
                rows.append(_row(group, phenomenon=phenomenon, **{key: value}))
    return rows


def is_right(item: ContrastiveItem, scores: Mapping[str, Sequence[float]]) -> bool:
    """Whether the right candidate scores strictly highest. Raises UserError when scores are missing or not numbers."""
    if item.id not in scores:
        raise UserError(f"log probabilities lack item {item.id!r} of the suite: score the suite again")
    values = scores[item.id]
    if len(values) != len(item.candidates):
        raise UserError(f"log probabilities of item {item.id!r}: {len(values)} for {len(item.candidates)} candidates")
    if any(math.isnan(value) for value in values):
        raise UserError(f"log probabilities of item {item.id!r} are not numbers (NaN): the model is broken")
    others = [value for i, value in enumerate(values) if i != item.correct]
    return values[item.correct] > max(others)


def wilson_interval(right: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The Wilson score interval of a share, as shares from 0 to 1."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = right / n
    center = share + z * z / (2 * n)
    margin = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (center - margin) / scale), min(1.0, (center + margin) / scale)


def _row(
    results: Sequence[tuple[ContrastiveItem, bool]],
    *,
    phenomenon: str | None = None,
    distance: int | None = None,
    kind: str | None = None,
) -> ScoreRow:
    n = len(results)
    right = sum(right for _, right in results)
    low, high = wilson_interval(right, n)
    return {
        "metric": ACCURACY,
        "value": 100 * right / n,
        "n": n,
        "phenomenon": phenomenon,
        "distance": distance,
        "kind": kind,
        "low": 100 * low,
        "high": 100 * high,
        "chance": 100 * sum(1 / len(item.candidates) for item, _ in results) / n,
        "signature": SIGNATURE,
    }
