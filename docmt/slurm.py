"""Slurm jobs that Snakemake has submitted for a study."""

import atexit
import logging
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from docmt.errors import UserError, first_line
from docmt.snakemake import SLURM_LOGS, slurm_label

log = logging.getLogger(__name__)

FIELDS = ("JobArrayID", "State", "Comment", "STDOUT", "Reason", "TimeLeft")
# Longer than a Slurm client waits for a restarting controller.
TIMEOUT_SECONDS = 20
# How many jobs one message names.
MAX_NAMED = 5
REFUSAL = re.compile(r"The error message was '(.*?)'\.\n", re.DOTALL)
"""Pattern for the words of `sbatch` in the Slurm plugin's message, before the whole command line."""
TEMPORARY = re.compile(
    r"MaxSubmit|temporarily unable|Unable to contact slurm|Socket timed out|Connection refused", re.I
)
"""Pattern for refusals that end by themselves: too many jobs in the queue, or a controller that is away.

The words "job submit limit" are not among them, because Slurm also prints them for a time limit of a QOS.
"""


class QueueError(Exception):
    """`squeue` is installed, but failed or did not answer."""


@dataclass(frozen=True)
class SlurmJob:
    """A pending or running job.

    Attributes:
        id: Slurm job id, for `scancel`.
        state: `RUNNING`, `PENDING`, ….
        label: rule and wildcards.
        reason: why Slurm has not started the job.
        time_left: time until the limit of a running job.
    """

    id: str
    state: str
    label: str
    reason: str
    time_left: str


def list_jobs(folder: Path, *, timeout_seconds: float = TIMEOUT_SECONDS) -> list[SlurmJob]:
    """Return your pending and running jobs for the study in `folder`. Empty on a machine without Slurm.

    Raises QueueError if Slurm does not answer.
    """
    if shutil.which("squeue") is None:
        return []
    layout = ",".join(f"{field}:|" for field in FIELDS)
    command = ["squeue", "--me", "--noheader", "--Format", layout]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=timeout_seconds
        )
    except subprocess.TimeoutExpired:
        raise QueueError(f"squeue did not answer within {timeout_seconds:g} seconds") from None
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", None) or "").split("\n")
        reason = next((line.strip() for line in reversed(lines) if line.strip()), first_line(error))
        raise QueueError(f"squeue failed ({reason})") from None
    logs = f"{Path(folder).resolve() / SLURM_LOGS}/"
    jobs = []
    for line in done.stdout.splitlines():
        fields = line.split("|")
        if len(fields) <= len(FIELDS):
            raise QueueError(f"squeue printed {line!r}, not {len(FIELDS)} fields")
        job_id, state, comment, path, *others = fields[: len(FIELDS)]
        if path.startswith(logs):
            jobs.append(SlurmJob(job_id, state, slurm_label(comment), *others))
    return jobs


def watch_jobs(folder: Path) -> None:
    """Raise UserError if jobs from an earlier run are queued, and report the remaining jobs at exit.

    If Snakemake is killed or interrupted twice, its jobs continue. A second run would submit them again.
    """
    try:
        jobs = list_jobs(folder)
    except QueueError as problem:
        log.warning("%s: jobs from an earlier run may still be running", problem)
        jobs = []
    if jobs:
        raise UserError(
            f"Slurm still has {_name(jobs)} from an earlier run (see `squeue --me`): wait until they end, or "
            f"cancel them with `scancel {_ids(jobs)}`; then run again"
        )
    atexit.register(_name_left_jobs, folder)


def _name_left_jobs(folder: Path) -> None:
    try:
        jobs = list_jobs(folder)
    except QueueError as problem:
        log.error("%s: jobs from this run may still be running; `squeue --me` lists them", problem)
        return
    if jobs:
        log.error(
            "Slurm still has %s from this run: `squeue --me` lists them, `scancel %s` cancels them",
            _name(jobs),
            _ids(jobs),
        )


def _name(jobs: list[SlurmJob]) -> str:
    named = "; ".join(f"{job.id}, {job.state.lower()}, {job.label}" for job in jobs[:MAX_NAMED])
    return f"jobs ({named}{'; …' if len(jobs) > MAX_NAMED else ''})"


def _ids(jobs: list[SlurmJob]) -> str:
    return " ".join(job.id for job in jobs)


def read_refusal(message: str) -> str | None:
    """Return the words of `sbatch` in the Slurm plugin's message on a refused job. None for another message."""
    refusal = REFUSAL.search(message)
    if refusal is None:
        return None
    return "; ".join(line.removeprefix("sbatch: error: ") for line in refusal[1].strip().splitlines())


def is_temporary(reason: str) -> bool:
    """True if Slurm can accept the same job later."""
    return TEMPORARY.search(reason) is not None
