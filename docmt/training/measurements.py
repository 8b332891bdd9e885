"""Losses and gradient norms of updates, left on the device and read all at once: reading makes the host wait for it."""

import math
from dataclasses import dataclass

import torch
from lightning_fabric import Fabric

from docmt.errors import UserError
from docmt.training.progress import TrainingState
from docmt.training.stopping import StopSignals

SECONDS_BETWEEN_FLUSHES = 5.0
"""About how often several processes agree on signals and checkpoints. Slurm gives notice of 30 seconds or more."""
MAX_UPDATES_BETWEEN_FLUSHES = 100
MAX_SKIPPED = 32
"""Updates in a row that a gradient scaler may skip: by then it has halved its scale of 65,536 to next to nothing."""


@dataclass(frozen=True)
class Measurement:
    """An update that is done, as far as the host knows.

    Attributes:
        step: its number, from 1.
        task: the number of its task.
        loss: float64 scalar on the device, the sum over the share of this process.
        norm: scalar on the device, the norm of all gradients before clipping.
        rate: the highest learning rate.
        labels: over all processes.
        tokens: read by this process.
        seconds: until the next update could start.
    """

    step: int
    task: int
    loss: torch.Tensor
    norm: torch.Tensor
    rate: float
    labels: int
    tokens: int
    seconds: float


class MeasurementQueue:
    """Measurements of updates until all processes flush them together.

    Attributes:
        rate, norm: of the last flushed update.
        is_time_to_save: whether the first process asked for a checkpoint at the last flush.
    """

    def __init__(self, fabric: Fabric, signals: StopSignals, *, has_scaler: bool = False) -> None:
        self.fabric, self.signals = fabric, signals
        # In float16, gradients overflow until the scale suits them; the scaler skips these updates.
        self._max_skipped, self._n_skipped = MAX_SKIPPED if has_scaler else 0, 0
        self.rate = self.norm = math.nan
        self.is_time_to_save = False
        self._pending: list[Measurement] = []
        self._max_pending = 1

    def add(self, measurement: Measurement) -> None:
        self._pending.append(measurement)

    def is_flush_due(self) -> bool:
        """Whether several processes should flush now, so that they notice signals in time."""
        return self.fabric.world_size > 1 and len(self._pending) >= self._max_pending

    def flush(self, state: TrainingState, *, is_time_to_save: bool) -> None:
        """Read all measurements, sum them over all processes and add them to the state.

        The clock of the first process determines when it is time to save.

        Raises:
            UserError: a loss or gradient is not finite.
        """
        rows, self._pending = self._pending, []
        is_first = self.fabric.is_global_zero
        # All processes have the same norms, which are summed with the losses in one exchange: all but one add zero.
        norms = [row.norm.double() if is_first else torch.zeros_like(row.loss) for row in rows]
        seconds, wishes, *values = self.signals.add_up(
            sum(row.seconds for row in rows),
            float(is_time_to_save and is_first),
            *(row.tokens for row in rows),
            on_device=[*(row.loss for row in rows), *norms],
        )
        self.is_time_to_save = wishes > 0
        n = len(rows)
        if rows:  # from the seconds of all processes, so that they flush after the same update
            self._max_pending = updates_between_flushes(seconds / n / self.fabric.world_size)
        for row, tokens, loss, norm in zip(rows, values[:n], values[n : 2 * n], values[2 * n :], strict=True):
            self._n_skipped = 0 if math.isfinite(norm) else self._n_skipped + 1
            if self._n_skipped > self._max_skipped or not math.isfinite(loss):
                raise UserError(
                    f"training: loss {loss / row.labels:.4g}, gradient norm {norm:.4g} at update {row.step}, learning "
                    f"rate {row.rate:.3g}: lower learning_rate or set max_gradient_norm; the last checkpoint is kept"
                )
            state.add_update(row.task, loss=loss, labels=row.labels, tokens=int(tokens))
            self.rate, self.norm = row.rate, self.norm if self._n_skipped else norm


def updates_between_flushes(seconds: float) -> int:
    """Number of updates after which processes flush again, if each takes some seconds."""
    return max(1, min(MAX_UPDATES_BETWEEN_FLUSHES, int(SECONDS_BETWEEN_FLUSHES / max(seconds, 1e-9))))
