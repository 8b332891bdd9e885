"""Check outcomes: figures, and the verdict on their limits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

Verdict = Literal["ok", "FAILED", "measured", "not run", "not measured yet"]


@dataclass(frozen=True)
class Outcome:
    """Check outcome: a sentence or figures for users, the verdict, and all figures by name."""

    value: str
    verdict: Verdict = "measured"
    numbers: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    seconds: float = 0.0


NOT_COMPILED = Outcome("needs triton, and a GPU with bfloat16 and flash attention", "not run")


def needed(is_there: bool, value: str, defect: str) -> Outcome:
    """Return the outcome for a requirement: `value` if it is met, otherwise a failure that names the defect."""
    return Outcome(value, "ok") if is_there else Outcome(defect, "FAILED")


def judge(numbers: Mapping[str, float], limits: Mapping[str, float], *, note: str = "") -> Outcome:
    """Compare figures with their limits. The outcome shows figures that exceed a limit or are NaN, or the worst."""
    bad = [name for name, limit in limits.items() if not numbers[name] <= limit]
    names = bad or [max(limits, key=lambda name: numbers[name] / (limits[name] or 1))]
    parts = [f"{name} {numbers[name]:.2g} (at most {limits[name]:g})" for name in names]
    return Outcome("; ".join([*parts, *([note] if note else [])]), "FAILED" if bad else "ok", dict(numbers))


def relative_difference(values: Sequence[float], expected: Sequence[float]) -> float:
    """Return the largest relative difference between two lists. Infinite if their lengths differ."""
    if len(values) != len(expected):
        return math.inf
    differences = [abs(a - b) / max(abs(b), 1e-9) for a, b in zip(values, expected, strict=True)]
    return math.inf if any(map(math.isnan, differences)) else max(differences, default=0.0)


def distance(tensor: Tensor, expected: Tensor) -> float:
    """Return the norm of the difference, relative to the expected tensor's norm."""
    return float((tensor - expected).norm() / expected.norm())
