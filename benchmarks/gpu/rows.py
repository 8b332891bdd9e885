"""Acceptance rows. Every check makes one row, and checks continue even if a check's process crashes."""

import contextlib
import gc
import io
import itertools
import logging
import math
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.gpu.outcomes import Outcome
from docmt.files import write_json
from docmt.processes import LostProcess, map_apart
from docmt.training.agreement import Interrupted

Check = Callable[[], Outcome]


@dataclass(frozen=True)
class Workers:
    """Processes for some checks.

    Attributes:
        n: number of processes.
        names: checks that run in these processes.
        make: is called once per process with a folder. Returns a function that runs a check by name. It must be
            picklable.
        folder: for all temporary files, because the processes can be killed.
    """

    n: int
    names: Collection[str]
    make: Callable[[Path], Callable[[str], Outcome]]
    folder: Path


def run_checks(
    checks: Mapping[str, Check],
    rows: dict[str, Outcome],
    *,
    out: Path,
    provenance: Mapping[str, Any],
    minutes: float,
    workers: Workers | None = None,
) -> None:
    """Run checks in order. After every check, print its row and write all rows, so that a crash loses nothing.

    A check that would begin after `minutes` is not run. Only the checks in `workers` run in parallel.
    """
    deadline = time.monotonic() + 60 * minutes

    def add(outcome: Outcome) -> None:
        rows[outcome.name] = outcome
        bar.update()
        tqdm.write(f"{outcome.verdict:<17}{outcome.name:<46} {outcome.value}")
        content = {"provenance": provenance, "rows": [anonymize(asdict(row)) for row in rows.values()]}
        write_json(out, content)

    with tqdm(total=len(checks), unit=" rows", disable=None) as bar:
        for are_apart, group in itertools.groupby(checks, lambda name: workers is not None and name in workers.names):
            names = list(group)
            in_time = itertools.takewhile(lambda _: time.monotonic() <= deadline, names)
            outcomes = (_outcome(name, checks[name]) for name in in_time)
            if workers is not None and are_apart:
                outcomes = _outcomes(in_time, workers)
            with contextlib.closing(outcomes):  # stops all processes after an error or a signal
                for outcome in outcomes:
                    add(outcome)
            for name in names:
                if name not in rows:
                    add(Outcome(f"no time left: --only {name} runs it", "not run", name=name))


def anonymize(value: Any) -> Any:
    """Return a row value without users' folders, GPU identifiers, NaN and infinity."""
    if isinstance(value, dict):
        return {key: anonymize(part) for key, part in value.items()}
    if isinstance(value, str):
        folders = {os.path.expanduser("~"), tempfile.gettempdir(), sys.prefix, str(Path(__file__).parents[2])}
        for folder in sorted(folders - {"/"}, key=len, reverse=True):
            value = value.replace(folder, "…")
        return re.sub(r"(GPU|MIG)-[0-9a-f][0-9a-f-]{7,}", r"\1-…", value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _outcome(name: str, check: Check) -> Outcome:
    """Run a check. Returns the outcome with name and time. An error is FAILED, with message and location."""
    begun = time.monotonic()
    logging.disable(logging.INFO)
    # Trainings and searches set these for the whole process, but every check should begin with torch's defaults.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # hides progress bars
            outcome = check()
    except Interrupted as interruption:  # raised by a training, but the signal was for the command
        raise SystemExit(128 + interruption.signal_number) from None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = " ".join(str(error).split())[:600]
        code_line = f"{Path(last.filename).name}:{last.lineno}"
        numbers = {"traceback": traceback.format_exc()}
        outcome = Outcome(f"{type(error).__name__}: {message} ({code_line})", "FAILED", numbers)
    finally:
        logging.disable(logging.NOTSET)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    return replace(outcome, name=name, seconds=round(time.monotonic() - begun, 2))


def _outcomes(names: Iterable[str], workers: Workers) -> Generator[Outcome, None, None]:
    """Yield outcomes from checks in other processes, as they finish."""
    start = partial(_start_worker, workers)
    # After an illegal memory access, all CUDA calls in the process fail.
    for name, result in map_apart(start, names, jobs=workers.n, is_spent=lambda outcome: outcome.verdict == "FAILED"):
        if isinstance(result, LostProcess):
            result = Outcome(f"its process ended with exit code {result.exit_code}", "FAILED", name=name)
        yield result


def _start_worker(workers: Workers) -> Callable[[str], Outcome]:
    """Return the function that runs a check in another process."""
    from torch._inductor import config as inductor

    torch.set_num_threads(1)  # with tiny models in many processes, threads would only wait for one another
    inductor.compile_threads = max(2, len(os.sched_getaffinity(0)) // workers.n)
    tempfile.tempdir = str(workers.folder)
    run = workers.make(Path(tempfile.mkdtemp()))
    return lambda name: _outcome(name, partial(run, name))
