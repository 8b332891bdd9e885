"""Claims as settings, with relations between the scores of systems such as `a > b >= c` or `|a - b| <= 1`."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACIES, ACCURACY, METRICS
from docmt.settings import NAME, Settings, nearest

HINT = "write for example 'a > b', 'a >= b >= c', '|a - b| <= 1', 'a > 50' or 'a@large - a@small > b@large - b@small'"
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
        kind: `above` claims that d is larger than the smallest difference that matters; `not below` that it is not
            negative by more than that; `within` that its absolute value is at most `bound`.
    """

    text: str
    weights: dict[Term, int]
    constant: float
    kind: Literal["above", "not below", "within"]
    bound: float = 0.0

    def difference(self, scores: dict[Term, float]) -> float:
        """Return the difference d of scores."""
        return sum(weight * scores[term] for term, weight in self.weights.items()) + self.constant


def parse_relation(text: str) -> list[ClaimedDifference]:
    """Return the comparisons of a relation, one for each operator. All of them are claimed.

    Raises ValueError if the relation cannot be read.
    """
    text = " ".join(text.split())
    if bounded := BOUND.fullmatch(text):
        inside, bound = bounded.groups()
        if not NUMBER.fullmatch(bound):
            raise ValueError(f"{bound!r} is not a number; {HINT}")
        return [_compare(text, inside, "0", kind="within", bound=float(bound))]
    sides = OPERATOR.split(text)
    if len(sides) < 3:
        raise ValueError(f"it has no comparison; {HINT}")
    comparisons = []
    for left, operator, right in zip(sides[::2], sides[1::2], sides[2::2], strict=False):
        high, low = (left, right) if operator.startswith(">") else (right, left)
        kind = "not below" if operator.endswith("=") else "above"
        comparisons.append(_compare(f"{left} {operator} {right}", high, low, kind=kind))
    return comparisons


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
            if NUMBER.fullmatch(word):
                constant += factor * float(word)
            elif found := TERM.fullmatch(word):
                weights[Term(*found.groups())] += factor
            else:
                raise ValueError(f"cannot read {word!r}; {HINT}")
    used = {term: weight for term, weight in weights.items() if weight}
    if not used:
        raise ValueError(f"{text!r} compares nothing; {HINT}")
    return ClaimedDifference(text, used, constant, kind, bound)


LOSSES = ("dev_loss", "dev_nll")
ENTROPY, BELOW_UNIFORM = "entropy_", "below_uniform_"  # prefixes of columns of a history on attention


def _is_of_history(name: str) -> bool:
    return name in LOSSES or name.startswith(BELOW_UNIFORM)


def _metric(name: str) -> str:
    if name.startswith(ENTROPY):
        better = name.replace(ENTROPY, BELOW_UNIFORM)
        raise ValueError(f"{name!r} depends on how many keys a mask leaves; name {better!r}")
    if not _is_of_history(name) and name not in METRICS:
        known = [*METRICS, *LOSSES, f"{BELOW_UNIFORM}cross"]
        raise ValueError(f"must name a metric or a column of the training history ({nearest(name, known)})")
    return name


class Claim(Settings):
    """A claim about systems, tested over their seeds (verdicts: docs/claims.md)."""

    later: ClassVar[tuple[str, ...]] = ("reaches", "control")

    statement: str
    """The claim, in a sentence."""
    paper: str = ""
    """Who claims it."""
    place: str = ""
    """Where: tables, figures, sections."""
    reported: str = ""
    """The published finding."""
    metric: Annotated[str, AfterValidator(_metric)]
    """A metric of the scores, or a column of the training history (such as `dev_loss`, `dev_nll`,
    `below_uniform_cross`)."""
    test: str | None = None
    """Test set or suite; needed by metrics of the scores."""
    phenomenon: str | None = None
    """Phenomenon of a suite; null means the whole suite."""
    distances: list[int] = []
    """Distances of contrastive items; empty means all."""
    kind: str | None = None
    """Kind of contrastive items; null means all."""
    at: int | Literal["best", "last"] = "best"
    """Place in the history: after that many updates, at the lowest validation loss, or at the end."""
    reaches: float | None = None
    """Measures time instead: the first update at which the column is at most that, or at least the last one."""
    dataset: str | None = None
    """Dataset of systems in `relations` without one (`SYSTEM@DATASET`); needed if there are several."""
    relations: list[Annotated[str, AfterValidator(lambda text: parse_relation(text) and text)]] = Field(min_length=1)
    """Relations between systems' scores, such as `a > b`, `a >= b >= c`, `|a - b| <= 1` or `a - b > c - d`; all are
    claimed."""
    margin: float = Field(default=0.0, ge=0)
    """Smallest difference that matters: `a > b` claims more, `a >= b` allows as much in the other direction."""
    min_seeds: int = Field(default=3, ge=2)
    """Fewest seeds per system for a verdict."""
    control: str | None = None
    """Another claim, that the systems have learned what they can (`a > 90`); unless it holds, the verdict is *not
    learned yet*."""
    remark: str = ""
    """Differences from the paper's systems, or other remarks for readers."""

    @cached_property
    def comparisons(self) -> list[ClaimedDifference]:
        """Comparisons of all relations."""
        return [comparison for relation in self.relations for comparison in parse_relation(relation)]

    @property
    def terms(self) -> list[Term]:
        """Scores that the claim is about, without duplicates."""
        return list(dict.fromkeys(term for comparison in self.comparisons for term in comparison.weights))

    @property
    def is_of_history(self) -> bool:
        """True if the claim is about the training history instead of scores."""
        return _is_of_history(self.metric)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.is_of_history and self.test is not None:
            raise ValueError(f"{self.metric!r} is measured in training; leave out test")
        if not self.is_of_history and self.test is None:
            raise ValueError(f"test is missing: name the test set or suite that {self.metric!r} is measured on")
        for name, default in (("at", "best"), ("reaches", None)):
            if not self.is_of_history and getattr(self, name) != default:
                raise ValueError(f"{name} is for columns of the training history, not for {self.metric!r}")
        if self.reaches is not None and self.at != "best":
            raise ValueError("reaches looks for an update, at names one: leave out one of them")
        items = [name for name in ("phenomenon", "distances", "kind") if getattr(self, name)]
        if items and self.metric not in ACCURACIES:
            raise ValueError(f"{items[0]} is for the metric {ACCURACY!r}, not for {self.metric!r}")
        if self.distances and self.kind is not None:
            raise ValueError("suites are split by distance or by kind, not by both: leave out distances or kind")
        return self
