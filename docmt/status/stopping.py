"""The line with which a study says goodbye after Ctrl-C: what is saved, and what the next call does."""

from pathlib import Path

from docmt.config.plan import Plan
from docmt.snakemake import Workflow
from docmt.status.cluster import Queue
from docmt.status.trainings import Training, read_trainings

MOST_NAMED = 4


def farewell(folder: Path, plan: Plan) -> str:
    """What is saved of a study that was stopped, in one line."""
    idle = Workflow("idle")
    trainings = read_trainings(folder, plan, workflow=idle, queue=Queue(), failures=[])
    saved = [training for training in trainings if training.state == "interrupted" and training.step is not None]
    files = [file for files in plan.targets().values() for file in files]
    n_made = sum((folder / file).exists() for file in files)
    parts = [f"stopped: {n_made} of {len(files)} results are made and stay"]
    if saved:
        more = f" and {len(saved) - MOST_NAMED} more" if len(saved) > MOST_NAMED else ""
        parts.append(f"saved: {', '.join(map(_describe, saved[:MOST_NAMED]))}{more}")
    resumes = "resumes trainings there and makes" if saved else "makes"
    return f"docmt: {'; '.join(parts)}; the same command {resumes} the rest"


def _describe(training: Training) -> str:
    of = f" of {training.max_steps}" if training.max_steps else ""
    return f"{training.system}/seed{training.seed} after update {training.step}{of}"
