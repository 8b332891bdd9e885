"""Memory: the largest batches are tried before the first update, larger ones on a GPU. Failures name the remedy."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric

from docmt.errors import UserError, is_out_of_memory
from docmt.instances.storage import InstanceSet
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.compiling import CompiledLoss
from docmt.training.tasks import Task
from docmt.training.updates import UpdateReader, instance_batches

log = logging.getLogger(__name__)

MEMORY_SHARE = 0.85
"""Share of GPU memory for batches. Batches with other shapes may need a little more than those tried."""
WORTHWHILE = 1.1  # larger batches are tried only if they are larger by this factor


class OutOfMemory(UserError):  # noqa: N818 - the name of torch
    """A batch with `n_instances` does not fit into memory."""

    def __init__(self, message: str, *, n_instances: int = 1) -> None:
        super().__init__(message)
        self.n_instances = n_instances


@contextlib.contextmanager
def describe_oom(instance_set: InstanceSet, instances: np.ndarray, device: torch.device) -> Iterator[None]:
    """Convert an out-of-memory error to an OutOfMemory that names the batch and the setting to lower."""
    try:
        yield
        return
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(error)):
            raise
    # Outside the handler, whose traceback keeps the tensors alive.
    tokens = instance_set.n_tokens()
    longest = instances[tokens[instances].argmax()]
    remedy = (
        "set --micro-batch-tokens to fewer, which keeps the updates as they are, or lower max_batch_tokens (and raise "
    )
    remedy += "accumulation_steps to keep the size of an update)"
    if len(instances) == 1:
        remedy = "this instance alone is too large: lower max_tokens of its instances"
    raise OutOfMemory(
        f"training: out of memory on {device} with a batch of {tokens[instances].sum()} tokens in {len(instances)} "
        f"instances, the longest of {tokens[longest]} tokens (document {instance_set.documents[longest] + 1} of the "
        f"training set): {remedy}",
        n_instances=len(instances),
    )


def largest_batches(instance_set: InstanceSet, *, max_tokens: int) -> list[np.ndarray]:
    """Return the most expensive batches in an epoch: the longest instances together, and the fullest batch.

    Global attention is most expensive for long instances. Everything else is proportional to tokens.
    """
    tokens = instance_set.n_tokens()
    batches = instance_batches(np.argsort(-tokens, kind="stable"), tokens, max_tokens)
    fullest = max(batches, key=lambda batch: tokens[batch].sum())
    if fullest is batches[0]:
        return [batches[0]]
    return [batches[0], fullest]


class MicroBatchSize:
    """Maximum number of tokens that a device computes at once, `micro_batch_tokens` in the update reader.

    The value is the one that an earlier session with this request on such devices saved, or the requested one. Without
    either, it is found by a trial before the first update on a GPU, and is `max_batch_tokens` on a CPU. An update that
    runs out of memory halves it.
    """

    def __init__(self, reader: UpdateReader, checkpoints: CheckpointFolder, fabric: Fabric) -> None:
        self.reader, self.checkpoints, self.fabric = reader, checkpoints, fabric
        requested = reader.micro_batch_tokens
        self.is_chosen = requested is None
        self.devices = f"{fabric.world_size} × {fabric.device.type}"
        if requested is not None:
            self.devices += f", {requested} tokens requested"
        reader.micro_batch_tokens = checkpoints.load_hint("micro_batch_tokens", self.devices) or requested

    def probe(self, module: Any, optimizer: torch.optim.Optimizer, compiled: CompiledLoss | None = None) -> None:
        """Run the largest batches in all tasks forward and backward, with room for the optimizer state.

        Weights and random numbers do not change. The module is the model with its loss, as Fabric wraps it (a private
        type). On a GPU, the size becomes the largest that memory allows and an update can use. A size from an earlier
        session is only halved until it fits.
        """
        reader, fabric, settings = self.reader, self.fabric, self.reader.settings
        is_cuda = fabric.device.type == "cuda"
        is_noted = self.is_chosen and reader.micro_batch_tokens is not None
        least = most = reader.micro_batch_tokens or settings.max_batch_tokens
        if is_cuda and reader.micro_batch_tokens is None:
            most = max(least, -(-settings.max_batch_tokens * settings.accumulation_steps // fabric.world_size))

        def run(max_tokens: int) -> None:
            for task in reader.tasks:
                for drawn in largest_batches(task.train, max_tokens=max_tokens):
                    try:
                        self._compute(task, drawn, module, optimizer)
                    except Exception as error:
                        if compiled is None or not compiled.disable_if_compiler_failed(error):
                            raise
                        self._compute(task, drawn, module, optimizer)

        n_pools = 2 if reader.fills else 1  # graphs keep memory of their own
        is_training = module.training
        module.train()
        # Trial batches draw dropout, which must not shift the random numbers of the training.
        with torch.random.fork_rng(devices=[fabric.device] if is_cuda else []):
            while True:
                try:
                    tokens = largest_that_fits(run, least=least, most=most, used=lambda: n_pools * _used_memory())
                    break
                except OutOfMemory as error:
                    if not is_noted or error.n_instances == 1:
                        raise
                least = most = least // 2
        module.train(is_training)
        if is_cuda and self.is_chosen:
            # All devices use the limit of the one with the least memory, so that they split updates alike.
            smallest = fabric.all_reduce(torch.tensor(tokens, device=fabric.device), reduce_op="min")
            tokens = int(smallest)  # pyright: ignore
            log.info("a device computes up to %d tokens at once (--micro-batch-tokens)", tokens)
            if fabric.is_global_zero:
                # Dropout depends on how updates are cut: equally for the same number of GPUs with enough memory.
                self.checkpoints.save_hint("micro_batch_tokens", self.devices, tokens)
        reader.micro_batch_tokens = tokens

    def _compute(self, task: Task, drawn: np.ndarray, module: Any, optimizer: torch.optim.Optimizer) -> None:
        instance_set, numbers = task.read(drawn, epoch=0)
        try:
            with describe_oom(task.train, drawn, self.fabric.device):
                # Room for the two moments of Adam, which allocates them in its first update.
                fresh = [p for p in module.parameters() if p.requires_grad and not optimizer.state]
                moments = [torch.empty_like(p) for p in fresh for _ in range(2)]
                batch = task.collate(instance_set, numbers, self.reader.model_settings)
                self.fabric.backward(module(batch.prepare(self.reader.kernel).to(self.fabric.device)))
                del moments, batch
        finally:
            # Also after an error in a backward pass, whose gradients the first update would keep.
            optimizer.zero_grad()

    def halve(self, step: int) -> bool:
        """Halve the size after update `step` has run out of memory. Returns True if this session can repeat the update.

        Among several devices it cannot, because all must cut validation into the same batches. Later sessions start
        with the halved size.
        """
        limit = (self.reader.micro_batch_tokens or self.reader.settings.max_batch_tokens) // 2
        self.checkpoints.save_hint("micro_batch_tokens", self.devices, limit)
        is_alone = self.fabric.world_size == 1
        when = "after a restart"
        if is_alone:
            when = "from now on"
        log.warning("update %d: out of memory: using at most %d tokens at once %s", step, limit, when)
        if is_alone:
            self.reader.micro_batch_tokens = limit
        return is_alone


def largest_that_fits(run: Callable[[int], None], *, least: int, most: int, used: Callable[[], float]) -> int:
    """Find the number of tokens from `least`, which must fit, to `most` that uses about `MEMORY_SHARE` of the memory.

    `run` computes the largest batches with a number of tokens, or raises OutOfMemory. `used` returns the maximum share
    of memory in use since the last call.
    """
    run(least)
    tokens = least
    while tokens < most:
        larger = min(most, 2 * tokens, int(tokens * MEMORY_SHARE / used()))
        if larger < min(most, WORTHWHILE * tokens):
            break
        try:
            run(larger)
        except OutOfMemory:
            torch.cuda.empty_cache()
            break
        tokens = larger
    return tokens


def _used_memory() -> float:
    """Return the maximum share of available memory that was used since the last call."""
    free, _ = torch.cuda.mem_get_info()
    share = torch.cuda.max_memory_allocated() / (free + torch.cuda.memory_reserved())
    torch.cuda.reset_peak_memory_stats()
    return share
