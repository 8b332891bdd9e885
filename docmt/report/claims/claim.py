"""Claim settings, with score comparisons such as `a > b >= c` or `|a - b| <= 1`."""

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACIES, METRICS
from docmt.settings import NAME, Settings, nearest
from docmt.training.settings import history_columns

HINT = "valid: 'a > b', 'a >= b >= c', '|a - b| <= 1', 'a > 50' or 'a@large - a@small > b@large - b@small'"
TERM = re.compile(rf"({NAME})(?:@({NAME}))?")
NUMBER = re.compile(r"\d+(\.\d+)?")
OPERATOR = re.compile(r"\s(<=|>=|<|>)\s")
BOUND = re.compile(r"\|(.+)\| <= (\S+)")


@dataclass(frozen=True)
class Term:
    """Score of a system, on the claim's dataset by default."""

    system: str
    dataset: str | None = None


@dataclass(frozen=True)
class ClaimedDifference:
    """Claim about one difference d, a weighted sum of scores plus a constant.

    Attributes:
        kind: `above` claims that d is larger than the margin (the smallest relevant difference), `not below` that d is
            at least minus the margin, and `within` that |d| is at most `bound`.
    """

    text: str
    weights: dict[Term, int]
    constant: float
    kind: Literal["above", "not below", "within"]
    bound: float = 0.0

    def difference(self, scores: dict[Term, float]) -> float:
        """Return the difference d."""
        return sum(weight * scores[term] for term, weight in self.weights.items()) + self.constant


def parse_comparison(text: str) -> list[ClaimedDifference]:
    """Return the claimed differences in a comparison such as `a > b >= c`, one per operator.

    Raises ValueError if the text cannot be parsed.
    """
    text = " ".join(text.split())
    bounded = BOUND.fullmatch(text)
    if bounded is not None:
        inside, bound = bounded.groups()
        if not NUMBER.fullmatch(bound):
            raise ValueError(f"{bound!r} is not a number; {HINT}")
        return [_compare(text, inside, "0", kind="within", bound=float(bound))]
    sides = OPERATOR.split(text)
    if len(sides) < 3:
        raise ValueError(f"contains no comparison; {HINT}")
    differences = []
    for left, operator, right in zip(sides[::2], sides[1::2], sides[2::2], strict=False):
        high = left
        low = right
        if operator.startswith("<"):
            high = right
            low = left
        kind = "not below" if operator.endswith("=") else "above"
        differences.append(_compare(f"{left} {operator} {right}", high, low, kind=kind))
    return differences


def _compare(
    text: str, high: str, low: str, *, kind: Literal["above", "not below", "within"], bound: float = 0.0
) -> ClaimedDifference:
    weights: Counter[Term] = Counter()
    constant = 0.0
    for side, sign in ((high, 1), (low, -1)):
        words = side.split()
        if len(words) % 2 == 0:
            raise ValueError(f"cannot read {side!r}; {HINT}")
        for operator, word in zip(["+", *words[1::2]], words[::2], strict=True):
            if operator not in ("+", "-"):
                raise ValueError(f"cannot read {operator!r}; {HINT}")
            factor = sign if operator == "+" else -sign
            term = TERM.fullmatch(word)
            if NUMBER.fullmatch(word):
                constant += factor * float(word)
            elif term is not None:
                weights[Term(*term.groups())] += factor
            else:
                raise ValueError(f"cannot read {word!r}; {HINT}")
    used = {term: weight for term, weight in weights.items() if weight}
    if not used:
        raise ValueError(f"{text!r} contains no system, or the same one on both sides; {HINT}")
    return ClaimedDifference(text, used, constant, kind, bound)


LOSSES = ("dev_loss", "dev_nll")
# Prefixes of training history columns on attention
ENTROPY = "entropy_"
BELOW_UNIFORM = "below_uniform_"


def _is_of_history(name: str) -> bool:
    return name in LOSSES or (name.startswith(BELOW_UNIFORM) and name in history_columns())


