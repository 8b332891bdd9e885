"""Messages and progress bars, on standard error only: standard output is for results."""

import logging
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def set_up_logging(*, verbose: bool = False) -> None:
    """Send the log of `docmt` to standard error, one line per message."""
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%H:%M:%S",
        stream=sys.stderr,
        force=True,
    )
    for noisy in ("matplotlib", "fontTools", "urllib3", "jieba", "lightning", "lightning.fabric"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def progress(items: Iterable[Item], *, label: str, unit: str, total: int | None = None) -> Iterator[Item]:
    """Iterate, with a progress bar if standard error is a terminal."""
    return iter(tqdm(items, desc=label, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True))
