"""What updates measured on the device, read all at once: reading makes the host wait for the device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from lightning_fabric import Fabric

from docmt.errors import UserError
from docmt.training.state import TrainingState
from docmt.training.stopping import StopSignals

SECONDS_BETWEEN_AGREEMENTS = 5.0
"""About how often several processes agree on signals and checkpoints. Slurm gives notice of 30 seconds or more."""
MAX_UPDATES_BETWEEN_AGREEMENTS = 100


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


class Ledger:
    """Collects the measurements of updates until they are settled, which all processes do together.

    Attributes:
        rate, norm: of the last settled update.
        is_time_to_save: whether the first process asked for a checkpoint when they settled.
    """

    def __init__(self, fabric: Fabric, signals: StopSignals) -> None:
        self.fabric, self.signals = fabric, signals
        self.rate = self.norm = math.nan
        self.is_time_to_save = False
        self._open: list[Measurement] = []
        self._max_open = 1

    def add(self, measurement: Measurement) -> None:
        """Collect the measurement of an update."""
        self._open.append(measurement)

    def is_agreement_due(self) -> bool:
        """Whether several processes should settle now, so that they notice signals in time."""
        return self.fabric.world_size > 1 and len(self._open) >= self._max_open

    def settle(self, state: TrainingState, *, is_time_to_save: bool) -> None:
        """Read all measurements, sum them over all processes and add them to the state.

        The clock of the first process determines when it is time to save.

        Raises:
            UserError: a loss or gradient is not finite.
        """
        rows, self._open = self._open, []
        is_first = self.fabric.is_global_zero
        on_device = [row.loss for row in rows]
        on_device += [
            row.norm.double() if is_first else torch.zeros_like(row.loss) for row in rows
        ]  # all have the same
        seconds, wishes, *values = self.signals.add_up(
            sum(row.seconds for row in rows),
            float(is_time_to_save and is_first),
            *(row.tokens for row in rows),
            on_device=on_device,
        )
        self.is_time_to_save = wishes > 0
        self._plan(rows, seconds)
        n = len(rows)
        for row, tokens, loss, norm in zip(rows, values[:n], values[n : 2 * n], values[2 * n :], strict=True):
            if not (math.isfinite(norm) and math.isfinite(loss)):
                raise UserError(
                    f"training: loss {loss / row.labels:.4g}, gradient norm {norm:.4g} at update {row.step}, learning "
                    f"rate {row.rate:.3g}: lower learning_rate or set max_gradient_norm; the last checkpoint is kept"
                )
            state.add_update(row.task, loss=loss, labels=row.labels, tokens=int(tokens))
            self.rate, self.norm = row.rate, norm

    def _plan(self, rows: Sequence[Measurement], seconds: float) -> None:
        """Choose after how many updates to agree next; the same in all processes, whose seconds these sum up."""
        if rows:
            mean = seconds / len(rows) / self.fabric.world_size
            n_updates = SECONDS_BETWEEN_AGREEMENTS / max(
                mean, SECONDS_BETWEEN_AGREEMENTS / MAX_UPDATES_BETWEEN_AGREEMENTS
            )
            self._max_open = max(1, int(n_updates))
