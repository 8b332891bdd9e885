"""The state of a training: everything besides weights and optimizer that determines how it continues."""

from dataclasses import asdict, dataclass, field
from typing import Any

HISTORY_COLUMNS = (
    "step",
    "epoch",
    "tokens",
    "seconds",
    "tokens_per_second",
    "learning_rate",
    "gradient_norm",
    "train_loss",
    "dev_loss",
    "dev_nll",
    "entropy_cross",
    "entropy_encoder",
    "entropy_decoder",
)
TASK_COLUMNS = ("passes", "train_loss", "dev_loss")
"""Columns of each task, followed by its name, in trainings with several tasks."""


@dataclass
class Window:
    """Sums since the last row of the history."""

    loss: float = 0.0
    labels: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class Session:
    """The time between a start or a resume and the next stop.

    Attributes:
        from_update: number of updates made before it.
        seconds: time spent in updates.
    """

    from_update: int
    seconds: float = 0.0


@dataclass
class TaskState:
    """The progress of a task.

    Attributes:
        name: of the task.
        epoch: finished passes over its instances.
        position: updates made in the current pass.
        loss, labels: sums since the last row of the history.
    """

    name: str = "documents"
    epoch: int = 0
    position: int = 0
    loss: float = 0.0
    labels: int = 0


@dataclass
class TrainingState:
    """Counters, the best validation so far, and the history.

    Attributes:
        step: updates made.
        tasks: in the order of their turns; the first one determines the epochs of the training.
        tokens: source and target tokens read.
        seconds: time spent in updates, over all sessions.
        best_loss, best_step: lowest validation loss and its update.
        validations_without_gain: number of validations since the best one.
        validated_step: update of the last validation.
        history: one dict per row, see `columns`; values that were not measured are absent.
        sessions: in order; of a session that was killed, the updates up to its last checkpoint.
    """

    step: int = 0
    tasks: list[TaskState] = field(default_factory=lambda: [TaskState()])
    tokens: int = 0
    seconds: float = 0.0
    best_loss: float | None = None
    best_step: int | None = None
    validations_without_gain: int = 0
    validated_step: int = -1
    window: Window = field(default_factory=Window)
    history: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    @property
    def epoch(self) -> int:
        """The number of finished passes over the instances of the first task."""
        return self.tasks[0].epoch

    def columns(self) -> list[str]:
        """The columns of the history: those of every training, of each of several tasks, and of each attention."""
        tasks = self.tasks if len(self.tasks) > 1 else []
        every = [*HISTORY_COLUMNS, *(f"{column}_{task.name}" for column in TASK_COLUMNS for task in tasks)]
        return list(dict.fromkeys([*every, *(name for row in self.history for name in row)]))

    def add_update(self, number: int, *, loss: float, labels: int, tokens: int) -> None:
        """Count what an update of task `number` read, and its sum of losses."""
        self.tokens += tokens
        for sums in (self.window, self.tasks[number]):
            sums.loss += loss
            sums.labels += labels
        self.window.tokens += tokens

    def add_seconds(self, seconds: float) -> None:
        """Count time spent in updates."""
        self.seconds += seconds
        self.sessions[-1].seconds += seconds
        self.window.seconds += seconds

    def end_window(self, *, learning_rate: float, gradient_norm: float, passes: dict[str, float]) -> dict[str, Any]:
        """Add a row to the history and start a new window; returns the row."""
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
            row |= _passes_columns(passes)
        self.history.append(row)
        self.window = Window()
        for task in self.tasks:
            task.loss, task.labels = 0.0, 0
        return row

    def add_validation(self, measured: dict[str, float], *, passes: dict[str, float]) -> bool:
        """Add measurements to the history; returns whether their `dev_loss` is the lowest so far."""
        if not self.history or self.history[-1]["step"] != self.step:
            self.history.append({"step": self.step, "tokens": self.tokens, "seconds": round(self.seconds, 3)})
        self.history[-1] |= {"epoch": self.epoch, **measured}
        if len(self.tasks) > 1:
            self.history[-1] |= _passes_columns(passes)
        self.validated_step = self.step
        if self.best_loss is not None and measured["dev_loss"] >= self.best_loss:
            self.validations_without_gain += 1
            return False
        self.best_loss, self.best_step, self.validations_without_gain = measured["dev_loss"], self.step, 0
        return True

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingState":
        """Invert `to_dict`. States of older versions have no sessions: their time counts as one."""
        earlier = [{"from_update": 0, "seconds": values["seconds"]}] if values["step"] else []
        parts = {
            "window": Window(**values["window"]),
            "tasks": [TaskState(**task) for task in values["tasks"]],
            "sessions": [Session(**session) for session in values.get("sessions", earlier)],
        }
        return cls(**(values | parts))


def _passes_columns(passes: dict[str, float]) -> dict[str, float]:
    return {f"passes_{name}": number for name, number in passes.items()}
