"""External metric programs, and errors if a program is missing or fails."""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docmt.errors import UserError
from docmt.evaluation.score_rows import NOT_COMPUTED, ScoreRow

log = logging.getLogger(__name__)


class NotComputableError(Exception):
    """A metric cannot be computed on this machine or for these languages. The message is one line with the reason."""


def find_program(name: str) -> str | None:
    """Return the path of a program next to this Python or on the search path, or None."""
    return shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


def run_program(command: Sequence[str], *, name: str) -> tuple[str, str]:
    """Run a program. Returns its standard output and standard error."""
    alone = {"OMP_NUM_THREADS": "1"} | os.environ  # one core, unless the caller's environment allows more
    finished = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=alone, check=False)
    if finished.returncode:
        raise failure(name, finished.stderr or finished.stdout, code=finished.returncode)
    return finished.stdout, finished.stderr


def failure(name: str, message: str, *, code: int) -> UserError:
    """Return the error for a failed program, with the most informative output line. The whole output is logged."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    log.error("%s printed:\n%s", name, "\n".join(lines))
    reason = lines[-1] if lines else "no output"
    for line in lines:
        if "error" in line.lower() or "exception" in line.lower():
            reason = line
            break
    return UserError(f"{name} failed (exit code {code}): {reason}")


def missing_row(metric: str, reason: NotComputableError | str) -> ScoreRow:
    """Return a row without a value for a metric that could not be computed, and log the reason."""
    log.warning("%s is not computed: %s", metric, reason)
    return {"metric": metric, "value": None, "n": 0, "signature": f"{NOT_COMPUTED}{reason}"}
