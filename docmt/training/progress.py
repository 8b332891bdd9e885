"""What a running training publishes: its history and its progress."""

import csv
import logging
from datetime import UTC, datetime
from pathlib import Path

from docmt.errors import UserError
from docmt.files import atomic_writer, write_json
from docmt.training.state import TrainingState

log = logging.getLogger(__name__)


def write_history(path: Path, state: TrainingState, *, checksum: bool = True) -> None:
    """Write the history as CSV, with empty cells for values that were not measured."""
    with atomic_writer(path, checksum=checksum) as file:
        writer = csv.DictWriter(file, state.columns(), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(state.history)


def write_progress(path: Path, state: TrainingState, *, max_steps: int | None) -> None:
    """Write the progress of the training. A failure is only logged: it must not stop the training."""

    def last(column: str) -> float | None:
        return next((row[column] for row in reversed(state.history) if column in row), None)

    content = {
        "step": state.step,
        "max_steps": max_steps,
        "epoch": state.epoch,
        "tokens_per_second": last("tokens_per_second"),
        "dev_loss": last("dev_loss"),
        "best_loss": state.best_loss,
        "seconds": round(state.seconds, 3),
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        write_json(path, content, checksum=False)
    except (OSError, UserError) as error:
        log.warning("%s", error)
