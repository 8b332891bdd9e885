"""Ranges of distances whose items are counted together, since single distances have few."""

import math
import re
from collections.abc import Iterable

RANGES = {"0": 0, "1": 1, "2": 2, "3": 3, "4–6": 6, "7–10": 10, "> 10": math.inf}  # last distance by name


def range_of(distance: float) -> str:
    """The name of the range with a distance."""
    return next(name for name, last in RANGES.items() if distance <= last)


def sort_ranges(names: Iterable[str]) -> list[str]:
    """Distances, or ranges of them, from the nearest to the farthest."""
    return sorted(set(names), key=lambda name: int(re.findall(r"\d+", name)[0]) + name.startswith(">"))
