"""Lightning loggers in addition to `history.csv`: TensorBoard, CSV, and offline W&B and MLflow."""

import importlib
import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docmt.errors import first_line
from docmt.training.settings import LoggerName

log = logging.getLogger(__name__)

CLASSES: dict[LoggerName, tuple[str, str, str]] = {
    "csv": ("lightning_fabric.loggers", "CSVLogger", ""),
    "tensorboard": ("lightning_fabric.loggers", "TensorBoardLogger", "tensorboard"),
    "wandb": ("pytorch_lightning.loggers", "WandbLogger", "pytorch-lightning wandb"),
    "mlflow": ("pytorch_lightning.loggers", "MLFlowLogger", "pytorch-lightning mlflow"),
}
"""Module, class and packages to install."""


class Loggers:
    """Several loggers. A logger that fails is reported once and removed, so that none can stop a training."""

    def __init__(self, loggers: Mapping[str, Any]) -> None:
        self._loggers = dict(loggers)

    def log(self, row: Mapping[str, float | None], step: int) -> None:
        """Log the finite numbers in a history row."""
        numbers = {
            name: float(value)
            for name, value in row.items()
            if name != "step" and isinstance(value, int | float) and math.isfinite(value)
        }
        self._tell("log_metrics", numbers, step)
        self._tell("save")

    def close(self) -> None:
        self._tell("finalize", "success")

    def _tell(self, method: str, *arguments: Any) -> None:
        for name, logger in list(self._loggers.items()):
            try:
                getattr(logger, method)(*arguments)
            except Exception as error:  # a foreign package may raise anything
                log.warning("logger %s stops: %s", name, first_line(error))
                del self._loggers[name]


def make_loggers(names: Sequence[LoggerName], folder: Path, *, run: str) -> Loggers:
    """Return loggers that write to `folder/{name}` and contact no server. `run` is the run name in W&B and MLflow."""
    loggers = {}
    for name in names:
        module, cls, packages = CLASSES[name]
        target = folder / name
        options: dict[LoggerName, dict[str, Any]] = {
            "csv": {
                "root_dir": target,
                "name": "",
                "flush_logs_every_n_steps": 1,
            },  # each session has its own version
            "tensorboard": {"root_dir": target, "name": "", "version": ""},
            "wandb": {"save_dir": target, "project": "docmt", "name": run, "offline": True},
            "mlflow": {
                "experiment_name": "docmt",
                "run_name": run,
                "tracking_uri": f"sqlite:///{target.resolve()}/mlflow.db",  # MLflow 3 refuses to write plain files
                "artifact_location": (target.resolve() / "artifacts").as_uri(),
            },
        }
        try:
            target.mkdir(parents=True, exist_ok=True)
            loggers[name] = getattr(importlib.import_module(module), cls)(**options[name])
        except Exception as error:  # a foreign package may raise anything
            advice = ""
            if isinstance(error, ImportError):
                advice = f"pip install {packages}: "
            log.warning("training.loggers: %s is left out: %s%s", name, advice, first_line(error))
    return Loggers(loggers)
