"""Signals that ask a training to stop, agreed upon by all its processes."""

import logging
import signal
from types import FrameType
from typing import Self

import torch
from lightning.fabric import Fabric

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Interrupted(Exception):
    """A signal asked to stop; the state is saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class StopSignals:
    """Notes signals while it is entered as a context manager.

    Processes must stop at the same update, though each learns of a signal at a moment of its own. So a signal counts
    from the next `add_up` on, which all of them call together.

    Attributes:
        number: the signal that counts, the same in all processes; None when there is none.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.number: int | None = None
        self._noted: int | None = None

    def __enter__(self) -> Self:
        self._handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def add_up(self, *values: float) -> list[float]:
        """The values summed over all processes."""
        if self.fabric.world_size == 1:
            self.number = self._noted
            return list(values)
        flags = [float(self._noted == number) for number in SIGNALS]
        mine = torch.tensor([*values, *flags], dtype=torch.float64, device=self.fabric.device)
        *totals, term, user, interrupt = self.fabric.all_reduce(mine, reduce_op="sum").tolist()
        noted = (number for number, count in zip(SIGNALS, (term, user, interrupt), strict=True) if count)
        self.number = next(noted, None)
        return totals

    def _note(self, number: int, _: FrameType | None) -> None:
        if self._noted is None:
            log.warning("%s: saving a checkpoint after the running update", signal.Signals(number).name)
        self._noted = number
