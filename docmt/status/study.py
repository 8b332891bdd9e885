"""The state of a whole study."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docmt.config.plan import Plan
from docmt.report.stages import OTHER
from docmt.snakemake import Workflow, read_workflow
from docmt.status.cluster import Queue, read_queue
from docmt.status.failures import Failure, find_failures
from docmt.status.trainings import Training, job_name, read_trainings

OF_RUNS = ("training", "decoding", "evaluation")
"""Stages whose jobs are named after runs."""


@dataclass(frozen=True)
class Stage:
    """How many of a stage's outputs exist."""

    name: str
    done: int
    all: int

    @property
    def is_done(self) -> bool:
        """Whether all outputs exist."""
        return self.done == self.all


@dataclass(frozen=True)
class StudyStatus:
    """Everything that `docmt status` shows."""

    folder: Path
    configfiles: tuple[Path, ...]
    workflow: Workflow
    queue: Queue
    stages: list[Stage]
    trainings: list[Training]
    failures: list[Failure]

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        running = [{"rule": job.rule, "name": job.name, "job": job.job} for job in self.workflow.running()]
        return {
            "folder": str(self.folder),
            "configfiles": [str(path) for path in self.configfiles],
            "snakemake": {
                "state": self.workflow.state,
                "host": self.workflow.host,
                "pid": self.workflow.pid,
                "configfiles": list(self.workflow.configfiles),
                "running": running,
            },
            "queue": [asdict(job) for job in self.queue.jobs],
            "queue_problem": self.queue.problem,
            "stages": [asdict(stage) for stage in self.stages],
            "trainings": [asdict(training) for training in self.trainings],
            "failures": [asdict(failure) for failure in self.failures],
        }


def read_study(folder: Path, plan: Plan, *, configfiles: Sequence[Path] = ()) -> StudyStatus:
    """Read the state of a study in a folder, which may be missing or empty.

    Args:
        folder: of the study.
        plan: of the study.
        configfiles: from which the plan was read, to be shown.
    """
    workflow = read_workflow(folder)
    queue = read_queue(folder)
    stages = [_stage(folder, name, targets, workflow) for name, targets in _targets(plan).items()]
    finished = {stage.name for stage in stages if stage.is_done}
    runs = {job_name(run) for run in plan.runs.all}
    unfinished = _unfinished_runs(folder, plan)

    def is_planned(stage: str, name: str) -> bool:
        if stage == OTHER:
            return True
        if stage == "training":
            return name in unfinished
        of_run = stage not in OF_RUNS or name.startswith(tuple(f"{run}_" for run in runs))
        return stage not in finished and of_run

    failures = find_failures(folder, workflow, is_planned)
    trainings = read_trainings(folder, plan, workflow=workflow, queue=queue, failures=failures)
    running = {job_name(training) for training in trainings if training.state != "failed"}
    failures = [failure for failure in failures if failure.rule != "train" or failure.name not in running]
    return StudyStatus(folder, tuple(configfiles), workflow, queue, stages, trainings, failures)


def _targets(plan: Plan) -> dict[str, list[str]]:
    """The outputs of each stage, as in the targets of the Snakefile."""
    targets = {
        "corpora": plan.corpora.targets(),
        "text": plan.text.targets(),
        "discourse": plan.discourse.targets(),
        "instances": plan.runs.instances_targets(),
        "training": plan.runs.training_targets(),
        "decoding": plan.runs.decoding_targets(),
        "evaluation": plan.runs.scores(),
        "report": ["results/report/report.html"],
    }
    return {stage: list(dict.fromkeys(files)) for stage, files in targets.items()}


def _stage(folder: Path, name: str, targets: Iterable[str], workflow: Workflow) -> Stage:
    done = [(folder / target).exists() and target not in workflow.started for target in targets]
    return Stage(name, sum(done), len(done))


def _unfinished_runs(folder: Path, plan: Plan) -> set[str]:
    """The names of trainings without a model."""
    return {
        job_name(run) for run in plan.runs.trained() if not (folder / plan.runs.run_folder(run) / "model.pt").exists()
    }
