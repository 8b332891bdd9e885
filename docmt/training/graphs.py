"""Updates that are recorded once and repeated: the CPU copies one buffer per batch and starts one CUDA graph.

A recorded update contains forward pass, loss, backward pass, clipping and optimizer step. It is repeated for all
updates of the same shape. A repetition draws dropout from the seed of the moment. With several devices, an update has
two graphs, and the exchange of gradients is between them.
"""

import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from torch import Tensor

from docmt.models.attention.kernels import Kernel
from docmt.models.batch import DeviceBatch
from docmt.models.settings import ModelSettings
from docmt.training.filling import FilledBatch
from docmt.training.updates import MicroBatch, Update

log = logging.getLogger(__name__)

MAX_GRAPHS = 24
"""Maximum number of recorded updates. Updates of other shapes are computed without a recording."""
Results = tuple[Tensor, Tensor]
"""Sum of losses and gradient norm, scalars on the device."""
Number = float | Tensor
"""Number for an update. In a recording, it is a scalar on the device, because graphs would keep a float."""
Parts = Generator[Tensor, None, Results]
"""An update in parts. A vector of gradients between two parts becomes the sum over all devices."""
Compute = Callable[[Update, Sequence[Number]], Parts]
"""Computes an update with learning rates."""
Exchange = Callable[[Tensor], None]
"""Replaces a vector by the sum over all devices."""
T = TypeVar("T")


def run_parts(parts: Parts, run: Callable[[Callable[[], Any]], Any], exchange: Exchange) -> Results:
    """Run the parts of an update, each by a call of `run`."""

    def part() -> tuple[Tensor | None, Results | None]:
        try:
            return next(parts), None
        except StopIteration as end:
            return None, end.value

    while True:
        vector, results = run(part)
        if vector is None:
            return results
        exchange(vector)


class CudaRecorder:
    """Records what a function does on a GPU. Recordings share one memory pool, because only one runs at a time."""

    def __init__(self) -> None:
        self.stream, self.pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function on the stream on which it will be recorded, because autograd remembers streams."""
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            results = function()
        current.wait_stream(self.stream)
        return results

    def record(self, function: Callable[[], T]) -> tuple[T, Callable[[], None]]:
        """Record a function without computing it. Returns the tensors for its results, and a function to repeat it."""
        graph = torch.cuda.CUDAGraph()
        # Meanwhile, the thread that pins memory may call CUDA.
        with torch.cuda.graph(graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"):
            results = function()
        return results, graph.replay


@dataclass
class Recording:
    """A recorded update. Every repetition reads the buffers, one per batch, and overwrites the results.

    `parts` repeat the parts of the update, with the vectors between them. `batches` are kept because they contain
    tensors outside of the buffers.
    """

    buffers: list[Tensor]
    batches: list[DeviceBatch]
    parts: list[tuple[Callable[[], None], Tensor | None]]
    results: Results


class UpdateGraphs:
    """Computes updates with filled batches, and records an update when its shape occurs for the second time.

    The first time, kernels are compiled and optimizer states are allocated. `compute` must not wait for the device.
    """

    def __init__(
        self,
        compute: Compute,
        exchange: Exchange,
        optimizer: torch.optim.Optimizer,
        settings: ModelSettings,
        device: torch.device,
    ) -> None:
        self.compute, self.exchange, self.optimizer = compute, exchange, optimizer
        self.settings, self.device = settings, device
        self.recorder = CudaRecorder()
        self.recordings: dict[tuple[bytes, ...], Recording] = {}
        self._seen: set[tuple[bytes, ...]] = set()

    def __call__(self, update: Update, rates: Sequence[float]) -> Results:
        """Compute an update."""
        filled: list[FilledBatch] = [micro_batch.batch for micro_batch in update.micro_batches]
        filled[0].write_numbers([update.weight, update.n_labels, *rates])
        key = tuple(batch.key for batch in filled)
        recording = self.recordings.get(key)
        if recording is not None:
            for buffer, batch in zip(recording.buffers, filled, strict=True):
                buffer.copy_(batch.buffer, non_blocking=True)
            for repeat, vector in recording.parts:
                repeat()
                if vector is not None:
                    self.exchange(vector)
        else:
            buffers = [batch.buffer.to(self.device, non_blocking=True) for batch in filled]
            views = [batch.views(buffer, self.settings) for batch, buffer in zip(filled, buffers, strict=True)]
            batches = [batch for _, batch in views]
            parts = map(MicroBatch, (part.instances for part in update.micro_batches), batches)
            weight, n_labels, *numbers = views[0][0].unbind()
            on_device = replace(update, micro_batches=[*parts], weight=weight, n_labels=n_labels)  # pyright: ignore

            update_parts = self.compute(on_device, numbers[: len(rates)])
            if key not in self._seen or len(self.recordings) == MAX_GRAPHS:
                self._seen.add(key)
                return run_parts(update_parts, self.recorder.run, self.exchange)
            recorded = []

            def record(part: Callable[[], Any]) -> Any:
                values, repeat = self._record(part)
                repeat()
                recorded.append((repeat, values[0]))
                return values

            results = run_parts(update_parts, record, self.exchange)
            recording = self.recordings[key] = Recording(buffers, batches, recorded, results)
            log.info("recorded CUDA graph %d", len(self.recordings))
        # The next repetition overwrites the results, which are read later.
        return recording.results[0].clone(), recording.results[1].clone()

    def _record(self, function: Callable[[], T]) -> tuple[T, Callable[[], None]]:
        groups = self.optimizer.param_groups
        try:
            for group in groups:
                group["capturable"] = True  # Adam refuses to be recorded otherwise
            return self.recorder.record(function)
        finally:
            for group in groups:
                group["capturable"] = False  # as in checkpoints of other trainings


def update_graphs(
    compute: Compute,
    exchange: Exchange,
    optimizer: torch.optim.Optimizer,
    settings: ModelSettings,
    *,
    kernel: Kernel,
    fabric: Fabric,
) -> UpdateGraphs | None:
    """Return recorded updates, or None where they are not possible."""
    if kernel != "varlen":  # the number of batches in padded attention differs from update to update
        return None
    if fabric.strategy.precision.precision == "16-mixed":
        log.info("CUDA graphs are not used with float16")
        return None
    return UpdateGraphs(compute, exchange, optimizer, settings, fabric.device)
