"""The queue of a study's jobs in Slurm."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from docmt.slurm import QueueError, SlurmJob, list_jobs
from docmt.snakemake import SLURM_LOGS

TIMEOUT_SECONDS = 2.0  # then the controller is considered down: the command must not hang
# States of jobs that are not running: they occupy no node, or are idle on it.
WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "CONFIGURING", "SUSPENDED", "STOPPED")


@dataclass(frozen=True)
class Queue:
    """The jobs of a study in Slurm's queue, pending and running ones."""

    jobs: tuple[SlurmJob, ...] = ()
    is_known: bool = False  # Slurm is installed and answered
    problem: str | None = None  # why it did not answer

    def find(self, number: str | None) -> SlurmJob | None:
        return next((job for job in self.jobs if number is not None and job.id == number), None)

    def waiting(self) -> list[SlurmJob]:
        return [job for job in self.jobs if job.state in WAITING]


def read_queue(folder: Path) -> Queue:
    """Ask `squeue` for the jobs of the study in a folder. Never raises; without Slurm the queue is empty."""
    try:
        jobs = list_jobs(folder, timeout_seconds=TIMEOUT_SECONDS)
    except QueueError as problem:
        # On a machine with Slurm but no cluster, this concerns nobody whose study never submitted a job.
        return Queue(problem=str(problem)) if (folder / SLURM_LOGS).exists() else Queue()
    return Queue(tuple(jobs), is_known=shutil.which("squeue") is not None)
