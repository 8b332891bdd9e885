"""The fastest precision on this CPU, found by measurement, because supported instructions can still be slow."""

import logging
from collections.abc import Callable, Mapping
from time import thread_time

import torch

log = logging.getLogger(__name__)

MIN_GAIN = 1.25
"""Minimum speed-up over float32 for another precision, since other parts of a step gain less. For example, bfloat16
products gain four times with AMX, but lose half with AVX-512 BF16 only.
"""


def fastest_precision(steps: Mapping[str, Callable[[], object]]) -> str:
    """Return the precision whose step is fastest: `float32`, unless another one gains at least `MIN_GAIN`."""
    times = {name: milliseconds(step) for name, step in steps.items()}
    best = min(times, key=times.__getitem__)
    fastest = "float32"
    if MIN_GAIN * times[best] <= times["float32"]:
        fastest = best
    durations = ", ".join(f"{time:.2f} in {name}" for name, time in times.items())
    log.info("precision: %s (measured ms per step: %s)", fastest, durations)
    return fastest


def milliseconds(compute: Callable[[], object]) -> float:
    """Return the minimum CPU time of the calling thread over three calls, after one call to warm up."""
    times = []
    for _ in range(4):
        started = thread_time()
        compute()
        times.append(1000 * (thread_time() - started))
    return min(times[1:])


def cpu_has_bfloat16() -> bool:
    """True if this CPU multiplies bfloat16 matrices in hardware (AVX-512 BF16 or AMX)."""
    return _has("_is_avx512_bf16_supported") or _has("_is_amx_tile_supported")


def cpu_has_vnni() -> bool:
    """True if this CPU adds 8-bit products in 32 bits (AVX-512 VNNI). Otherwise the sum of two can overflow."""
    return _has("_is_vnni_supported")


def _has(name: str) -> bool:
    probe = getattr(torch.cpu, name, None)  # not a public function of torch
    return probe is not None and probe()
