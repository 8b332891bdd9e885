"""The jobs of a study in Slurm's queue, as the Slurm executor of Snakemake submits them."""

import atexit
import logging
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from docmt.errors import UserError

log = logging.getLogger(__name__)

LOGS = Path(".snakemake/slurm_logs")
"""Where the executor writes the logs of its jobs, in the folder of a study: by this a job is known to belong to it."""
FIELDS = ("JobArrayID", "Name", "State", "Reason", "NodeList", "Comment", "STDOUT")
TIMEOUT_SECONDS = 20
"""Longer than a client waits for a controller that is restarting."""


MOST_NAMED = 5
"""Jobs that one message names."""


class QueueUnknown(Exception):
    """`squeue` is there, but did not answer."""


@dataclass(frozen=True)
class SlurmJob:
    """A pending or running job.

    Attributes:
        id: number in Slurm, for `scancel`.
        call: name that all jobs of one call of Snakemake share.
        state: `RUNNING`, `PENDING`, ….
        reason: why it waits; `None` for a running one.
        node: where it runs; empty when it waits.
        label: rule and wildcards.
    """

    id: str
    call: str
    state: str
    reason: str
    node: str
    label: str


def list_jobs(folder: Path, *, timeout_seconds: float = TIMEOUT_SECONDS) -> list[SlurmJob]:
    """The user's pending and running jobs that belong to the study in `folder`; none where there is no Slurm.

    Raises QueueUnknown when Slurm does not answer.
    """
    if shutil.which("squeue") is None:
        return []
    layout = ",".join(f"{field}:|" for field in FIELDS)
    command = ["squeue", "--me", "--noheader", "--Format", layout]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        raise QueueUnknown(f"squeue did not answer within {timeout_seconds:g} seconds") from None
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise QueueUnknown(f"squeue failed ({reason})") from None
    logs = f"{Path(folder).resolve() / LOGS}/"
    jobs = []
    for line in done.stdout.splitlines():
        fields = line.split("|")
        if len(fields) <= len(FIELDS):
            raise QueueUnknown(f"squeue printed {line!r}, not {len(FIELDS)} fields")
        job_id, call, state, reason, node, comment, path = fields[: len(FIELDS)]
        if path.startswith(logs):
            label = comment.removeprefix("rule_").replace("_wildcards_", " ", 1)
            jobs.append(SlurmJob(job_id, call, state, reason, node, label))
    return jobs


def watch_jobs(folder: Path) -> None:
    """Refuse to begin while jobs of an earlier call are in the queue, and name those that are left at the end.

    A Snakemake that was killed, or interrupted twice, leaves its jobs running. A second one would submit them again.

    Raises UserError when there are such jobs.
    """
    try:
        jobs = list_jobs(folder)
    except QueueUnknown as problem:
        log.warning("%s: whether jobs of an earlier call still run is not known", problem)
        jobs = []
    if jobs:
        raise UserError(
            f"Slurm still has {_name(jobs)} of an earlier call: wait for the end (`docmt status` shows them), or end "
            f"them with `scancel {_ids(jobs)}`; then call again"
        )
    atexit.register(_name_left_jobs, folder)


def keep_asking_squeue() -> None:
    """Let the Slurm plugin of Snakemake (2.8.0) go on with `squeue` while the controller is down.

    Before each look the plugin asks the controller whether `squeue` will do, and turns to `sacct` when there is no
    answer. Where no accounts are kept `sacct` fails too: the plugin then forgets its jobs and waits for ever. Here the
    last answer is remembered.
    """
    import snakemake_executor_plugin_slurm as plugin

    ask = plugin.get_min_job_age
    last: int | None = None

    def remembered() -> int | None:
        nonlocal last
        last = ask() or last
        return last

    plugin.get_min_job_age = remembered


def _name_left_jobs(folder: Path) -> None:
    try:
        jobs = list_jobs(folder)
    except QueueUnknown as problem:
        log.error("%s: whether jobs of this call still run is not known; `squeue --me` shows them", problem)
        return
    if jobs:
        log.error(
            "Slurm still has %s of this call: `docmt status` shows them, `scancel %s` ends them",
            _name(jobs),
            _ids(jobs),
        )


def _name(jobs: list[SlurmJob]) -> str:
    named = "; ".join(f"{job.id}, {job.state.lower()}, {job.label}" for job in jobs[:MOST_NAMED])
    return f"jobs ({named}{'; …' if len(jobs) > MOST_NAMED else ''})"


def _ids(jobs: list[SlurmJob]) -> str:
    return " ".join(job.id for job in jobs)
