"""Messages of Snakemake, shorter in the terminal, and docmt's last lines after failed jobs or Ctrl-C."""

import atexit
import io
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from typing_extensions import override

from docmt.errors import UserError

JOB_LINES = "DOCMT_JOB_LINES"
"""Variable with which `docmt run` requests one line per job."""
LONG_ARGUMENT = re.compile(r"'[{\[][^']{80,}'")
"""Pattern for settings in a job's command, as JSON between apostrophes."""
REFUSAL = "WorkflowError:\ndocmt: error: "
"""First words of Snakemake's message for a run that docmt refuses."""
MISSING_INPUT = re.compile(r"^ *(.+) \(missing locally", re.MULTILINE)
"""Pattern for an input file that was removed after the plan, in the error that ends the run."""
HIDDEN_EVENTS = {"workflow_started", "resources_info", "shellcmd", "job_started", "job_finished", "progress"}
HIDDEN_MESSAGE = re.compile(
    r"Building DAG|Using shell|Conda environments: ign|Singularity containers: ign|Group jobs: ina|Select jobs to"
    r"|Execute \d+ jobs|Removing temporary"
)

FAILED_EVENTS = ("job_error", "group_error")
HIDDEN_ERROR = re.compile(
    r"(RuleException:\n)?CalledProcessError|Exiting because a job|WorkflowError:\nAt least one job|Shutting down"
)
"""Pattern for messages that docmt's last lines replace: failed jobs, with the last errors in their logs."""


def shorten_messages(
    describe_progress: Callable[[], str],
    describe_run: Callable[[], str],
    describe_failures: Callable[[Iterable[tuple[str, str]]], list[str]],
) -> None:
    """Make Snakemake's messages short: no settings in errors, one line for a locked folder, for Ctrl-C and per job.

    `describe_run()` precedes the table of jobs, before a run starts and in a dry run. Its UserError ends the run.

    After Ctrl-C, the jobs end with errors. They are only written to Snakemake's log file, and the last line in the
    terminal is `describe_progress()`. After failed jobs, it follows the lines of `describe_failures()` for their rules
    and logs.
    """
    logger = logging.getLogger("snakemake.logging")
    terminals = _terminals(logger)
    failures = _Failures()
    is_described = False
    interrupted = False

    def shorten(record: logging.LogRecord) -> bool:
        nonlocal is_described
        if getattr(record, "event", None) == "run_info" and not is_described:
            is_described = True  # a dry run prints the table twice
            record.msg = "\n".join(filter(None, [_refuse_or_describe(describe_run), str(record.msg)]))
        failures.read(record)
        if record.levelno >= logging.ERROR:
            _shorten_error(record)
        return True

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        if not interrupted:
            for handler in terminals:
                # Other threads can be inside a filter, but not write to the old stream afterwards.
                handler.setStream(io.StringIO())
            print("docmt: stopping, up to 3 minutes on a cluster; trainings save a checkpoint first", file=sys.stderr)
        interrupted = True
        raise KeyboardInterrupt

    def end() -> None:
        lines = []
        if interrupted:
            lines = [f"stopped: {describe_progress()}"]
        elif failures.jobs or failures.errors:
            lines = [*failures.errors, *describe_failures(failures.jobs.values())]
            lines.append(f"{describe_progress()}; `docmt status` shows what failed")
        for line in lines:
            print(f"docmt: {line}", file=sys.stderr)

    logging.raiseExceptions = False  # no tracebacks for each message if the disk of Snakemake's log file is full
    if os.environ.pop(JOB_LINES, None):
        _show_job_lines(terminals)
    logger.addFilter(shorten)
    signal.signal(signal.SIGINT, interrupt)
    atexit.register(end)


def _shorten_error(record: logging.LogRecord) -> None:
    """Shorten an error: without settings, and as one line for a run that is refused and for a locked folder."""
    if str(record.msg).startswith(REFUSAL):
        record.msg = str(record.msg).splitlines()[1]  # without Snakemake's lines about code
    for name in ("msg", "shellcmd"):
        text = getattr(record, name, None)
        if isinstance(text, str):
            setattr(record, name, LONG_ARGUMENT.sub("'{…}'", text))
    if "Directory cannot be locked" in str(record.msg):
        record.msg = (
            f"docmt: error: another run is at work in {Path.cwd()}: wait until it has ended; if it was killed, "
            "remove its lock with `docmt run --unlock`"
        )


def _refuse_or_describe(describe_run: Callable[[], str]) -> str:
    from snakemake.exceptions import WorkflowError

    try:
        return describe_run()
    except UserError as error:
        raise WorkflowError(f"docmt: error: {error}") from None


def _terminals(logger: logging.Logger) -> list[logging.StreamHandler[TextIO]]:
    return [
        handler
        for handler in logger.handlers
        if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler)
    ]


def _show_job_lines(terminals: Iterable[logging.Handler]) -> None:
    """Shorten what the terminal shows. Snakemake's log file stays complete, and `docmt status` reads it."""
    for handler in terminals:
        handler.setFormatter(_JobLines(handler.formatter or logging.Formatter()))
        handler.addFilter(_is_shown)


class _Failures:
    """Failures of a run.

    Attributes:
        jobs: rule and log of each failed job, by its number.
        errors: messages on input files that were removed after the plan. They end the run.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[str, str]] = {}
        self.errors: list[str] = []

    def read(self, record: logging.LogRecord) -> None:
        values = record.__dict__
        event = values.get("event")
        message = str(record.msg)
        if event == "job_finished":  # perhaps after a failed attempt
            self.jobs.pop(values["job_id"], None)
        elif event in FAILED_EVENTS:
            for job in values.get("job_error_info", [values]):
                self.jobs[job["jobid"]] = (job["rule_name"], next(iter(job["log"]), ""))
        # Snakemake waits for missing outputs with the same words.
        elif record.levelno >= logging.ERROR and "Missing files after" in message and "output files" not in message:
            for path in MISSING_INPUT.findall(message):
                advice = "restore it if it is yours, and start the run again"
                self.errors.append(f"error: {path}: was removed after this run was planned: {advice}")


class _JobLines(logging.Formatter):
    """One line for each job that starts, and Snakemake's format for other messages."""

    def __init__(self, usual: logging.Formatter) -> None:
        super().__init__()
        self._usual = usual
        self._n_jobs = 0
        self._started: set[int] = set()

    @override
    def format(self, record: logging.LogRecord) -> str:
        values = record.__dict__
        event = values.get("event")
        if event == "run_info":
            self._n_jobs = values["stats"]["total"]
        if event in FAILED_EVENTS:
            return "\n".join(_job_line("failed:", job) for job in values.get("job_error_info", [values]))
        if event != "job_info":
            return self._usual.format(record)
        self._started.add(values["jobid"])  # again after a failed attempt
        return _job_line(f"[{len(self._started)}/{self._n_jobs}]", values)


def _job_line(state: str, job: Mapping[str, Any]) -> str:
    rule = job["rule_name"]
    log = next(iter(job["log"]), "")
    name = log.removeprefix(f"logs/{rule}/").removesuffix(".log")
    return f"{time.strftime('%H:%M:%S')} {state} {rule} {name}".rstrip()


def _is_shown(record: logging.LogRecord) -> bool:
    event = getattr(record, "event", None)
    if HIDDEN_ERROR.match(str(record.msg)):
        return False
    if record.levelno >= logging.WARNING or event == "run_info":
        return True
    return event not in HIDDEN_EVENTS and HIDDEN_MESSAGE.match(str(record.msg)) is None
