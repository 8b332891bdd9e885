"""Adam with parameter groups and learning rate schedule."""

from collections.abc import Set

import torch
from torch import nn

from docmt.training.settings import TrainingSettings


def build_optimizer(model: nn.Module, pretrained: Set[str], settings: TrainingSettings) -> torch.optim.Adam:
    """Return Adam over all parameters that are not frozen.

    Parameters in `pretrained` peak at `pretrained_learning_rate`, the others at `learning_rate`.
    """
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    groups = [
        ([p for name, p in named if name not in pretrained], settings.learning_rate),
        ([p for name, p in named if name in pretrained], settings.pretrained_learning_rate),
    ]
    return torch.optim.Adam(
        [{"params": parameters, "lr": rate, "peak": rate} for parameters, rate in groups if parameters],
        betas=(settings.adam_beta1, settings.adam_beta2),
        eps=settings.adam_epsilon,
        fused=True,
    )


def learning_rate_factor(step: int, warmup_steps: int, decay_steps: int | None = None) -> float:
    """Return the share of the peak learning rate at update `step`, from 1.

    Linear warm-up, then inverse square root, or linear decay to 0 at update `decay_steps`.
    """
    warmup_steps = max(warmup_steps, 1)
    if decay_steps is None:
        return min(step / warmup_steps, (warmup_steps / step) ** 0.5)
    return min(step / warmup_steps, max(0.0, (decay_steps - step) / (decay_steps - warmup_steps)))
