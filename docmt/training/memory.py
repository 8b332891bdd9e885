"""Memory: the worst batch is tried before the first update, and a batch that does not fit is reported."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric

from docmt.errors import UserError
from docmt.instances.storage import InstanceSet
from docmt.models.settings import ModelSettings
from docmt.training.batches import fill_batches
from docmt.training.tasks import Task

log = logging.getLogger(__name__)

SIGNS = ("can't allocate memory", "DefaultCPUAllocator", "bad_alloc", "out of memory", "could not create a memory")


@contextlib.contextmanager
def explained_memory(instance_set: InstanceSet, instances: np.ndarray, device: torch.device) -> Iterator[None]:
    """Turn a lack of memory into a UserError that names the batch and the setting to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not any(s in str(error) for s in SIGNS):
            raise
        message = _describe(instance_set, instances, device)
    else:
        return
    # Outside the handler, whose traceback keeps the tensors alive.
    raise UserError(message)


def _describe(instance_set: InstanceSet, instances: np.ndarray, device: torch.device) -> str:
    tokens = instance_set.n_tokens()
    longest = instances[tokens[instances].argmax()]
    remedy = (
        "lower max_batch_tokens (and raise accumulation_steps to keep the size of an update)"
        if len(instances) > 1
        else "this instance alone is too large: lower max_tokens of its instances"
    )
    return (
        f"training: out of memory on {device} with a batch of {tokens[instances].sum()} tokens in {len(instances)} "
        f"instances, the longest of {tokens[longest]} tokens (document {instance_set.documents[longest] + 1} of the "
        f"training set): {remedy}"
    )


def worst_batches(instance_set: InstanceSet, *, max_tokens: int) -> list[np.ndarray]:
    """Return the worst batches that an epoch may contain: the longest instances together, and the fullest batch.

    Global attention costs most on long instances, everything else is proportional to tokens.
    """
    tokens = instance_set.n_tokens()
    batches = fill_batches(np.argsort(-tokens, kind="stable"), tokens, max_tokens)
    fullest = max(batches, key=lambda batch: tokens[batch].sum())
    return [batches[0]] if fullest is batches[0] else [batches[0], fullest]


def probe_memory(
    module: Any,
    optimizer: torch.optim.Optimizer,
    *,
    tasks: Sequence[Task],
    model_settings: ModelSettings,
    max_tokens: int,
    fabric: Fabric,
) -> None:
    """Run the worst batches of each task forward and backward, with room for the optimizer state; change nothing.

    The module is the model with its loss, as Fabric wraps it (a private type). Raises UserError, naming the batch and
    the setting to lower, when memory is too small.
    """
    devices = [fabric.device] if fabric.device.type == "cuda" else []
    is_training = module.training
    module.train()
    with torch.random.fork_rng(devices=devices):
        worst = ((task, batch) for task in tasks for batch in worst_batches(task.train, max_tokens=max_tokens))
        for task, drawn in worst:
            reading = task.read([drawn], epoch=0)
            (instances,) = reading.batches
            with explained_memory(reading.instance_set, instances, fabric.device), fabric.no_backward_sync(module):
                moments = [torch.empty_like(p) for p in module.parameters() for _ in range(2) if not optimizer.state]
                batch = task.collate(reading.instance_set, instances, model_settings).to(fabric.device)
                fabric.backward(module(batch))
                del moments, batch
            optimizer.zero_grad()
    module.train(is_training)
