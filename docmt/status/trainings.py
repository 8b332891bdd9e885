"""The state of trainings: how far each has come, whether its trainer is alive, and when it may finish."""

import contextlib
import csv
import math
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan
from docmt.config.systems import Run, training_settings
from docmt.snakemake import Workflow, slurm_logs
from docmt.status.cluster import Queue
from docmt.status.failures import Failure
from docmt.training.lock import is_running, read_note

FRESH_SECONDS = 600
"""A trainer on another host is considered alive if it recorded progress within this time."""

KINDS = {"step": int, "epoch": int, "tokens_per_second": float, "dev_loss": float, "seconds": float}
"""Columns of a trainer's history that are shown."""

STATES = ("failed", "running", "queued", "interrupted", "waiting", "done")


@dataclass(frozen=True)
class Training:
    """A training run.

    Attributes:
        state: `waiting` (not started), `queued` (in Slurm's queue), `running`, `interrupted` (resumes from its
            checkpoint), `failed` or `done`.
        step: updates made; None if it has not started.
        max_steps: maximum number of updates; None if only epochs or patience end it.
        epoch: finished passes over the data.
        tokens_per_second: last rate.
        dev_loss: last validation loss.
        best_loss: lowest validation loss.
        seconds: spent on updates, over all sessions.
        eta_seconds: until `max_steps` at the mean rate so far, not counting validation; it may stop earlier. None
            unless it is running.
        job: ID in the cluster's queue.
        host: where its trainer runs or last ran.
        pid: process of its trainer.
        devices: as recorded by the trainer.
    """

    dataset: str
    system: str
    seed: int
    state: str
    step: int | None = None
    max_steps: int | None = None
    epoch: int | None = None
    tokens_per_second: float | None = None
    dev_loss: float | None = None
    best_loss: float | None = None
    seconds: float | None = None
    eta_seconds: float | None = None
    job: str | None = None
    host: str | None = None
    pid: int | None = None
    devices: Any = None

    @property
    def name(self) -> str:
        """`DATASET/SYSTEM/seedN`."""
        return f"{self.dataset}/{self.system}/seed{self.seed}"


def job_name(run: Run | Training) -> str:
    """The name of a run's log file and benchmark, and the beginning of those of its other jobs."""
    return f"{run.dataset}_{run.system}_seed{run.seed}"


def read_trainings(
    folder: Path, plan: Plan, *, workflow: Workflow, queue: Queue, failures: Sequence[Failure]
) -> list[Training]:
    """The trainings of a plan in a study's folder, in the order of the configuration."""
    failed = {failure.name for failure in failures if failure.rule == "train"}
    return [
        _read_training(folder, plan, run, workflow=workflow, queue=queue, is_failed=job_name(run) in failed)
        for run in plan.artifacts.trained
    ]


def _read_training(
    folder: Path, plan: Plan, run: Run, *, workflow: Workflow, queue: Queue, is_failed: bool
) -> Training:
    model = f"{run_folder(run)}/model.pt"
    checkpoints = _newest_checkpoints((folder / model).parent / "checkpoints")
    note = read_note(checkpoints) if checkpoints else {}
    job = _find_job(folder, run, note, workflow.started.get(model))
    queued = queue.find(job)
    is_done = (folder / model).exists() and model not in workflow.started
    if is_done:
        state = "done"
    elif _is_alive(checkpoints, note) or (queued is not None and queued not in queue.waiting()):
        state = "running"
    elif queued is not None:
        state = "queued"
    elif model in workflow.started and _is_starting(workflow, note) and not _is_lost(job, queue):
        state = "running"
    elif is_failed:
        state = "failed"
    else:
        state = "interrupted" if checkpoints else "waiting"
    progress = _read_progress(checkpoints) if checkpoints else {}
    if is_done:
        progress |= _read_history((folder / model).with_name("history.csv"))
    max_steps = training_settings(plan.config, run.system).max_steps
    return Training(
        run.dataset,
        run.system,
        run.seed,
        state,
        **progress,
        max_steps=max_steps,
        eta_seconds=_eta(progress, max_steps) if state == "running" else None,
        job=job,
        host=(queued.node if queued and queued.node else None) or note.get("host"),
        pid=note.get("pid"),
        devices=note.get("devices"),
    )


def _newest_checkpoints(folder: Path) -> Path | None:
    """The most recent folder of checkpoints: each combination of settings has its own."""
    found = [path for path in folder.glob("*/") if path.is_dir()]
    return max(found, key=lambda path: max((file.stat().st_mtime for file in path.iterdir()), default=0), default=None)


def _find_job(folder: Path, run: Run, note: dict[str, Any], marked: str | None) -> str | None:
    """The ID of the job in the cluster's queue, from Snakemake's mark, the trainer's note, or the newest Slurm log."""
    if marked or note.get("job"):
        return marked or str(note["job"])
    logs = slurm_logs(folder, "train", job_name(run))
    return logs[-1].stem if logs else None


def _is_starting(workflow: Workflow, note: dict[str, Any]) -> bool:
    """Whether a trainer started by Snakemake may still be importing and loading, before it writes its note."""
    return workflow.state == "running" or (workflow.state == "locked" and not note)


def _is_lost(job: str | None, queue: Queue) -> bool:
    """Whether a job left the queue without a trace."""
    return job is not None and queue.is_known and queue.find(job) is None


def _is_alive(checkpoints: Path | None, note: dict[str, Any]) -> bool:
    """Whether the trainer is alive: it holds a lock on its note, or, on another host, has recently made progress."""
    if checkpoints is None or not note:
        return False
    if is_running(checkpoints):
        return True
    if note.get("host") in (None, platform.node()):
        return False
    with contextlib.suppress(OSError):
        return time.time() - (checkpoints / "progress.json").stat().st_mtime < FRESH_SECONDS
    return False


def _read_progress(checkpoints: Path) -> dict[str, Any]:
    """The last progress that the trainer recorded; if there is none, its history."""
    progress = read_note(checkpoints, "progress.json") or _read_history(checkpoints / "history.csv")
    return {key: _as(kind, progress.get(key)) for key, kind in {**KINDS, "best_loss": float}.items()}


def _read_history(path: Path) -> dict[str, Any]:
    """The last value of each column, and the lowest validation loss."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    columns = {key: [_as(kind, row.get(key)) for row in rows] for key, kind in KINDS.items()}
    known = {key: [value for value in column if value is not None] for key, column in columns.items()}
    progress = {key: values[-1] for key, values in known.items() if values}
    return progress | ({"best_loss": min(known["dev_loss"])} if known["dev_loss"] else {})


def _as(kind: type, value: Any) -> Any:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return kind(number) if math.isfinite(number) else None


def _eta(progress: dict[str, Any], max_steps: int | None) -> float | None:
    step, seconds = progress.get("step"), progress.get("seconds")
    if not step or seconds is None or max_steps is None:
        return None
    return max(0, max_steps - step) * seconds / step
