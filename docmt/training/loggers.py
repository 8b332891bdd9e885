"""Loggers of Lightning that follow a training beside `history.csv`: TensorBoard, CSV, and W&B and MLflow offline."""

import importlib
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.training.settings import LoggerName

log = logging.getLogger(__name__)

CLASSES: dict[LoggerName, tuple[str, str, str]] = {
    "csv": ("lightning_fabric.loggers", "CSVLogger", ""),
    "tensorboard": ("lightning_fabric.loggers", "TensorBoardLogger", "tensorboard"),
    "wandb": ("pytorch_lightning.loggers", "WandbLogger", "pytorch-lightning wandb"),
    "mlflow": ("pytorch_lightning.loggers", "MLFlowLogger", "pytorch-lightning mlflow"),
}
"""Module and class of each logger, and the packages to install for it."""


class Loggers:
    """Loggers that are told the same. None of them can stop a training: what fails is logged once, and left out."""

    def __init__(self, loggers: Mapping[str, Any]) -> None:
        self._loggers = dict(loggers)

    def log(self, row: Mapping[str, float | None], step: int) -> None:
        """Record the finite numbers of a row of the history."""
        numbers = {
            name: float(value)
            for name, value in row.items()
            if name != "step" and isinstance(value, int | float) and math.isfinite(value)
        }
        self._tell("log_metrics", numbers, step)
        self._tell("save")

    def close(self) -> None:
        """Write what is left."""
        self._tell("finalize", "success")

    def _tell(self, method: str, *arguments: Any) -> None:
        for name, logger in list(self._loggers.items()):
            try:
                getattr(logger, method)(*arguments)
            except Exception as error:  # whatever a package of others raises
                log.warning("logger %s stops: %s", name, error)
                del self._loggers[name]


def make_loggers(names: Sequence[LoggerName], folder: Path, *, run: str) -> Loggers:
    """Loggers that write below `folder/{name}` and reach no server.

    Args:
        names: which ones.
        folder: for their files.
        run: what W&B and MLflow call the run.

    Raises:
        UserError: a package is not installed.
    """
    return Loggers({name: _make(name, folder / name, run) for name in names})


def _make(name: LoggerName, folder: Path, run: str) -> Any:
    module, cls, packages = CLASSES[name]
    folder.mkdir(parents=True, exist_ok=True)
    options: dict[LoggerName, dict[str, Any]] = {
        "csv": {"root_dir": folder, "name": "", "flush_logs_every_n_steps": 1},  # each session has its own version
        "tensorboard": {"root_dir": folder, "name": "", "version": ""},
        "wandb": {"save_dir": folder, "project": "docmt", "name": run, "offline": True},
        "mlflow": {
            "experiment_name": "docmt",
            "run_name": run,
            # MLflow 3 refuses to write plain files.
            "tracking_uri": f"sqlite:///{folder.resolve()}/mlflow.db",
            "artifact_location": (folder.resolve() / "artifacts").as_uri(),
        },
    }
    try:
        return getattr(importlib.import_module(module), cls)(**options[name])
    except ImportError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"training.loggers: {name} needs packages: pip install {packages} ({reason})") from None
