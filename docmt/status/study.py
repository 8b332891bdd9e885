"""Text for `docmt status`: trainings, failed jobs, and the number of existing results."""

import re
import time
from collections import Counter
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
from docmt.status.trainings import STATES, Training, read_training, run_name

PAGES = {
    "results/report/report.html": "tables and pictures",
    "results/report/reader.html": "translations",
    "results/claims.txt": "claims",
}
"""Files that people open after a run, and what they contain."""
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
    results = f"{n_made:,} of {n_all:,} results are made"
    if n_made < n_all:
        results += "; `docmt run --dry-run` lists the jobs that are left, and why they run"
    queue = ""
    if workflow.uses_slurm:
        queue = show_queue(folder)
    sections = [_show_trainings(trainings), queue, _show_failures(failures), results]
    return "\n\n".join(filter(None, sections))


def read_state(folder: Path, plan: Plan, workflow: Workflow) -> tuple[list[Training], list[Failure]]:
    """Return a study's trainings, and failed jobs that still matter."""
    unfinished_stages = set()
    for stage, files in plan.targets().items():
        if _count_made(folder, workflow, files) < len(files):
            unfinished_stages.add(stage)
    unfinished_trainings = set()
    for run in trained_runs(plan.study):
        if not (folder / run_folder(run.dataset, run.system, run.seed) / "model.pt").exists():
            unfinished_trainings.add(run_name(run))
    # Log file names: DATASET/SYSTEM/seedN, also with /…, DATASET/SYSTEM/BASELINE, and table scopes.
    runs = list_runs(plan.config)
    names = wildcard_regex(map(run_name, runs))
    systems = wildcard_regex(f"{run.dataset}/{run.system}" for run in runs)
    pairs = rf"(?:{systems})/(?:{plan.row_pattern('systems')})"
    planned = re.compile(rf"(?:{names})(?:/.+)?|{pairs}|{plan.scope_pattern()}")

    def is_planned(stage: str | None, name: str) -> bool:
        if stage is None:
            return True
        if stage == "training":
            return name in unfinished_trainings
        if stage in OF_RUNS or "/runs/" in name:
            return stage in unfinished_stages and planned.fullmatch(name) is not None
        return stage in unfinished_stages

    failures = find_failures(folder, workflow, is_planned)
    failed = {failure.name for failure in failures if failure.rule == "train"}
    trainings = []
    for run in trained_runs(plan.study):
        training = read_training(folder, plan, run, workflow=workflow, is_failed=run_name(run) in failed)
        trainings.append(training)
        if training.state != "failed":
            # A restarted trainer has not failed, even if its old log ends with an error.
            failed.discard(training.name)
    return trainings, [failure for failure in failures if failure.rule != "train" or failure.name in failed]


def count_results(folder: Path, plan: Plan, workflow: Workflow) -> tuple[int, int]:
    """Return the number of existing results and of all results."""
    n_made = n_all = 0
    for files in plan.targets().values():
        n_made += _count_made(folder, workflow, files)
        n_all += len(files)
    return n_made, n_all


def _count_made(folder: Path, workflow: Workflow, files: list[str]) -> int:
    # If Snakemake marks a job as started, its file can be half-written, or left from an earlier run.
    return sum((folder / file).exists() and file not in workflow.started for file in files)


def describe_results(folder: Path, plan: Plan) -> str:
    """Return a message on existing results after an interruption, and on how to continue."""
    n_made, n_all = count_results(folder, plan, read_workflow(folder))
    return f"{n_made:,} of {n_all:,} results are made; the same command resumes"


def describe_pages(folder: Path, jobs: Iterable[Any]) -> list[str]:
    """Return one line for each page of the report that is an output of these Snakemake jobs, with its path."""
    files: set[str] = set()
    for job in jobs:
        files.update(map(str, job.output))
    return [f"docmt: {title}: {folder / page}" for page, title in PAGES.items() if page in files]


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
        error = (error or "no error in its log").removeprefix("docmt: error: ")
        lines.append(f"{rule} failed: {escape_controls(error[:MAX_LINE])} ({log})")
    if len(lines) > MAX_FAILURES:
        lines = [f"{len(lines)} jobs failed or were interrupted, among them:", *lines[:MAX_FAILURES]]
    return lines


def _show_trainings(trainings: list[Training]) -> str:
    if not trainings:
        return ""
    n_trainings = Counter(training.state for training in trainings)
    states = ", ".join(f"{n_trainings[state]} {state}" for state in STATES if n_trainings[state])
    title = "trainings"
    prefix = ""  # of all names
    if len({training.dataset for training in trainings}) == 1:
        title += f" on {trainings[0].dataset}"
        prefix = f"{trainings[0].dataset}/"
    rows = []
    for training in trainings:
        updates = speed = loss = ""
        if training.step is not None:
            updates = str(training.step)
            if training.max_steps is not None:
                updates += f"/{training.max_steps}"
                if training.state != "done":
                    updates = f"{bar(training.step, training.max_steps, BAR)} {updates}"
        if training.tokens_per_second is not None:
            speed = f"{training.tokens_per_second:,.0f}"
        if training.dev_loss is not None:
            loss = f"{training.dev_loss:.3f}"
        name = shorten(training.name.removeprefix(prefix), NAME_WIDTH)
        rows.append([name, training.state, updates, speed, loss, duration(training.eta_seconds)])
    header = ["run", "state", "updates", "tok/s", "loss", "ETA"]
    alignments = ["left", "left", "left", "right", "right", "right"]
    return _show_table(f"{title}: {states}", rows, header, colalign=alignments)


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
        wait = job.reason
        if job.state == "RUNNING":
            wait = job.time_left
        rows.append([job.id, job.state.lower(), shorten(job.label, LABEL_WIDTH), wait])
    return _show_table("jobs in Slurm's queue", rows, ["job", "state", "rule", "time left or reason"])


def _show_failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    newest = failures[::-1][:MAX_FAILURES]
    title = f"failed: {len(failures)}"
    if len(failures) > MAX_FAILURES:
        title += f", the newest {MAX_FAILURES}"
    lines = [title]
    for failure in newest:
        heading = time.strftime("%Y-%m-%d %H:%M", time.localtime(failure.time))
        if failure.job:
            heading += f"  job {failure.job}"
        lines += ["", f"{heading}  {failure.log}", f"  {failure.line[:MAX_LINE]}"]
    return "\n".join(lines)


def bar(done: float, total: float, width: int) -> str:
    """Return a bar such as `[####......]`. It is only full if `done` equals `total`."""
    # Round down, so that 999 of 1,000 does not look finished.
    filled = width
    if done < total:
        filled = min(width - 1, int(width * done / total))
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def duration(seconds: float | None) -> str:
    """Return `2d03h`, `3h05m`, `12m`, `40s`, or an empty text."""
    if seconds is None:
        return ""
    minutes = int(seconds // 60)
    hours = int(seconds // 3600)
    days = int(seconds // 86400)
    if days:
        return f"{days}d{hours % 24:02d}h"
    if hours:
        return f"{hours}h{minutes % 60:02d}m"
    if minutes:
        return f"{minutes}m"
    return f"{int(seconds)}s"


def shorten(name: str, width: int) -> str:
    """Shorten a name to a width by cutting the middle, because the ends are more specific."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}…{name[head + 1 - width :]}"
