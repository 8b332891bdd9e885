"""Text for `docmt status`: trainings, failed jobs, and the number of existing results."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tabulate import tabulate

from docmt.config.artifacts.runs import run_folder, trained_runs
from docmt.config.plan import Plan, wildcard_regex
from docmt.config.systems import list_runs
from docmt.errors import escape_controls
from docmt.slurm import QueueError, list_jobs
from docmt.snakemake import Workflow, read_workflow, slurm_logs
from docmt.status.failures import Failure, find_error, find_failures, was_stopped
from docmt.status.trainings import STATES, Training, read_trainings, run_name

BAR = 6
NAME_WIDTH = 36
LABEL_WIDTH = 50
MAX_FAILURES = 20
MAX_LINE = 400
OF_RUNS = ("decoding", "evaluation")  # stages with a run name in their job names


def show_study(folder: Path, plan: Plan) -> str:
    """Return a study's state as text for a terminal with 100 columns. The folder can be empty."""
    workflow = read_workflow(folder)
    trainings, failures = read_state(folder, plan, workflow)
    n_made, n_all = count_results(folder, plan, workflow)
    rest = f"{n_made:,} of {n_all:,} results are made"
    rest += "" if n_made == n_all else "; `docmt run --dry-run` lists the jobs that are left, and why they run"
    queue = show_queue(folder) if workflow.uses_slurm else ""
    return "\n\n".join(filter(None, [_show_trainings(trainings), queue, _show_failures(failures), rest]))


def read_state(folder: Path, plan: Plan, workflow: Workflow) -> tuple[list[Training], list[Failure]]:
    """Return a study's trainings, and failed jobs that still matter."""
    finished = {
        stage
        for stage, files in plan.targets().items()
        if all((folder / file).exists() and file not in workflow.started for file in files)
    }
    unfinished = {
        run_name(run)
        for run in trained_runs(plan.study)
        if not (folder / run_folder(run.dataset, run.system, run.seed) / "model.pt").exists()
    }
    # Log file names: DATASET/SYSTEM/seedN, also with /…, DATASET/SYSTEM/BASELINE, and table scopes.
    runs = list_runs(plan.config)
    pairs = rf"(?:{wildcard_regex(f'{run.dataset}/{run.system}' for run in runs)})/(?:{plan.row_pattern('systems')})"
    planned = re.compile(rf"(?:{wildcard_regex(map(run_name, runs))})(?:/.+)?|{pairs}|{plan.scope_pattern()}")

    def is_planned(stage: str | None, name: str) -> bool:
        if stage is None:
            return True
        if stage == "training":
            return name in unfinished
        of_runs = stage in OF_RUNS or "/runs/" in name
        return stage not in finished and (not of_runs or planned.fullmatch(name) is not None)

    failures = find_failures(folder, workflow, is_planned)
    trainings = read_trainings(folder, plan, workflow=workflow, failures=failures)
    # A restarted trainer has not failed, even if its old log ends with an error.
    running = {training.name for training in trainings if training.state != "failed"}
    return trainings, [failure for failure in failures if failure.rule != "train" or failure.name not in running]


def count_results(folder: Path, plan: Plan, workflow: Workflow) -> tuple[int, int]:
    """Return the number of existing results and of all results."""
    files = [file for files in plan.targets().values() for file in files]
    # If Snakemake marks a job as started, its file can be half-written, or left from an earlier run.
    return sum((folder / file).exists() and file not in workflow.started for file in files), len(files)


def describe_results(folder: Path, plan: Plan) -> str:
    """Return a message on existing results after an interruption, and on how to continue."""
    n_made, n_all = count_results(folder, plan, read_workflow(folder))
    return f"{n_made:,} of {n_all:,} results are made; the same command resumes"


