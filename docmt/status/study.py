"""The state of a whole study."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan, one_of
from docmt.config.systems import list_runs
from docmt.report.manifest import OTHER
from docmt.snakemake import Workflow, read_workflow
from docmt.status.cluster import Queue, read_queue
from docmt.status.failures import Failure, find_failures
from docmt.status.remaining_work import Progress, RemainingWork, estimate, read_progress
from docmt.status.trainings import Training, job_name, read_trainings

OF_RUNS = ("decoding", "evaluation")  # stages whose jobs are named after runs


@dataclass(frozen=True)
class Stage:
    """How many of a stage's outputs exist."""

    name: str
    done: int
    all: int


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
    progress: dict[str, Progress]
    remaining: RemainingWork

    def to_json(self) -> dict[str, Any]:
        running = [
            {"rule": job.rule, "name": job.name, "job": job.job}
            | ({"progress": asdict(self.progress[job.log])} if job.log in self.progress else {})
            for job in self.workflow.running()
        ]
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
            "remaining": asdict(self.remaining),
        }


def read_study(folder: Path, plan: Plan, *, configfiles: Sequence[Path] = ()) -> StudyStatus:
    """Read the state of a study in a folder, which may be missing or empty; `configfiles` are only shown."""
    workflow = read_workflow(folder)
    queue = read_queue(folder)
    stages = []
    for name, targets in plan.targets().items():
        # The file of a job that Snakemake marks as started may be half-written, or left from an earlier run.
        done = [(folder / target).exists() and target not in workflow.started for target in targets]
        stages.append(Stage(name, sum(done), len(done)))
    finished = {stage.name for stage in stages if stage.done == stage.all}
    runs = list_runs(plan.config)
    unfinished = {
        job_name(run)
        for run in plan.artifacts.trained
        if not (folder / run_folder(run.dataset, run.system, run.seed) / "model.pt").exists()
    }
    # Names of log files: DATASET_SYSTEM_seedN_…, DATASET_SYSTEM_BASELINE_…, and tables of a system or a dataset. The
    # underscore keeps seed1 apart from seed10.
    of_runs, of_systems = one_of(map(job_name, runs)), one_of(f"{run.dataset}_{run.system}" for run in runs)
    pair, datasets = rf"(?:{of_systems})(?:_(?:{plan.names('systems')})_.+)?", plan.names("datasets")
    planned = re.compile(rf"(?:{of_runs})_.+|{pair}|{datasets}")

    def is_planned(stage: str, name: str) -> bool:
        if stage == OTHER:
            return True
        if stage == "training":
            return name in unfinished
        return stage not in finished and (stage not in OF_RUNS or planned.fullmatch(name) is not None)

    failures = find_failures(folder, workflow, is_planned)
    trainings = read_trainings(folder, plan, workflow=workflow, queue=queue, failures=failures)
    # A trainer that was started again by hand, or waits in the queue, is no failure, whatever its old log ends with.
    running = {job_name(training) for training in trainings if training.state != "failed"}
    failures = [failure for failure in failures if failure.rule != "train" or failure.name not in running]
    jobs = workflow.running()
    progress = {job.log: found for job in jobs if job.log and (found := read_progress(folder / job.log))}
    # One output names a job: the estimate divides by the number of running jobs, not of their files.
    outputs = {output: progress.get(job.log) for job in jobs for output in job.outputs[:1]}
    remaining = estimate(folder, plan, workflow, trainings=trainings, running=outputs)
    return StudyStatus(folder, tuple(configfiles), workflow, queue, stages, trainings, failures, progress, remaining)
