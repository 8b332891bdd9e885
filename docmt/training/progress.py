"""Training progress: counters, the best validation, the history and their files, and the schedule.

In addition to weights and optimizer, the state is all that determines how a training continues.
"""

import csv
import logging
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from docmt.errors import UserError
from docmt.files import atomic_writer, write_json
from docmt.training.settings import HISTORY_COLUMNS, TASK_COLUMNS, TrainingOptions, TrainingSettings

log = logging.getLogger(__name__)

VALIDATED = ("best_loss", "best_step", "validations_without_gain", "validated_step")
"""Fields in the state that a validation replaces."""


@dataclass
class Window:
    """Sums since the last history row."""

    loss: float = 0.0
    labels: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class Session:
    """A training between a start or resume and the next stop."""

    from_update: int  # number of earlier updates
    seconds: float = 0.0  # in updates
    joules: float | None = None  # of all GPUs, from the start to the last checkpoint. None if unknown


@dataclass
class TaskState:
    """Progress in a task. `loss` and `labels` are sums since the last history row."""

    name: str = "documents"
    epoch: int = 0  # finished passes over its instances
    position: int = 0  # updates made in the current pass
    loss: float = 0.0
    labels: int = 0


@dataclass
class TrainingState:
    """Counters, the best validation so far, and the history.

    Attributes:
        tasks: in turn order. The first one determines the epochs.
        history: one dict per row, see `columns`. Values that were not measured are absent.
        before_end: values that the validation at the end replaced, if a longer training would not have validated there.
        sessions: in order. For a killed session, the updates up to its last checkpoint.
    """

    step: int = 0  # updates made
    tasks: list[TaskState] = field(default_factory=lambda: [TaskState()])
    tokens: int = 0  # source and target tokens read
    seconds: float = 0.0  # in updates, over all sessions
    best_loss: float | None = None
    best_step: int | None = None
    validations_without_gain: int = 0  # since the best one
    validated_step: int = -1
    before_end: dict[str, Any] | None = None
    window: Window = field(default_factory=Window)
    history: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """Completed passes over the first task's instances."""
        return self.tasks[0].epoch

    def columns(self) -> list[str]:
        """Return the history columns: fixed ones, then per task if there are several, then per attention."""
        tasks = []
        if len(self.tasks) > 1:
            tasks = self.tasks
        every = [*HISTORY_COLUMNS, *(f"{column}_{task.name}" for column in TASK_COLUMNS for task in tasks)]
        return list(dict.fromkeys([*every, *(name for row in self.history for name in row)]))

    def add_update(self, number: int, *, loss: float, labels: int, tokens: int) -> None:
        """Count an update for task `number`. `loss` is summed over its labels."""
        self.tokens += tokens
        for sums in (self.window, self.tasks[number]):
            sums.loss += loss
            sums.labels += labels
        self.window.tokens += tokens

    def add_seconds(self, seconds: float) -> None:
        self.seconds += seconds
        self.sessions[-1].seconds += seconds
        self.window.seconds += seconds

    def end_window(self, *, learning_rate: float, gradient_norm: float, passes: dict[str, float]) -> dict[str, Any]:
        """Add a row to the history and start a new window. Returns the row."""
        window = self.window
        row = {
            "step": self.step,
            "epoch": self.epoch,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
            "tokens_per_second": round(window.tokens / window.seconds),
            "learning_rate": learning_rate,
            "gradient_norm": gradient_norm,
            "train_loss": window.loss / window.labels,
        }
        if len(self.tasks) > 1:
            row |= {f"train_loss_{task.name}": task.loss / task.labels for task in self.tasks if task.labels}
            row |= {f"passes_{name}": number for name, number in passes.items()}
        self.history.append(row)
        self.window = Window()
        for task in self.tasks:
            task.loss, task.labels = 0.0, 0
        return row

    def add_validation(self, measured: dict[str, float], *, passes: dict[str, float], is_due: bool = True) -> bool:
        """Add measurements to the history. Returns True if their `dev_loss` is the lowest so far.

        A validation that is not due is the one at the end, and `without_end` reverts it.
        """
        if not is_due:
            self.before_end = {name: getattr(self, name) for name in VALIDATED}
            # With a copy of the last row, which this validation extends below.
            self.before_end["history"] = [*self.history[:-1], *map(dict, self.history[-1:])]
        if not self.history or self.history[-1]["step"] != self.step:
            self.history.append({"step": self.step, "tokens": self.tokens, "seconds": round(self.seconds, 3)})
        self.history[-1] |= {"epoch": self.epoch, **measured}
        if len(self.tasks) > 1:
            self.history[-1] |= {f"passes_{name}": number for name, number in passes.items()}
        self.validated_step = self.step
        if self.best_loss is not None and measured["dev_loss"] >= self.best_loss:
            self.validations_without_gain += 1
            return False
        self.best_loss, self.best_step, self.validations_without_gain = measured["dev_loss"], self.step, 0
        return True

    def without_end(self) -> "TrainingState":
        """Return the state before the final validation, which a longer training would not have run."""
        if self.before_end is None:
            return self
        return replace(self, before_end=None, **self.before_end)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingState":
        parts = {
            "window": Window(**values["window"]),
            "tasks": [TaskState(**task) for task in values["tasks"]],
            "sessions": [Session(**session) for session in values["sessions"]],
        }
        return cls(**(values | parts))


