"""Accuracy on contrastive test sets."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar, cast

from docmt.corpora.suite_items import ContrastiveItem, GenerativeItem
from docmt.decoding.settings import SMOOTHING
from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACY, ContrastSettings, Ties
from docmt.evaluation.score_rows import ScoreRow, group_means
from docmt.files import read_json, read_lines

WINNERS = {
    "wrong": "the right candidate scores strictly highest",
    "first": "the right candidate is the first of those that score highest",
}
SCORES = {
    "log_probability": "log probability of the whole target",
    "per_token": "log probability of the whole target per token",
    "label_smoothed": f"log probability of the whole target with label smoothing {SMOOTHING}",
}
RULES = ContrastSettings()
RANGES = {"0": 0, "1": 1, "2": 2, "3": 3, "4–6": 6, "7–10": 10, "> 10": math.inf}
"""Distance bins: name → last distance. Single distances have few items."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|nan)", re.IGNORECASE)
TestedItem = TypeVar("TestedItem", ContrastiveItem, GenerativeItem)


def read_log_probabilities(path: Path) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Read output from `docmt decode score-candidates`: candidate scores by item id, and the provenance."""
    content = read_json(path)
    scores: dict[str, list[float]] = {}
    try:
        for item in content["items"]:
            scores[item["id"]] = list(map(float, item["scores"]))
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise UserError(
            f'{path}: not written by `docmt decode score-candidates` ({{"items": [{{"id", "scores"}}]}}): {error!r}'
        ) from None
    if len(scores) != len(content["items"]):
        raise UserError(f"{path}: duplicate item id")
    origin = content.get("provenance", {})
    if not isinstance(origin, dict) or not isinstance(origin.get("contrast", {}), dict):
        raise UserError(f"{path}: `provenance` and `provenance.contrast` must be objects")
    return scores, origin


def read_user_log_probabilities(path: Path, items: Sequence[ContrastiveItem]) -> list[dict[str, Any]]:
    """Read user-supplied candidate scores. Returns `{"id", "scores"}` per item, in order.

    The file is JSON from `docmt decode score-candidates` (its name ends in `.json`), or text with one line per item
    that contains the candidate scores in order. Scores are log probabilities, so positive scores are refused.
    """
    scores: Mapping[str, Sequence[float]]
    if path.suffix == ".json":
        scores, _ = read_log_probabilities(path)
        check_items(items, scores, where=str(path))
    else:
        lines = read_lines(path)
        if len(lines) != len(items):
            raise UserError(f"{path}: {len(lines)} lines for {len(items)} items: write one line for each item")
        scores = {}
        for number, (item, line) in enumerate(zip(items, lines, strict=True), start=1):
            words = line.split()
            if not all(map(NUMBER.fullmatch, words)):
                raise UserError(f"{path}: line {number}: {line!r} is not a list of numbers separated by spaces")
            scores[item.id] = list(map(float, words))
    rows = [{"id": item.id, "scores": scores_of(item, scores, where=str(path))} for item in items]
    for row in rows:
        highest = max(row["scores"])
        if highest > 0:
            raise UserError(
                f"{path}: item {row['id']!r} has the score {highest:g}, but log probabilities are at most 0: negate "
                "scores for which lower is better, such as losses"
            )
    return rows


def score_contrast(
    items: Sequence[ContrastiveItem], scores: Mapping[str, Sequence[float]], rules: ContrastSettings = RULES
) -> list[ScoreRow]:
    """Return accuracy in percent, over the suite and by phenomenon, distance and kind."""
    check_items(items, scores)
    verdicts = [is_right(item, scores, ties=rules.ties) for item in items]
    context = "|target context:the system's own" if rules.context == "own" else ""
    signature = f"{WINNERS[rules.ties]}|score:{SCORES[rules.score]}{context}|interval:Wilson 95 %"
    return accuracy_rows(
        items, verdicts, metric=ACCURACY, signature=signature, chance=lambda item: 1 / len(item.candidates)
    )


def accuracy_rows(
    items: Sequence[TestedItem],
    verdicts: Sequence[bool],
    *,
    metric: str,
    signature: str,
    chance: Callable[[TestedItem], float] | None = None,
) -> list[ScoreRow]:
    """Return the share of correct items, over a suite and by phenomenon, distance and kind.

    `chance` is the probability of guessing an item correctly. None: rows have no chance.
    """
    rows: list[ScoreRow] = []

    def add_row(phenomenon: str | None, **of_class: object) -> None:
        members = []
        results = []
        for item, is_correct in zip(items, verdicts, strict=True):
            if phenomenon in (None, item.phenomenon) and of_class.items() <= vars(item).items():
                members.append(item)
                results.append(is_correct)
        n = len(results)
        right = sum(results)
        low, high = wilson_interval(right, n)
        row = {"metric": metric, "value": 100 * right / n, "n": n, "low": 100 * low, "high": 100 * high}
        row |= {"phenomenon": phenomenon, "distance": None, "kind": None, "signature": signature, **of_class}
        if chance is not None:
            row["chance"] = 100 * sum(map(chance, members)) / n
        row["groups"] = group_means([100 * is_correct for is_correct in results])
        rows.append(cast(ScoreRow, row))

    phenomena = list(dict.fromkeys(item.phenomenon for item in items))
    # A suite with one phenomenon would have the same row twice.
    if len(phenomena) > 1:
        add_row(None)
    for phenomenon in phenomena:
        add_row(phenomenon)
        for key in ("distance", "kind"):
            values = {getattr(item, key) for item in items if item.phenomenon == phenomenon} - {None}
            # A suite can have both numbers and words as classes. Python cannot sort these together.
            for value in sorted(values, key=lambda value: (isinstance(value, str), value)):
                add_row(phenomenon, **{key: value})
    return rows


def check_items(
    items: Sequence[ContrastiveItem], scores: Mapping[str, Sequence[float]], *, where: str = "log probabilities"
) -> None:
    """Raise UserError if scores belong to an item that is not in the suite."""
    ids = {item.id for item in items}
    for name in scores:
        if name not in ids:
            raise UserError(f"{where}: item {name!r} is not in the suite: use the same suite")


def scores_of(
    item: ContrastiveItem, scores: Mapping[str, Sequence[float]], *, where: str = "log probabilities"
) -> Sequence[float]:
    """Return an item's candidate scores. Raises UserError if they are missing, NaN or too many."""
    if item.id not in scores:
        raise UserError(f"{where}: the scores do not contain item {item.id!r}: score the suite again")
    values = scores[item.id]
    if len(values) != len(item.candidates):
        raise UserError(f"{where}: item {item.id!r} has {len(values)} scores for {len(item.candidates)} candidates")
    if any(map(math.isnan, values)):
        raise UserError(f"{where}: scores of item {item.id!r} are NaN: the model, or the file of scores, is broken")
    return values


def is_right(item: ContrastiveItem, scores: Mapping[str, Sequence[float]], *, ties: Ties = "wrong") -> bool:
    """True if the correct candidate scores highest."""
    values = scores_of(item, scores)
    # As in Voita et al.'s scripts, where the first candidate wins ties.
    if ties == "first":
        return values.index(max(values)) == item.correct
    others = [value for i, value in enumerate(values) if i != item.correct]
    return values[item.correct] > max(others)


def wilson_interval(right: int, n: int) -> tuple[float, float]:
    """Return a share's 95 % Wilson score interval, from 0 to 1."""
    z = NormalDist().inv_cdf(0.975)
    share = right / n
    center = share + z * z / (2 * n)
    margin = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (center - margin) / scale), min(1.0, (center + margin) / scale)


def range_of(distance: float) -> str:
    """Return the range name for a distance."""
    return next(name for name, last in RANGES.items() if distance <= last)


def sort_ranges(names: Iterable[str]) -> list[str]:
    """Return range names, sorted by distance."""
    selection = set(names)
    return [name for name in RANGES if name in selection]