def _metric(name: str) -> str:
    if name.startswith(ENTROPY):
        better = name.replace(ENTROPY, BELOW_UNIFORM)
        raise ValueError(f"{name!r} depends on the number of keys that a mask leaves; use {better!r}")
    if not _is_of_history(name) and name not in METRICS:
        names = [*METRICS, *LOSSES, f"{BELOW_UNIFORM}cross"]
        raise ValueError(f"must name a metric or a column of the training history ({nearest(name, names)})")
    return name


class Claim(Settings):
    """A claim about systems, tested over seeds (docs/claims.md)."""

    statement: str
    """Claim in one sentence."""
    paper: str = ""
    """Paper that makes the claim."""
    source: str = ""
    """Tables, figures or sections in the paper, for example `Table 2`."""
    reported: str = ""
    """Published result."""
    metric: Annotated[str, AfterValidator(_metric)]
    """Metric, or column of the training history such as `dev_loss`, `dev_nll` or `below_uniform_cross`."""
    test: str | None = None
    """Test set or suite. Required, except for columns of the training history."""
    phenomenon: str | None = None
    """Phenomenon in a suite. Default: the whole suite."""
    distances: list[int] = []
    """Distances of the items to include, in a contrastive or generative test set. Default: all."""
    kind: str | None = None
    """Kind of the items to include, in a contrastive or generative test set. Default: all."""
    step: Annotated[int, Field(ge=1)] | Literal["best", "last"] = "best"
    """Training history row: an update, `best` (lowest validation loss) or `last`."""
    first_step_below: float | None = None
    """Compare training time: the first update at which the column is at most this value. Default: compare the
    column."""
    dataset: str | None = None
    """Dataset for systems in `comparisons` without one (`SYSTEM@DATASET`). Required if the study has several."""
    comparisons: list[Annotated[str, AfterValidator(lambda text: parse_comparison(text) and text)]] = Field(
        min_length=1
    )
    """Score comparisons, for example `a > b`, `a >= b >= c`, `|a - b| <= 1` or `a - b > c - d`. All must hold."""
    margin: float = Field(default=0.0, ge=0)
    """Smallest relevant difference. `a > b` requires a larger difference. With `a >= b`, `a` can be lower by up to this
    value."""
    min_seeds: int = Field(default=3, ge=2)
    """Minimum number of seeds per system."""
    control: str | None = None
    """Name of a claim that must be supported first, so that systems have learned enough. It has no control itself.
    Otherwise the verdict is *control failed*. Default: no control."""
    remark: str = ""
    """Remark for readers, for example a difference from the paper's systems."""

    @cached_property
    def differences(self) -> list[ClaimedDifference]:
        """Claimed differences in all comparisons."""
        return list(itertools.chain.from_iterable(map(parse_comparison, self.comparisons)))

    @property
    def terms(self) -> list[Term]:
        """Scores in the claim, without duplicates."""
        weights = [difference.weights for difference in self.differences]
        return list(dict.fromkeys(itertools.chain.from_iterable(weights)))

    @property
    def is_of_history(self) -> bool:
        """True if the claim is about the training history instead of scores."""
        return _is_of_history(self.metric)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.is_of_history and self.test is not None:
            raise ValueError(f"{self.metric!r} is measured in training; remove test")
        if not self.is_of_history and self.test is None:
            raise ValueError(f"test is missing: set the test set or suite for {self.metric!r}")
        for name, default in (("step", "best"), ("first_step_below", None)):
            if not self.is_of_history and getattr(self, name) != default:
                raise ValueError(f"{name} applies to columns of the training history, not to {self.metric!r}")
        if self.first_step_below is not None and self.step != "best":
            raise ValueError("first_step_below and step exclude each other: remove one of them")
        items = [name for name in ("phenomenon", "distances", "kind") if getattr(self, name)]
        if items and self.metric not in ACCURACIES:
            raise ValueError(f"{items[0]} applies to {' and '.join(ACCURACIES)}, not to {self.metric!r}")
        if self.distances and self.kind is not None:
            raise ValueError("suites can be split by distance or by kind, not by both: remove distances or kind")
        return self
