"""Failed jobs, with the last error in their logs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from docmt.config.artifacts.study import STAGES
from docmt.files import modified
from docmt.snakemake import Job, Workflow, slurm_logs

STAGE_OF: dict[str, str] = {}
for _stage, _rules in STAGES.items():
    STAGE_OF |= dict.fromkeys(_rules, _stage)
TAIL_BYTES = 8192
# Message from a trainer that was told to stop. It has not failed, and resumes when it is run again.
STOPPED = re.compile(r" WARNING SIG[A-Z0-9]+: saving a checkpoint")
LOG_LINE = re.compile(r"^\d\d:\d\d:\d\d (?P<level>[A-Z]+) ")
SLURM_LINE = re.compile(r"^slurmstepd[\w.-]*: error: ")  # some clusters include the node name
# docmt's messages, Python exceptions (with or without module), then shells, Slurm, signals named by the shell, wrong
# options, and the kernel's out-of-memory killer.
ERROR_LINE = re.compile(
    r"^docmt[\w -]*: error: |^(?:[a-z]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)"
    r"|^\S*(?:bash|sh): .*(?:not found|No such|denied)|^slurmstepd[\w.-]*: error: |^Killed\b"
    r"|^Segmentation fault|^Bus error|^usage: |oom[_-]kill"
)


@dataclass(frozen=True)
class Failure:
    """A job that failed and has not succeeded since.

    Attributes:
        name: log file name.
        log: path relative to the study's folder.
        line: last error in the log, or the closest line to it.
        job: ID in the cluster's queue.
        time: time of the last log line, in seconds since 1970.
    """

    rule: str
    name: str
    log: str
    line: str
    job: str | None
    time: float


def find_failures(folder: Path, workflow: Workflow, is_planned: Callable[[str | None, str], bool]) -> list[Failure]:
    """Return a study's failed jobs, oldest first.

    A successful job writes its benchmark after its log. A log without a newer benchmark therefore belongs to a
    running, interrupted or failed job. It failed if the log ends with an error or Snakemake reports a failure, unless
    it has been restarted since.

    `is_planned(stage, name)` returns True if the job still matters, because its output is missing and needed. The stage
    is None for a user-defined rule.
    """
    failures = []
    for log in sorted((folder / "logs").glob("*/**/*.log")):
        rule, _, name = str(log.relative_to(folder / "logs").with_suffix("")).partition("/")
        written = modified(log)
        if modified(folder / "results" / "benchmarks" / rule / f"{name}.tsv") >= written:
            continue
        # Snakemake prints log paths relative to the folder.
        where = str(log.relative_to(folder))
        announced = workflow.jobs.get(where)
        if not is_planned(STAGE_OF.get(rule), name) or (announced and workflow.started & set(announced.outputs)):
            continue
        slurm_outputs = slurm_logs(folder, rule, name)
        number = None
        if announced:
            number = announced.job
        if not number and slurm_outputs:
            number = slurm_outputs[-1].stem  # the plugin names an attempt's output after the Slurm job ID
        line = find_error(log, announced, slurm_outputs)
        if line is not None:
            failures.append(Failure(rule, name, where, line, number, written))
    return sorted(failures, key=lambda failure: failure.time)


def find_error(log: Path, announced: Job | None, slurm_outputs: list[Path]) -> str | None:
    """Return the last error of a job, or the closest line to it. None if the job has not failed.

    Args:
        log: log of the job.
        announced: last message of Snakemake on the job.
        slurm_outputs: Slurm's output of its attempts, oldest first.
    """
    line = last_error(log)
    if line is not None or announced is None or not announced.is_failed or was_stopped(log):
        return line
    # If Slurm ends a job (time, memory, `scancel`), the reason is not in the job's log but in Slurm's output.
    if slurm_outputs:
        for message in read_tail(slurm_outputs[-1]):
            if SLURM_LINE.match(message):
                line = message
    tail = read_tail(log)
    end = "nothing: it is empty"
    if tail:
        end = repr(tail[-1])
    return line or announced.message or f"no error in the log (killed? disk full?); it ends with {end}"


def was_stopped(log: Path) -> bool:
    """True if a log ends with the message of a trainer that was told to stop."""
    # The message is not always the last line. Progress bars and warnings can follow while the trainer saves.
    return any(STOPPED.search(message) for message in read_tail(log)[-5:])


def last_error(path: Path) -> str | None:
    """Return the last error in a log that no ordinary message follows, or None."""
    for line in reversed(read_tail(path)):
        message = LOG_LINE.match(line)
        # An ordinary message after an error means that the job continued, and a library's traceback was only a warning.
        if message and message["level"] not in ("ERROR", "CRITICAL"):
            return None
        if message or ERROR_LINE.search(line):
            return line
    return None


def read_tail(path: Path) -> list[str]:
    """Read the last nonempty lines in a log, with progress bars split at carriage returns."""
    try:
        with open(path, "rb") as file:
            # The first byte can be inside a UTF-8 character, hence `errors="replace"`.
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
