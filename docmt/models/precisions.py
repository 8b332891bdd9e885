"""The precision in which this CPU computes fastest: measured, since what it can do does not say how fast."""

import logging
from collections.abc import Callable, Mapping
from time import thread_time

import torch

log = logging.getLogger(__name__)

MIN_GAIN = 1.25
"""Least gain over float32 for which another type pays: whatever is not measured gains less. Products in bfloat16 gain
four times with AMX, and lose half with AVX-512 BF16 alone."""


def fastest_precision(steps: Mapping[str, Callable[[], object]]) -> str:
    """The name of the fastest of the same steps in several precisions: of `float32`, unless another one gains much.

    They are computed four times each.
    """
    times = {name: milliseconds(step) for name, step in steps.items()}
    best = min(times, key=times.__getitem__)
    chosen = best if MIN_GAIN * times[best] <= times["float32"] else "float32"
    shown = ", ".join(f"{time:.2f} in {name}" for name, time in times.items())
    log.info("precision: %s: a measured step takes, in ms, %s", chosen, shown)
    return chosen


def milliseconds(compute: Callable[[], object]) -> float:
    """The least CPU time of the calling thread in three calls, whatever else the machine does; its share, with several.

    The call before them prepares.
    """
    times = []
    for _ in range(4):
        started = thread_time()
        compute()
        times.append(1000 * (thread_time() - started))
    return min(times[1:])


def cpu_has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices in hardware (AVX-512 BF16 or AMX)."""
    return _has("_is_avx512_bf16_supported") or _has("_is_amx_tile_supported")


def cpu_has_vnni() -> bool:
    """Whether this CPU sums products of 8-bit integers in 32 bits (AVX-512 VNNI); without, sums of two can overflow."""
    return _has("_is_vnni_supported")


def _has(name: str) -> bool:
    probe = getattr(torch.cpu, name, None)  # not a public function of torch
    return probe is not None and probe()
