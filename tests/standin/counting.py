"""Counts GPU operations: kernel launches, waits of the host, copies from and to the host, with lines of code."""

import contextlib
import ctypes
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from standin.device import LIBRARY

KINDS = ("launch", "sync", "pageable copy", "pinned copy", "copy to host")
"""In the order of `Kind` in cuda.cpp. A synchronous copy to the host is also a sync."""
ROOT = Path(__file__).parents[2]
BACKWARD = "backward"
OURS, LIBRARIES = f"{ROOT / 'docmt'}/", "/site-packages/"


@dataclass
class Counts:
    """Numbers of events by kind, operation and line of code."""

    events: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def __sub__(self, earlier: "Counts") -> "Counts":
        return Counts(self.events - earlier.events)

    def copy(self) -> "Counts":
        """Counts up to now."""
        return Counts(self.events.copy())

    def total(self, kind: str) -> int:
        """Number of events of a kind."""
        return sum(count for (other, _, _), count in self.events.items() if other == kind)

    def launches(self, name: str) -> int:
        """Number of a kernel's launches."""
        return sum(count for (kind, other, _), count in self.events.items() if (kind, other) == ("launch", name))

    def totals(self) -> dict[str, int]:
        """Numbers of events by kind."""
        return {kind: self.total(kind) for kind in KINDS}

    def by_line(self, kind: str) -> Counter[str]:
        """Number of events of a kind by line of code."""
        lines: Counter[str] = Counter()
        for (other, _, line), count in self.events.items():
            if other == kind:
                lines[line] += count
        return lines

    def describe(self, *kinds: str) -> str:
        """A table of events by kind (default: all). The most frequent ones come first."""
        rows = [(count, *event) for event, count in self.events.items() if event[0] in (kinds or KINDS)]
        rows.sort(key=lambda row: (KINDS.index(row[1]), -row[0], row[3]))
        totals = ", ".join(f"{self.total(kind)} × {kind}" for kind in KINDS)
        return "\n".join([totals, *(f"{count:6}  {kind:13}  {line:44}  {name}" for count, kind, name, line in rows)])


_active: list[Counts] = []


def _line(frame: FrameType | None) -> str:
    """Innermost line of docmt in the stack, or else the line that called torch."""
    innermost = None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(OURS):
            return f"{name.removeprefix(f'{ROOT}/')}:{frame.f_lineno}"
        if innermost is None and "/torch/" not in name and not name.startswith("<"):
            innermost = f"{name.rsplit(LIBRARIES, 1)[-1].removeprefix(f'{ROOT}/')}:{frame.f_lineno}"
        frame = frame.f_back
    return innermost or BACKWARD


def note(kind: str, name: str, *, frame: FrameType | None = None) -> None:
    """Count an event."""
    line = _line(frame)
    for counts in _active:
        counts.events[kind, name, line] += 1


@ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64)
def _listen(kind: int, name: bytes, _: int) -> None:
    if _active:
        note(KINDS[kind], name.decode(), frame=sys._getframe().f_back)


LIBRARY.standin_listen(_listen)


@contextlib.contextmanager
def counting() -> Iterator[Counts]:
    """Count events inside the block."""
    counts = Counts()
    _active.append(counts)
    try:
        yield counts
    finally:
        _active.remove(counts)


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Do not count events of this thread inside the block."""
    LIBRARY.standin_pause(1)
    try:
        yield
    finally:
        LIBRARY.standin_pause(-1)
