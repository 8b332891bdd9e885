"""Dropout. On a CPU, torch's own costs more than the layer norm after it; this one draws 16 bits for each entry."""

import torch
import torch.nn.functional as F
from torch import Tensor

STEPS = 2**16
"""On a CPU, probabilities are multiples of 1 / STEPS."""


def dropout(rows: Tensor, probability: float, is_training: bool) -> Tensor:
    """Set entries to 0 with a probability and scale the others, so that the mean stays the same."""
    if not is_training or probability == 0 or rows.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(rows, probability, is_training)
    n_dropped = min(max(round(probability * STEPS), 1), STEPS - 1)
    # One 64-bit random number serves four entries.
    numbers = torch.empty(-(-rows.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    kept = numbers[: rows.numel()].view(rows.shape) >= n_dropped - STEPS // 2
    return rows * kept.to(rows.dtype).mul_(STEPS / (STEPS - n_dropped))
