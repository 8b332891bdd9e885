"""Intervals, p values and power for a mean difference with several sources of error, and Holm's correction."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

CONFIDENCE = 0.9  # interval level, so that both ends are one-sided tests at 5 %
TAIL = (1 - CONFIDENCE) / 2
POWER = 0.8  # detection probability at the smallest detectable effect
MAX_SEEDS = 1000  # maximum number of seeds that `seeds_needed` returns
MIN_P = 1e-12


class ErrorSource(NamedTuple):
    """One source of error: training seeds, or the documents of a test set."""

    error: float | np.ndarray  # standard error of the difference
    degrees: int  # degrees of freedom of its estimate


def error_source(values: np.ndarray) -> ErrorSource:
    """Return the error of the mean over the last axis: differences by seed, or by document group."""
    n = values.shape[-1]
    return ErrorSource(values.std(axis=-1, ddof=1) / math.sqrt(n), n - 1)


def half_width(sources: Sequence[ErrorSource], *, tail: float = TAIL) -> np.ndarray:
    """Return half the interval, from Student's t for each source."""
    from scipy.special import stdtrit  # slow to import, and most reports have no claims

    # If seeds fail on different documents, both sources contain this variation, so that the interval is too wide.
    return np.sqrt(sum((stdtrit(source.degrees, 1 - tail) * source.error) ** 2 for source in sources))


def p_value(distance: float, sources: Sequence[ErrorSource]) -> float:
    """Return the one-sided p value of a difference at this distance from a limit, by the same test as `half_width`."""
    from scipy.optimize import brentq

    if distance == 0:
        return 0.5
    if half_width(sources, tail=MIN_P) <= abs(distance):
        p = 0.0
    else:
        p = cast(float, brentq(lambda tail: half_width(sources, tail=tail) - abs(distance), MIN_P, 0.5))
    if distance > 0:
        return p
    return 1 - p


def smallest_effect(sources: Sequence[ErrorSource]) -> float:
    """Return the smallest distance from a limit that a test with `half_width` detects with `POWER`."""
    from scipy.special import nctdtrinc, stdtrit

    effects = []
    for source in sources:
        effects.append(nctdtrinc(source.degrees, 1 - POWER, stdtrit(source.degrees, 1 - TAIL)) * source.error)
    return math.hypot(*effects)


def with_seeds(sd: float, n_seeds: int, documents: Sequence[ErrorSource]) -> list[ErrorSource]:
    """Return the sources for a number of seeds with this deviation, on the same documents."""
    return [ErrorSource(sd / math.sqrt(n_seeds), n_seeds - 1), *documents]


def seeds_needed(distance: float, sd: float, documents: Sequence[ErrorSource]) -> int | None:
    """Return how many seeds show this distance from a limit, or None if even `MAX_SEEDS` seeds do not."""
    numbers = range(2, MAX_SEEDS + 1)
    index = bisect_left(
        numbers, True, key=lambda n_seeds: smallest_effect(with_seeds(sd, n_seeds, documents)) < abs(distance)
    )
    if index == len(numbers):
        return None
    return numbers[index]


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values adjusted by Holm's (1979) method.

    If no null hypothesis is false, the probability of an adjusted p value of at most α is at most α.
    """
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = largest
    return adjusted
