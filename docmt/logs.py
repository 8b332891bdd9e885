"""Messages and progress bars on standard error. Standard output is for results."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

from tqdm import tqdm
from typing_extensions import override

from docmt.errors import escape_controls

Item = TypeVar("Item")

# Seconds between two log lines of a `Meter`.
LOG_SECONDS = 30.0

logger = logging.getLogger(__name__)


class _Formatter(logging.Formatter):
    """Messages can quote users' files, servers and programs, whose control characters would act in a terminal."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record), keep="\n\t")


def set_up_logging(*, verbose: bool = False) -> None:
    """Send the log of `docmt` to standard error, one line per message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    for noisy in ("matplotlib", "fontTools", "urllib3", "jieba", "lightning_fabric"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def progress(items: Iterable[Item], *, label: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Iterate, with a progress bar if standard error is a terminal."""
    return iter(tqdm(items, desc=label, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True))


class Meter:
    """Progress, speed and remaining time of a long computation.

    In a terminal, this is a progress bar, otherwise a log line every 30 seconds.
    """

    def __init__(self, total: int, *, label: str, unit: str) -> None:
        self.total, self.label, self.unit = total, label, unit
        self.bar = tqdm(desc=label, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True)
        self.done = 0
        self.started = self.logged = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def add(self, count: int) -> None:
        self.done += count
        self.bar.update(count)
        now = time.monotonic()
        if self.bar.disable and now - self.logged >= LOG_SECONDS:
            self.logged = now
            rate = self.done / (now - self.started)
            text = "%s: %d of %d %s, %.1f per second, %s left"
            left = tqdm.format_interval((self.total - self.done) / rate) if rate else "?"
            logger.info(text, self.label, self.done, self.total, self.unit, rate, left)
