"""The state of a study as text for a terminal with 100 columns."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from docmt.config.plan import Plan
from docmt.snakemake import Workflow
from docmt.status.cluster import Queue
from docmt.status.failures import Failure
from docmt.status.remaining_work import RemainingWork
from docmt.status.rerun_reasons import Reason
from docmt.status.study import StudyStatus
from docmt.status.trainings import STATES, Training, read_trainings

BAR = 20
SMALL_BAR = 6
NAME_WIDTH = 36
SMALL_NAME_WIDTH = 20
MOST_NAMED = 4
MOST_SHOWN = 20  # failures, jobs and queued jobs; the rest are counted


def show_study(status: StudyStatus) -> str:
    """The whole state."""
    stages = [
        [stage.name, f"{stage.done:,}", f"{stage.all:,}", bar(stage.done, stage.all, BAR)] for stage in status.stages
    ]
    waiting = [[job.id, job.state.lower(), job.reason, shorten(job.label, 45)] for job in status.queue.waiting()]
    queue = f"Slurm: {status.queue.problem}; cannot tell what is in the queue" if status.queue.problem else ""
    parts = [
        _head(status),
        _table(stages, ["stage", "done", "all", ""], ["left", "right", "right", "left"]),
        _remaining(status.remaining),
        _trainings(status.trainings),
        _running(status),
        queue or _list("waiting in Slurm's queue", waiting),
        _failures(status.failures),
    ]
    return "\n\n".join(part for part in parts if part)


def farewell(folder: Path, plan: Plan) -> str:
    """The results that a stopped study keeps, in one line."""
    # Snakemake is still exiting and would count as running: as idle, its trainings are the interrupted ones.
    idle = Workflow("idle")
    trainings = read_trainings(folder, plan, workflow=idle, queue=Queue(), failures=[])
    saved = [training for training in trainings if training.state == "interrupted" and training.step is not None]
    files = [file for files in plan.targets().values() for file in files]
    n_made = sum((folder / file).exists() for file in files)
    parts = [f"stopped: {n_made} of {len(files)} results are made and stay"]
    if saved:
        more = f" and {len(saved) - MOST_NAMED} more" if len(saved) > MOST_NAMED else ""
        updates = []
        for training in saved[:MOST_NAMED]:
            of = f" of {training.max_steps}" if training.max_steps else ""
            updates.append(f"{training.system}/seed{training.seed} after update {training.step}{of}")
        parts.append(f"saved: {', '.join(updates)}{more}")
    resumes = "resumes trainings there and makes" if saved else "makes"
    return f"docmt: {'; '.join(parts)}; the same command {resumes} the rest"


def show_reasons(reasons: Sequence[Reason]) -> str:
    """Why jobs run again: first those with the reason in themselves, then how many follow from them."""
    if not reasons:
        return "no finished job runs again"
    roots: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        if reason.is_root:
            roots.setdefault((reason.rule, reason.words), []).append(reason.file)
    lines = []
    for (rule, words), files in roots.items():
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        lines += [f"{rule}  {files[0]}{more}", f"  {words}"]
    after = Counter(reason.rule for reason in reasons if not reason.is_root)
    if after:
        lines += ["", f"because of these: {', '.join(f'{rule} {count}' for rule, count in after.items())}"]
    return "\n".join(lines)


def _head(status: StudyStatus) -> str:
    files = [path.name for path in status.configfiles]
    called = [Path(name).name for name in status.workflow.configfiles]
    host = status.workflow.host or "another host"
    snakemake = {
        "idle": "is not running",
        "running": f"is running here ({status.workflow.host}), process {status.workflow.pid}",
        "killed": f"was killed on {host} and left its lock: `snakemake --unlock` and start again",
        "locked": f"is running on {host}, or was killed there: then `snakemake --unlock` and start again",
    }[status.workflow.state]
    lines = [
        f"study in {status.folder}" + (f" ({', '.join(files)})" if files else ""),
        f"Snakemake {snakemake}",
    ]
    # Only the names are compared: Snakemake's log has the paths as they were typed, perhaps in another folder.
    if files and called and files != called:
        lines.append(
            f"its last run had a different configuration: --configfile {' '.join(status.workflow.configfiles)}"
        )
    return "\n".join(lines)


def _remaining(remaining: RemainingWork) -> str:
    if not remaining.jobs:
        return ""
    jobs = f"{remaining.jobs} job{'s' if remaining.jobs > 1 else ''} left"
    # Where most jobs have no known time, the sum over the others would look like a promise.
    if remaining.eta_seconds is None or 2 * remaining.unknown > remaining.jobs:
        return f"{jobs}; too few have finished to tell for how long"
    how = f" with {remaining.parallel} at a time" if remaining.parallel > 1 else ""
    without = f", without {remaining.unknown} of kinds that have not run yet" if remaining.unknown else ""
    return f"{jobs}, about {duration(remaining.eta_seconds)}{how}{without}"


def _trainings(trainings: list[Training]) -> str:
    if not trainings:
        return ""
    counts = [(state, sum(training.state == state for training in trainings)) for state in STATES]
    datasets = {training.dataset for training in trainings}
    on = f" on {trainings[0].dataset}" if len(datasets) == 1 else ""
    title = f"trainings{on}: " + ", ".join(f"{count} {state}" for state, count in counts if count)
    rows = [
        [
            shorten(training.name.removeprefix(f"{training.dataset}/" if on else ""), NAME_WIDTH),
            training.state,
            _updates(training),
            "" if training.tokens_per_second is None else f"{training.tokens_per_second:,.0f}",
            "" if training.dev_loss is None else f"{training.dev_loss:.3f}",
            duration(training.eta_seconds),
        ]
        for training in trainings
    ]
    header = ["run", "state", "updates", "tok/s", "loss", "ETA"]
    return f"{title}\n\n" + _table(rows, header, ["left", "left", "left", "right", "right", "right"])


def _updates(training: Training) -> str:
    if training.step is None:
        return ""
    if training.max_steps is None:
        return f"{training.step}"
    if training.state == "done":
        return f"{training.step}/{training.max_steps}"
    return f"{bar(training.step, training.max_steps, SMALL_BAR)} {training.step}/{training.max_steps}"


def _running(status: StudyStatus) -> str:
    rows = [
        ("train", training.name, _place(training.job, training.host, training.pid))
        for training in status.trainings
        if training.state == "running"
    ]
    # Snakemake announces trainings as well; the trainer's own record, above, also has host and process.
    for job in status.workflow.running():
        if job.rule == "train":
            continue
        parts = [_place(job.job)]
        if progress := status.progress.get(job.log):
            parts.append(f"{progress.done:,}/{progress.total:,} {progress.unit}")
            parts.append(f"{duration(progress.eta_seconds)} left" if progress.eta_seconds is not None else "")
        rows.append((job.rule, job.name, ", ".join(filter(None, parts))))
    # 96 of the terminal's 100 columns: tabulate puts two spaces between columns.
    taken = max((len(rule) for rule, *_ in rows), default=0) + max((len(last) for *_, last in rows), default=0)
    width = max(SMALL_NAME_WIDTH, min(45, 96 - taken))
    return _list("running jobs", [[rule, shorten(name, width), last] for rule, name, last in rows])


def _place(job: str | None, host: str | None = None, pid: int | None = None) -> str:
    parts = [job and f"job {job}", host and f"on {shorten(host, 16)}"]
    return ", ".join(filter(None, parts)) or (f"process {pid}" if pid else "")


def _failures(failures: list[Failure]) -> str:
    if not failures:
        return ""
    newest = failures[::-1][:MOST_SHOWN]
    lines = [f"failed: {len(failures)}" + (f", the newest {MOST_SHOWN}" if len(failures) > MOST_SHOWN else "")]
    for failure in newest:
        job = f"  job {failure.job}" if failure.job else ""
        lines += [
            "",
            f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(failure.time))}{job}  {failure.log}",
            f"  {failure.line[:400]}",
        ]
    return "\n".join(lines)


def _list(title: str, rows: list[list[str]]) -> str:
    if not rows:
        return ""
    more = f"\n… and {len(rows) - MOST_SHOWN:,} more" if len(rows) > MOST_SHOWN else ""
    # Without `disable_numparse`, tabulate would show the job ID 0012 as 12 and align it like a number.
    return f"{title}: {len(rows)}\n\n{tabulate(rows[:MOST_SHOWN], tablefmt='plain', disable_numparse=True)}{more}"


def _table(rows: list[list[str]], header: list[str], alignments: list[str]) -> str:
    text = tabulate(rows, header, "simple", colalign=alignments, disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.splitlines())


def bar(done: float, total: float, width: int) -> str:
    """`[####......]`; full only when done."""
    # Rounding down, and never to the full width: 999 of 1,000 must not look finished.
    filled = width if done >= total else min(width - 1, int(width * done / total))
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def duration(seconds: float | None) -> str:
    """`2d03h`, `3h05m`, `12m`, `40s`, or nothing."""
    if seconds is None:
        return ""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days}d{hours % 24:02d}h"
    if hours:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{minutes}m" if minutes else f"{int(seconds)}s"


def shorten(name: str, width: int) -> str:
    """Shorten a name to a width by cutting its middle, which tells less than its ends."""
    if len(name) <= width:
        return name
    head = (width - 1) // 2
    return f"{name[:head]}…{name[head + 1 - width :]}"
