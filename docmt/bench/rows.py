"""The rows of an acceptance: each check makes one, and none stops the others."""

import contextlib
import gc
import io
import logging
import math
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch
from tqdm import tqdm

from docmt.files import write_json
from docmt.training.agreement import Interrupted

Verdict = Literal["ok", "FAILED", "measured", "not run", "not measured yet"]


@dataclass(frozen=True)
class Outcome:
    """What a check found: a sentence or figures for people, the verdict, and all figures by name."""

    value: str
    verdict: Verdict = "measured"
    numbers: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    seconds: float = 0.0


Check = Callable[[], Outcome]
NOT_COMPILED = Outcome("needs triton, and a GPU with bfloat16 and flash attention", "not run")


def needed(is_there: bool, value: str, defect: str) -> Outcome:
    """The outcome for a requirement: `value` if it is met, else a failure that names the defect."""
    return Outcome(value, "ok") if is_there else Outcome(defect, "FAILED")


def judge(numbers: Mapping[str, float], limits: Mapping[str, float], *, note: str = "") -> Outcome:
    """Figures against their limits, which one that is not a number exceeds; all that do are shown, else the worst."""
    bad = [name for name, limit in limits.items() if not numbers[name] <= limit]
    shown = bad or [max(limits, key=lambda name: numbers[name] / (limits[name] or 1))]
    parts = [f"{name} {numbers[name]:.2g} (at most {limits[name]:g})" for name in shown]
    return Outcome("; ".join([*parts, *([note] if note else [])]), "FAILED" if bad else "ok", dict(numbers))


def relative_difference(found: Sequence[float], expected: Sequence[float]) -> float:
    """The largest difference of two lists, relative to the numbers expected; infinite if their lengths differ."""
    if len(found) != len(expected):
        return math.inf
    differences = [abs(a - b) / max(abs(b), 1e-9) for a, b in zip(found, expected, strict=True)]
    return math.inf if any(map(math.isnan, differences)) else max(differences, default=0.0)


def run_checks(
    checks: Mapping[str, Check], rows: dict[str, Outcome], *, out: Path, provenance: Mapping[str, Any], minutes: float
) -> None:
    """Run checks in order, print a row for each, and write all rows so far after each: a crash loses nothing.

    A check that would begin after `minutes` is not run.
    """
    started = time.monotonic()
    with tqdm(checks.items(), unit=" rows", disable=None) as bar:
        for name, check in bar:
            bar.set_postfix_str(name)
            begun = time.monotonic()
            if begun - started > 60 * minutes:
                outcome = Outcome(f"no time left: --only {name} runs it", "not run")
            else:
                outcome = _outcome(check)
            rows[name] = replace(outcome, name=name, seconds=round(time.monotonic() - begun, 2))
            tqdm.write(f"{outcome.verdict:<17}{name:<46} {outcome.value}")
            content = {"provenance": provenance, "rows": [sendable(asdict(row)) for row in rows.values()]}
            write_json(out, content, checksum=False)


def sendable(value: Any) -> Any:
    """A value of a row without folders and GPUs by which users may be known, and without numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: sendable(part) for key, part in value.items()}
    if isinstance(value, str):
        folders = {os.path.expanduser("~"), tempfile.gettempdir(), sys.prefix, str(Path(__file__).parents[2])}
        for folder in sorted(folders - {"/"}, key=len, reverse=True):
            value = value.replace(folder, "…")
        return re.sub(r"(GPU|MIG)-[0-9a-f][0-9a-f-]{7,}", r"\1-…", value)
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _outcome(check: Check) -> Outcome:
    """The outcome of a check; that of an error is FAILED, with its message and its place."""
    logging.disable(logging.INFO)
    # Trainings and searches set these for the whole process: each check begins with torch's own choice.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # progress bars of trainings and searches
            return check()
    except Interrupted as interruption:  # by a training, but the signal was for the command
        raise SystemExit(128 + interruption.signal_number) from None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = " ".join(str(error).split())[:600]
        place = f"{Path(last.filename).name}:{last.lineno}"
        numbers = {"traceback": traceback.format_exc()}
        return Outcome(f"{type(error).__name__}: {message} ({place})", "FAILED", numbers)
    finally:
        logging.disable(logging.NOTSET)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
