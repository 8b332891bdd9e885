"""Relations between the scores of systems, read from text such as `a > b >= c`, `|a - b| <= 1` or `a - b > c - d`."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from docmt.settings import NAME

HINT = "write for example 'a > b', 'a >= b >= c', '|a - b| <= 1', 'a > 50' or 'a@large - a@small > b@large - b@small'"
TERM = re.compile(rf"({NAME})(?:@({NAME}))?")
NUMBER = re.compile(r"\d+(\.\d+)?")
OPERATOR = re.compile(r"\s(<=|>=|<|>)\s")
BOUND = re.compile(r"\|(.+)\| <= (\S+)")


@dataclass(frozen=True)
class Term:
    """The score of a system; on the claim's dataset unless it names one."""

    system: str
    dataset: str | None = None


@dataclass(frozen=True)
class ClaimedDifference:
    """A claim about one difference d, a weighted sum of scores plus a constant.

    Attributes:
        text: as written.
        weights: of each score in d.
        constant: added to d.
        kind: `above` claims that d is larger than the smallest difference that matters; `not below` that it is not
            negative by more than that; `within` that its absolute value is at most `bound`.
        bound: of `within`.
    """

    text: str
    weights: dict[Term, int]
    constant: float
    kind: Literal["above", "not below", "within"]
    bound: float = 0.0

    def difference(self, scores: dict[Term, float]) -> float:
        """The difference d of given scores."""
        return sum(weight * scores[term] for term, weight in self.weights.items()) + self.constant


def parse_relation(text: str) -> list[ClaimedDifference]:
    """The comparisons of a relation: one for each of its operators, all of which are claimed.

    Raises ValueError when it cannot be read.
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
        terms, number = _read_sum(side)
        for term, weight in terms:
            weights[term] += sign * weight
        constant += sign * number
    used = {term: weight for term, weight in weights.items() if weight}
    if not used:
        raise ValueError(f"{text!r} compares nothing; {HINT}")
    return ClaimedDifference(text, used, constant, kind, bound)


def _read_sum(text: str) -> tuple[list[tuple[Term, int]], float]:
    """Terms with their signs, and the sum of the numbers."""
    words = text.split()
    if len(words) % 2 == 0:
        raise ValueError(f"cannot read {text!r}; {HINT}")
    terms, constant = [], 0.0
    for sign, word in zip(["+", *words[1::2]], words[::2], strict=True):
        if sign not in ("+", "-"):
            raise ValueError(f"cannot read {sign!r}; {HINT}")
        factor = 1 if sign == "+" else -1
        if NUMBER.fullmatch(word):
            constant += factor * float(word)
        elif found := TERM.fullmatch(word):
            terms.append((Term(*found.groups()), factor))
        else:
            raise ValueError(f"cannot read {word!r}; {HINT}")
    return terms, constant
