"""Jobs that failed: what their logs say last."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from docmt.report.stages import stage_of
from docmt.snakemake import Workflow, slurm_logs

TAIL_BYTES = 8192
STOPPED = re.compile(r" WARNING SIG[A-Z0-9]+: saving a checkpoint")
"""What a trainer says that was asked to stop: it goes on when it is called again, and has not failed."""
LOG_LINE = re.compile(r"^\d\d:\d\d:\d\d (?P<level>[A-Z]+) ")
SLURM_LINE = re.compile(r"^slurmstepd[\w.-]*: error: ")  # on some clusters with the name of the node
ERROR_LINE = re.compile(
    r"^docmt[\w -]*: error: |^(?:[a-z]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: |$)"
    r"|^\S*(?:bash|sh): .*(?:not found|No such|denied)|^slurmstepd[\w.-]*: error: |^Killed\b"
    r"|^Segmentation fault|^Bus error|^usage: |oom[_-]kill"
)


@dataclass(frozen=True)
class Failure:
    """A job that failed and was not mended since.

    Attributes:
        rule, stage, name: which job; the name is that of its log file.
        log: the log, relative to the study's folder.
        line: its last line that says something.
        job: id in the cluster's queue, where it had one.
        time: of the log, in seconds since 1970.
    """

    rule: str
    stage: str
    name: str
    log: str
    line: str
    job: str | None
    time: float


def find_failures(folder: Path, workflow: Workflow, is_planned: Callable[[str, str], bool]) -> list[Failure]:
    """The failed jobs of a study, oldest first.

    A job that ends well writes its benchmark after its log. So a log without a newer benchmark belongs to a job that
    runs, was broken off or failed: it failed when the log ends with an error or when Snakemake says so, unless it was
    begun again since.

    Args:
        folder: of the study.
        workflow: what Snakemake says.
        is_planned: whether the job of a stage and a name can still matter: False for what was mended otherwise.
    """
    failures = []
    for log in sorted((folder / "logs").glob("*/*.log")):
        rule, name = log.parent.name, log.stem
        written = log.stat().st_mtime
        benchmark = folder / "results" / "benchmarks" / rule / f"{name}.tsv"
        if benchmark.exists() and benchmark.stat().st_mtime >= written:
            continue
        where = str(log.relative_to(folder))
        announced = workflow.jobs.get(where)
        stage = stage_of(rule)
        if not is_planned(stage, name) or (announced and set(announced.outputs) & set(workflow.started)):
            continue
        own = slurm_logs(folder, rule, name)
        number = (announced.job if announced else None) or (own[-1].stem if own else None)
        line = last_error(log)
        if line is None and announced is not None and announced.is_failed and not _was_stopped(log):
            line = (own and _slurm_error(own[-1])) or announced.message
            line = line or f"no error in the log: killed? It ends: {_last_line(log)}"
        if line is not None:
            failures.append(Failure(rule, stage, name, where, line, number, written))
    return sorted(failures, key=lambda failure: failure.time)


def last_error(path: Path) -> str | None:
    """The error that a log ends with: the last one with no ordinary message after it; None when there is none."""
    for line in reversed(_tail(path)):
        message = LOG_LINE.match(line)
        if message:
            return line if message["level"] in ("ERROR", "CRITICAL") else None
        if ERROR_LINE.search(line):
            return line
    return None


def _slurm_error(path: Path) -> str | None:
    """Why Slurm ended a job: its time, its memory, somebody."""
    return next((line for line in reversed(_tail(path)) if SLURM_LINE.match(line)), None)


def _was_stopped(path: Path) -> bool:
    return any(STOPPED.search(line) for line in _tail(path)[-5:])


def _last_line(path: Path) -> str:
    lines = _tail(path)
    return repr(lines[-1]) if lines else "it is empty"


def _tail(path: Path) -> list[str]:
    """The last lines that are not empty; progress bars return to the start of a line."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
