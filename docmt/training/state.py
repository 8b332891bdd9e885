"""The state of a training: everything beside weights and optimizer that decides how it goes on."""

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
"""Columns for each task, with its name behind, of trainings with several."""


@dataclass
class Window:
    """Sums since the last row of the history."""

    loss: float = 0.0
    labels: int = 0
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class TaskState:
    """Where a task stands.

    Attributes:
        name: of the task.
        epoch: passes finished over its instances.
        position: updates made in the running pass.
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
        tasks: in the order of their turns; epochs of the training are those of the first.
        tokens: source and target tokens read.
        seconds: time spent in updates, over all sessions.
        best_loss, best_step: lowest validation loss and its update.
        validations_without_gain: since the best one.
        validated_step: update of the last validation.
        history: one dict per row, see `columns`; values not measured are absent.
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

    @property
    def epoch(self) -> int:
        """Finished passes over the instances of the first task."""
        return self.tasks[0].epoch

    def columns(self) -> list[str]:
        """The columns of the history."""
        if len(self.tasks) == 1:
            return list(HISTORY_COLUMNS)
        return [*HISTORY_COLUMNS, *(f"{column}_{task.name}" for column in TASK_COLUMNS for task in self.tasks)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TrainingState":
        """The inverse of `to_dict`."""
        tasks = [TaskState(**task) for task in values["tasks"]]
        return cls(**(values | {"window": Window(**values["window"]), "tasks": tasks}))
