"""How far running jobs are, from what `docmt.logs.Meter` wrote into their logs."""

from dataclasses import dataclass
from pathlib import Path

from docmt.logs import METER_LINE
from docmt.status.failures import read_tail


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes:
        done: so many are done.
        total: of so many.
        unit: what is counted.
        eta_seconds: until all are done, at the mean rate so far; None if nothing is done.
    """

    done: int
    total: int
    unit: str
    eta_seconds: float | None


def read_progress(log: Path) -> Progress | None:
    """What the last line of a meter in a log says; None where there is none near its end."""
    for line in reversed(read_tail(log)):
        if found := METER_LINE.search(line):
            done, total, rate = int(found["done"]), int(found["total"]), float(found["rate"])
            return Progress(done, total, found["unit"], (total - done) / rate if rate else None)
    return None
