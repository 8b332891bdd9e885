"""Communication among the processes of a training: stop signals and measurements."""

import itertools
import logging
import math
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Self, cast

import torch
from lightning_fabric import Fabric

from docmt.errors import UserError
from docmt.training.launching import SIGNALS
from docmt.training.progress import TrainingState

log = logging.getLogger(__name__)

SECONDS_BETWEEN_FLUSHES = 5.0
"""Approximate time between agreements on signals and checkpoints. Slurm warns at least 30 seconds ahead."""
MAX_UPDATES_BETWEEN_FLUSHES = 100
MAX_SKIPPED = 32
"""Maximum updates in a row that a gradient scaler may skip. By then, its scale of 65,536 is halved to next to nothing.
"""


class Interrupted(Exception):  # noqa: N818 - a request to stop, not an error
    """A signal requested a stop, and the state is saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class StopSignals:
    """A context manager that notes signals.

    All processes must stop at the same update, but receive a signal at different moments. Therefore a signal takes
    effect at the next `all_reduce`, a call that all processes make together. A single process can also `poll`. `number`
    is the signal in effect and equal in all processes.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.number: int | None = None
        self._noted: int | None = None
        self._count = itertools.count()

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def poll(self) -> None:
        """Let a signal take effect at once, if there is only one process."""
        if self.fabric.world_size == 1:
            self.number = self._noted

    def all_reduce(self, *values: float, on_device: Sequence[torch.Tensor] = ()) -> list[float]:
        """Sum values, then float64 scalars that are still on the device, over all processes, in one exchange."""
        self.poll()
        if self.fabric.world_size == 1:
            return [*values, *(torch.stack([*on_device]).tolist() if on_device else ())]
        flags = [float(self._noted == number) for number in SIGNALS]
        numbers = torch.tensor([*flags, *values], dtype=torch.float64, device=self.fabric.device)
        if on_device:
            numbers = torch.cat((numbers, torch.stack([*on_device])))
        summed = cast(torch.Tensor, self.fabric.all_reduce(numbers, reduce_op="sum"))  # also declared for collections
        term, user, interrupt, *totals = summed.tolist()
        noted = (number for number, count in zip(SIGNALS, (term, user, interrupt), strict=True) if count)
        self.number = next(noted, None)
        return totals

    def raise_if_stopped(self) -> None:
        """Raise Interrupted if a signal is in effect."""
        if self.number is not None:
            raise Interrupted(self.number)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._noted = number
        # Another signal may interrupt this method at any point: a launcher and its cluster often send one each.
        if next(self._count) == 0:
            log.warning("%s: saving a checkpoint after the current update", signal.Signals(number).name)


@dataclass(frozen=True)
class Measurement:
    """A completed update. `loss` and `norm` may still be on the device."""

    step: int  # from 1
    task: int  # its number
    loss: torch.Tensor  # float64 scalar on the device, summed over the share of this process
    norm: torch.Tensor  # scalar on the device, of all gradients before clipping
    rate: float  # the highest learning rate
    labels: int  # over all processes
    tokens: int  # read by this process
    seconds: float  # until the next update could start


class MeasurementQueue:
    """Measurements of updates, kept until all processes flush them together, because reading them waits for the device.

    `rate` and `norm` come from the last flushed update. `save_requested` is true if the first process requested a
    checkpoint at the last flush.
    """

    def __init__(self, fabric: Fabric, signals: StopSignals, *, has_scaler: bool = False) -> None:
        self.fabric, self.signals = fabric, signals
        # In float16, gradients overflow until the scale suits them. The scaler skips these updates.
        self._max_skipped, self._n_skipped = MAX_SKIPPED if has_scaler else 0, 0
        self.rate = self.norm = math.nan
        self.save_requested = False
        self._pending: list[Measurement] = []
        self._max_pending = 1

    def add(self, measurement: Measurement) -> None:
        self._pending.append(measurement)

    def is_flush_due(self) -> bool:
        """True if several processes should flush now, to react to signals in time."""
        return self.fabric.world_size > 1 and len(self._pending) >= self._max_pending

    def flush(self, state: TrainingState, *, is_time_to_save: bool) -> None:
        """Read all measurements, sum them over all processes and add them to the state.

        The first process's clock determines when it is time to save. Raises UserError if a loss or gradient is not
        finite.
        """
        rows, self._pending = self._pending, []
        is_first = self.fabric.is_global_zero
        # All processes have the same norms, which are summed with the losses in one exchange: all but one add zero.
        norms = [row.norm.double() if is_first else torch.zeros_like(row.loss) for row in rows]
        seconds, wishes, *values = self.signals.all_reduce(
            sum(row.seconds for row in rows),
            float(is_time_to_save and is_first),
            *(row.tokens for row in rows),
            on_device=[*(row.loss for row in rows), *norms],
        )
        self.save_requested = wishes > 0
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
    """Return the number of updates between flushes, from the seconds per update."""
    return max(1, min(MAX_UPDATES_BETWEEN_FLUSHES, int(SECONDS_BETWEEN_FLUSHES / max(seconds, 1e-9))))
