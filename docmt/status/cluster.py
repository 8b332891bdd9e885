"""What Slurm says of a study's jobs: its queue, and the logs that its jobs left."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from docmt.slurm import LOGS, QueueUnknown, SlurmJob, list_jobs

TIMEOUT_SECONDS = 2.0
"""After that the controller counts as down: a glance must not hang."""

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", "SUSPENDED", "STOPPED")
"""States of jobs that occupy no node, or do nothing there."""


@dataclass(frozen=True)
class Queue:
    """The jobs of a study in Slurm's queue.

    Attributes:
        jobs: pending and running ones.
        is_known: whether there is a Slurm and it answered.
        problem: why it did not; None where there is no Slurm.
    """

    jobs: tuple[SlurmJob, ...] = ()
    is_known: bool = False
    problem: str | None = None

    def find(self, number: str | None) -> SlurmJob | None:
        """The job of an id."""
        return next((job for job in self.jobs if number is not None and job.id == number), None)

    def waiting(self) -> list[SlurmJob]:
        """The jobs that do not run yet."""
        return [job for job in self.jobs if job.state in WAITING]


def read_queue(folder: Path) -> Queue:
    """Ask `squeue` for the jobs of the study in a folder. Never an error; without Slurm the queue is empty."""
    try:
        jobs = list_jobs(folder, timeout_seconds=TIMEOUT_SECONDS)
    except QueueUnknown as problem:
        return Queue(problem=str(problem))
    return Queue(tuple(jobs), is_known=shutil.which("squeue") is not None)


def job_logs(folder: Path, rule: str, name: str) -> list[Path]:
    """What Slurm kept of a job's own output, oldest first: files `{id}.log` of Snakemake's Slurm plugin.

    Args:
        folder: of the study.
        rule, name: of the job; the name as that of its log file. The plugin joins the bare wildcards, so that only
            letters and digits are compared, without `seed` before a number.
    """
    folders = (folder / LOGS / f"rule_{rule}").glob("*/")
    files = [path for found in folders if _bare(found.name) == _bare(name) for path in found.glob("*.log")]
    return sorted(files, key=lambda path: (path.stat().st_mtime, path.name))


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"_seed(\d+)", r"_\1", name.lower()).replace("-of-", "_"))
