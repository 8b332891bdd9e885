"""Ranges of distances whose items are counted together, since single distances have few."""

import math
from collections.abc import Iterable

RANGES = {"0": 0, "1": 1, "2": 2, "3": 3, "4–6": 6, "7–10": 10, "> 10": math.inf}  # last distance by name


def range_of(distance: float) -> str:
    """The name of the range with a distance."""
    return next(name for name, last in RANGES.items() if distance <= last)


def sort_ranges(names: Iterable[str]) -> list[str]:
    """Ranges of distances, from the nearest to the farthest."""
    found = set(names)
    return [name for name in RANGES if name in found]