def describe_failures(folder: Path, jobs: Iterable[tuple[str, str]]) -> list[str]:
    """Return one line for each of these failed jobs (rule, log), with the last error in its log, or `interrupted`."""
    workflow = read_workflow(folder)
    lines = []
    for rule, log in jobs:
        name = log.removeprefix(f"logs/{rule}/").removesuffix(".log")
        error = find_error(folder / log, workflow.jobs.get(log), slurm_logs(folder, rule, name))
        if error is None and was_stopped(folder / log):
            lines.append(f"{rule} interrupted: it will resume from its checkpoint ({log})")
            continue
        error = (error or "no error in its log").removeprefix("docmt: error: ")[:MAX_LINE]
        lines.append(f"{rule} failed: {escape_controls(error)} ({log})")
    if len(lines) > MAX_FAILURES:
        lines = [f"{len(lines)} jobs failed or were interrupted, among them:", *lines[:MAX_FAILURES]]
    return lines


def _show_trainings(trainings: list[Training]) -> str:
    if not trainings:
        return ""
    counts = [(state, sum(training.state == state for training in trainings)) for state in STATES]
    datasets = {training.dataset for training in trainings}
    on = f" on {trainings[0].dataset}" if len(datasets) == 1 else ""
    title = f"trainings{on}: " + ", ".join(f"{count} {state}" for state, count in counts if count)
    rows = []
    for training in trainings:
        name = training.name.removeprefix(f"{training.dataset}/" if on else "")
        updates = "" if training.step is None else f"{training.step}"
        if training.step is not None and training.max_steps is not None:
            updates += f"/{training.max_steps}"
            if training.state != "done":
                updates = f"{bar(training.step, training.max_steps, BAR)} {updates}"
        speed = "" if training.tokens_per_second is None else f"{training.tokens_per_second:,.0f}"
        loss = "" if training.dev_loss is None else f"{training.dev_loss:.3f}"
        rows.append([shorten(name, NAME_WIDTH), training.state, updates, speed, loss, duration(training.eta_seconds)])
    header = ["run", "state", "updates", "tok/s", "loss", "ETA"]
    alignments = ["left", "left", "left", "right", "right", "right"]
    return _show_table(title, rows, header, colalign=alignments)


def _show_table(title: str, rows: list[list[str]], header: list[str], **options: Any) -> str:
    table = tabulate(rows, header, "simple", disable_numparse=True, **options)
    return "\n".join([title, "", *(line.rstrip() for line in table.splitlines())])


def show_queue(folder: Path) -> str:
    """Return a table of the study's jobs in Slurm's queue."""
    try:
        jobs = list_jobs(folder)
    except QueueError as problem:
        return f"Slurm's queue is unknown: {problem}"
    if not jobs:
        return ""
    rows = []
    for job in jobs:
        wait = job.time_left if job.state == "RUNNING" else job.reason
        rows.append([job.id, job.state.lower(), shorten(job.label, LABEL_WIDTH), wait])
    return _show_table("jobs in Slurm's queue", rows, ["job", "state", "rule", "time left or reason"])


def _show_failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    newest = failures[::-1][:MAX_FAILURES]
    lines = [f"failed: {len(failures)}" + (f", the newest {MAX_FAILURES}" if len(failures) > MAX_FAILURES else "")]
    for failure in newest:
        job = f"  job {failure.job}" if failure.job else ""
        lines += [
            "",
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(failure.time))}{job}  {failure.log}",
            f"  {failure.line[:MAX_LINE]}",
        ]
    return "\n".join(lines)


def bar(done: float, total: float, width: int) -> str:
    """Return a bar such as `[####......]`. It is only full if `done` equals `total`."""
    # Round down, so that 999 of 1,000 does not look finished.
    filled = width if done >= total else min(width - 1, int(width * done / total))
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def duration(seconds: float | None) -> str:
    """Return `2d03h`, `3h05m`, `12m`, `40s`, or an empty text."""
    if seconds is None:
        return ""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days}d{hours % 24:02d}h"
    if hours:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{minutes}m" if minutes else f"{int(seconds)}s"


def shorten(name: str, width: int) -> str:
    """Shorten a name to a width by cutting the middle, because the ends are more specific."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}…{name[head + 1 - width :]}"
