"""Short error messages from Snakemake, a line about replaced models, and a last line after Ctrl-C."""

import atexit
import io
import logging
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from docmt.errors import UserError

LONG_ARGUMENT = re.compile(r"'[{\[][^']{80,}'")
"""Pattern for settings in a job's command, as JSON between apostrophes."""


def shorten_messages(describe_progress: Callable[[], str], describe_run: Callable[[], str]) -> None:
    """Make Snakemake's messages short: no settings in errors, one line for a locked folder and for Ctrl-C.

    `describe_run()` precedes the table of jobs, before a run starts and in a dry run. Its UserError ends the run.

    After Ctrl-C, the jobs end with errors. They are only written to Snakemake's log file, and the last line in the
    terminal is `describe_progress()`.
    """
    from snakemake.exceptions import WorkflowError

    logger = logging.getLogger("snakemake.logging")
    interrupted = False
    is_described = False
    refusal = None

    def shorten(record: logging.LogRecord) -> bool:
        nonlocal is_described, refusal
        if getattr(record, "event", None) == "run_info" and not is_described:
            is_described = True  # a dry run prints the table twice
            try:
                record.msg = "\n".join(filter(None, [describe_run(), str(record.msg)]))
            except UserError as error:
                refusal = str(error)
                raise WorkflowError(refusal) from None
        if record.levelno < logging.ERROR:
            return True
        if refusal is not None:
            record.msg = f"docmt: error: {refusal}"  # without Snakemake's lines about code
        for name in ("msg", "shellcmd"):
            if isinstance(text := getattr(record, name, None), str):
                setattr(record, name, LONG_ARGUMENT.sub("'{…}'", text))
        if "Directory cannot be locked" in str(record.msg):
            record.msg = (
                f"docmt: error: another run is at work in {Path.cwd()}: wait until it has ended; if it was killed, "
                "remove its lock with `docmt run --unlock`"
            )
        return True

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        if not interrupted:
            for handler in logger.handlers:
                if isinstance(handler, logging.StreamHandler) and not isinstance(handler, logging.FileHandler):
                    # Other threads can be inside a filter, but not write to the old stream afterwards.
                    handler.setStream(io.StringIO())
            print("docmt: stopping; trainings save a checkpoint first", file=sys.stderr)
            atexit.register(lambda: print(f"docmt: stopped: {describe_progress()}", file=sys.stderr))
        interrupted = True
        raise KeyboardInterrupt

    logger.addFilter(shorten)
    signal.signal(signal.SIGINT, interrupt)
