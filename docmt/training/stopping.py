"""Signals that ask a training to stop, agreed upon by all its processes."""

import itertools
import logging
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Self, cast

import torch
from lightning_fabric import Fabric

from docmt.training.launching import SIGNALS

log = logging.getLogger(__name__)


class Interrupted(Exception):  # noqa: N818 - a request to stop, not an error
    """A signal asked to stop; the state is saved."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number


class StopSignals:
    """A context manager that notes signals.

    All processes must stop at the same update, although a signal reaches each at a different moment. It therefore takes
    effect at the next `add_up`, which all call together; a single process may also `notice` it.

    Attributes:
        number: the signal in effect, the same in all processes; None if there is none.
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

    def notice(self) -> None:
        """Let a signal take effect at once, if this process is the only one."""
        if self.fabric.world_size == 1:
            self.number = self._noted

    def add_up(self, *values: float, on_device: Sequence[torch.Tensor] = ()) -> list[float]:
        """Sum values, then float64 scalars that are still on the device, over all processes, in one exchange."""
        self.notice()
        if self.fabric.world_size == 1:
            return [*values, *(torch.stack([*on_device]).tolist() if on_device else ())]
        flags = [float(self._noted == number) for number in SIGNALS]
        mine = torch.tensor([*flags, *values], dtype=torch.float64, device=self.fabric.device)
        if on_device:
            mine = torch.cat((mine, torch.stack([*on_device])))
        summed = cast(torch.Tensor, self.fabric.all_reduce(mine, reduce_op="sum"))  # declared for collections, too
        term, user, interrupt, *totals = summed.tolist()
        noted = (number for number, count in zip(SIGNALS, (term, user, interrupt), strict=True) if count)
        self.number = next(noted, None)
        return totals

    def check(self) -> None:
        if self.number is not None:
            raise Interrupted(self.number)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._noted = number
        # Another signal may interrupt this method at any point: a launcher and its cluster often send one each.
        if next(self._count) == 0:
            log.warning("%s: saving a checkpoint after the current update", signal.Signals(number).name)
