"""What a study no longer needs: checkpoints of finished trainings, and runs that its configuration does not have."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan
from docmt.config.systems import list_runs
from docmt.errors import UserError
from docmt.snakemake import read_workflow
from docmt.status.cluster import read_queue


@dataclass(frozen=True)
class Leftover:
    """A folder that can be deleted.

    Attributes:
        path: relative to the folder of the study.
        why: why nothing needs it.
        n_bytes: size of its files.
    """

    path: Path
    why: str
    n_bytes: int


def find_leftovers(folder: Path, plan: Plan) -> Iterator[Leftover]:
    """The folders that can be deleted, sorted by path."""
    needed = {run_folder(run) for run in list_runs(plan.config)}
    for place in sorted(folder.glob("results/*/runs/*/seed*")):
        run = place.relative_to(folder)
        if str(run) not in needed:
            yield Leftover(run, "the configuration has no such run", _size(place))
        elif (place / "model.pt").exists() and (place / "checkpoints").is_dir():
            yield Leftover(run / "checkpoints", "the training is finished", _size(place / "checkpoints"))


def delete_leftovers(folder: Path, leftovers: list[Leftover]) -> None:
    """Delete folders of a study. Raises UserError, and deletes nothing, while jobs of the study run or wait."""
    workflow, queue = read_workflow(folder), read_queue(folder)
    if workflow.state in ("running", "locked") or queue.jobs:
        raise UserError(f"{folder}: Snakemake or jobs of this study are running: delete when they have ended")
    for leftover in leftovers:
        shutil.rmtree(folder / leftover.path)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
