"""Training progress, running trainers, and estimated time to completion."""

import csv
import math
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan
from docmt.config.systems import Run, training_settings
from docmt.files import modified
from docmt.snakemake import Workflow
from docmt.training.lock import is_running, read_status

FRESH_SECONDS = 600  # maximum age of the last recorded progress of a living trainer on another host
# Displayed training history columns
KINDS = {"step": int, "tokens_per_second": float, "dev_loss": float, "seconds": float}
STATES = ("failed", "running", "started", "interrupted", "waiting", "done")


@dataclass(frozen=True)
class Training:
    """A training run.

    Attributes:
        state: `waiting`, `started` (by Snakemake: waits in a cluster's queue, loads, or is about to end), `running`,
            `interrupted` (resumes from its checkpoint), `failed` or `done`.
        step: number of updates so far. None if it has not started.
        max_steps: maximum number of updates. None if only epochs or patience are limited.
        tokens_per_second, dev_loss: last logged values.
        eta_seconds: seconds until `max_steps` at the mean rate so far, without validation. It can stop earlier. None
            unless it is running.
    """

    dataset: str
    system: str
    seed: int
    state: str
    step: int | None = None
    max_steps: int | None = None
    tokens_per_second: float | None = None
    dev_loss: float | None = None
    eta_seconds: float | None = None

    @property
    def name(self) -> str:
        """`DATASET/SYSTEM/seedN`."""
        return run_name(self)


def run_name(run: Run | Training) -> str:
    """Return a run's log and benchmark file name."""
    return f"{run.dataset}/{run.system}/seed{run.seed}"


def read_training(folder: Path, plan: Plan, run: Run, *, workflow: Workflow, is_failed: bool) -> Training:
    """Return the state of a run's training in a study folder."""
    model = f"{run_folder(run.dataset, run.system, run.seed)}/model.pt"
    # Every combination of settings has a checkpoint folder. The newest belongs to the last trainer.
    folders = [path for path in (folder / model).parent.glob("checkpoints/*/") if path.is_dir()]
    checkpoints = max(folders, key=lambda path: max(map(modified, path.iterdir()), default=0), default=None)
    note = read_status(checkpoints) if checkpoints else {}
    # Snakemake marks a job's outputs before it starts, and removes the marks when it has succeeded.
    is_started = model in workflow.started
    # Between that mark and the trainer's first note, the job waits in a queue or loads the data.
    is_starting = workflow.state == "running" or (workflow.state == "locked" and not note)
    is_done = (folder / model).exists() and not is_started
    # The order matters: a living trainer outweighs an old failure, and a failure outweighs its checkpoints.
    if is_done:
        state = "done"
    elif _is_alive(checkpoints, note):
        state = "running"
    elif is_started and is_starting:
        state = "started"
    elif is_failed:
        state = "failed"
    elif checkpoints:
        state = "interrupted"
    else:
        state = "waiting"
    progress = {}
    if checkpoints:
        status = read_status(checkpoints, "progress.json") or _read_history(checkpoints / "history.csv")
        progress = {key: _as(kind, status.get(key)) for key, kind in KINDS.items()}
    if is_done:
        progress |= _read_history((folder / model).with_name("history.csv"))
    max_steps = training_settings(plan.config, run.system).max_steps
    step = progress.get("step")
    seconds = progress.pop("seconds", None)
    eta = None
    if state == "running" and step and seconds is not None and max_steps is not None:
        eta = max(0, max_steps - step) * seconds / step
    return Training(run.dataset, run.system, run.seed, state, **progress, max_steps=max_steps, eta_seconds=eta)


def _is_alive(checkpoints: Path | None, note: dict[str, Any]) -> bool:
    """True if the trainer holds a lock on its note or, on another host, has recently made progress."""
    if checkpoints is None or not note:
        return False
    if is_running(checkpoints):
        return True
    if note.get("host") in (None, platform.node()):
        return False
    # Some network file systems hide another host's locks, so the age of the last progress decides.
    return time.time() - modified(checkpoints / "progress.json") < FRESH_SECONDS


def _read_history(path: Path) -> dict[str, Any]:
    """Return the last value by column."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    last_values = {}
    for row in rows:
        for key, kind in KINDS.items():
            value = _as(kind, row.get(key))
            if value is not None:
                last_values[key] = value
    return last_values


def _as(kind: type, value: Any) -> Any:
    # If a trainer is writing right now, a cell can be incomplete. A diverged run's loss is nan.
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(number):
        return None
    return kind(number)