class Schedule:
    """Rules for the updates after which a training validates, saves and ends."""

    def __init__(self, settings: TrainingSettings, options: TrainingOptions) -> None:
        self.settings = settings
        self.options = options
        self.start_clock()

    def start_clock(self) -> None:
        """Start the time to the next checkpoint."""
        self._started = monotonic()

    def is_done(self, state: TrainingState) -> bool:
        settings = self.settings
        return (
            (settings.max_steps is not None and state.step >= settings.max_steps)
            or (settings.max_epochs is not None and state.epoch >= settings.max_epochs)
            or (settings.patience is not None and state.validations_without_gain >= settings.patience)
        )

    def is_validation_due(self, state: TrainingState) -> bool:
        """True after every interval and at the end, unless this update has been validated."""
        return state.validated_step != state.step and (self.ends_interval(state) or self.is_done(state))

    def ends_interval(self, state: TrainingState) -> bool:
        """True after the interval between validations, or at the end of an epoch.

        A longer training also validates there.
        """
        if state.step == 0:
            return False
        if self.settings.validate_every_steps is not None:
            return state.step % self.settings.validate_every_steps == 0
        # The first task has just been trained, and has ended its pass.
        return (state.step - 1) % len(state.tasks) == 0 and state.tasks[0].position == 0

    def is_time_to_save(self) -> bool:
        return monotonic() - self._started >= 60 * self.options.checkpoint_every_minutes

    def is_step_to_save(self, state: TrainingState) -> bool:
        every = self.options.checkpoint_every_steps
        return every is not None and state.step % every == 0


def write_history(path: Path, state: TrainingState, *, checksum: bool = True) -> None:
    """Write the history as CSV, with empty cells for values that were not measured."""
    with atomic_writer(path, checksum=checksum) as file:
        writer = csv.DictWriter(file, state.columns(), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(state.history)


def write_progress(path: Path, state: TrainingState, *, max_steps: int | None) -> None:
    """Write the training's progress. A failure is only logged, because it must not stop the training."""

    def last(column: str) -> float | None:
        return next((row[column] for row in reversed(state.history) if column in row), None)

    content = {
        "step": state.step,
        "max_steps": max_steps,
        "tokens_per_second": last("tokens_per_second"),
        "dev_loss": last("dev_loss"),
        "seconds": round(state.seconds, 3),
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        write_json(path, content, checksum=False)
    except (OSError, UserError) as error:
        log.warning("%s", error)
