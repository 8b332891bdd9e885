"""What is left of a study, and about how long it will take."""

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmt.config.artifacts.base import Artifact, UserFile
from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan
from docmt.logs import METER_LINE
from docmt.snakemake import Workflow
from docmt.status.failures import read_tail
from docmt.status.trainings import Training


@dataclass(frozen=True)
class Progress:
    """Progress of a job, from the meter in its log."""

    done: int
    total: int
    unit: str  # of the counted items
    eta_seconds: float | None  # at the mean rate so far; None if nothing is done


@dataclass(frozen=True)
class RemainingWork:
    """The number of jobs that are left of a study, and their time."""

    jobs: int
    unknown: int  # jobs whose time is unknown, since no job of their rule has finished
    eta_seconds: float | None  # until those of known time have finished, `parallel` (or one) at a time
    parallel: int  # jobs that run now


def read_progress(log: Path) -> Progress | None:
    """The progress in the last meter line of a log; None without one near its end."""
    for line in reversed(read_tail(log)):
        if found := METER_LINE.search(line):
            done, total, rate = int(found["done"]), int(found["total"]), float(found["rate"])
            return Progress(done, total, found["unit"], (total - done) / rate if rate else None)
    return None


def is_made(folder: Path, artifact: Artifact, workflow: Workflow) -> bool:
    """Whether the files of an artifact exist, and no unfinished job is writing them."""
    return all((folder / file).exists() and file not in workflow.started for file in artifact.files)


def unfinished(folder: Path, plan: Plan, workflow: Workflow) -> list[Artifact]:
    """The artifacts that the report still needs. Missing inputs of finished files do not count."""
    found: dict[tuple[str, ...], Artifact] = {}
    waiting = list(plan.artifacts.finals)
    while waiting:
        artifact = waiting.pop()
        key = tuple(artifact.files)
        if key in found or isinstance(artifact, UserFile) or is_made(folder, artifact, workflow):
            continue
        found[key] = artifact
        waiting += [source for source in artifact.sources() if isinstance(source, Artifact)]
    return list({artifact.job: artifact for artifact in found.values()}.values())  # parts of one job count once


def estimate(
    folder: Path,
    plan: Plan,
    workflow: Workflow,
    *,
    trainings: Sequence[Training],
    running: Mapping[str, Progress | None],
) -> RemainingWork:
    """Add up what unfinished jobs will take: trainings by their updates, others as long as earlier ones of their rule.

    `running` has the progress of each running job, as far as known, by its output.
    """
    by_model = {
        f"{run_folder(training.dataset, training.system, training.seed)}/model.pt": training for training in trainings
    }
    # Mean seconds of an update by system; the empty name has the mean over all, for systems not yet started.
    rates: dict[str, list[float]] = {}
    for training in trainings:
        if training.step and training.seconds:
            for name in (training.system, ""):
                rates.setdefault(name, []).append(training.seconds / training.step)
    per_step = {name: statistics.fmean(found) for name, found in rates.items()}
    of_rules: dict[tuple[str, ...], float | None] = {}
    known: list[float] = []
    unknown = 0
    artifacts = unfinished(folder, plan, workflow)
    for artifact in artifacts:
        if training := next((by_model[file] for file in artifact.job if file in by_model), None):
            seconds, rate = training.eta_seconds, per_step.get(training.system, per_step.get(""))
            # Trainings without `max_steps` end at an unknown time; before any update, no rate is known.
            if seconds is None and training.max_steps is not None and rate is not None:
                seconds = max(0, training.max_steps - (training.step or 0)) * rate
        else:
            if artifact.rules not in of_rules:
                of_rules[artifact.rules] = _mean_seconds(folder / "results/benchmarks", artifact.rules)
            progress = next((running[file] for file in artifact.job if running.get(file)), None)
            seconds = progress.eta_seconds if progress else of_rules[artifact.rules]
        unknown += seconds is None
        known += [] if seconds is None else [seconds]
    parallel = max(1, len(running))
    # However many jobs run side by side, the study lasts at least as long as its longest job.
    eta = max(sum(known) / parallel, *known) if known else None
    return RemainingWork(len(artifacts), unknown, eta, len(running))


def _mean_seconds(benchmarks: Path, rules: Iterable[str]) -> float | None:
    """The mean wall time of the finished jobs of some rules; None without any."""
    found = []
    for path in (path for rule in rules for path in (benchmarks / rule).glob("*.tsv")):
        try:
            with open(path, encoding="utf-8", newline="") as file:
                # Snakemake's benchmark: a tab-separated line of measurements, wall seconds in column `s`.
                found += [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
        except (OSError, KeyError, TypeError, ValueError):
            continue  # a benchmark that a killed job left half-written
    return statistics.fmean(found) if found else None
