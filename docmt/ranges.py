"""Starts and ends of consecutive parts of an array, from the lengths of the parts."""

from collections.abc import Sequence

import numpy as np


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Return the start of each part, int64 [parts]."""
    return np.cumsum(lengths) - lengths


def offsets_of(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the start of each part, and the end of the last, int64 [parts + 1]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    return offsets


def expand_ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the concatenation of `arange(start, start + length)` over all ranges, int64."""
    lengths = np.asarray(lengths, dtype=np.int64)
    # Without a loop: 0, 1, 2, … over all ranges, plus the range start minus the preceding lengths.
    return np.repeat(np.asarray(starts, dtype=np.int64) - starts_of(lengths), lengths) + np.arange(int(lengths.sum()))
