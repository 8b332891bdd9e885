"""What a study no longer needs: checkpoints, runs that its configuration does not have, and what killed jobs left."""

import re
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

# The name of a folder in which a job writes a file before it gets its name (`docmt.files.atomic_writer`)
UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Leftover:
    """A folder that can be deleted."""

    path: Path  # relative to the folder of the study
    why: str
    n_bytes: int


def find_leftovers(folder: Path, plan: Plan) -> Iterator[Leftover]:
    """The folders that can be deleted; none of them is inside another."""
    needed = {run_folder(run.dataset, run.system, run.seed) for run in list_runs(plan.config)}
    found: set[Path] = set()
    for place in sorted(folder.glob("results/*/runs/*/seed*")):
        if str(place.relative_to(folder)) not in needed:
            found.add(place)
            yield _leftover(folder, place, "the configuration has no such run")
        # A finished run keeps its model; checkpoints only serve to resume a training.
        elif (place / "model.pt").exists() and (place / "checkpoints").is_dir():
            found.add(place / "checkpoints")
            yield _leftover(folder, place / "checkpoints", "the training is finished")
    for place in sorted(folder.glob("results/**/.*")):
        # A folder inside one that goes anyway would be counted and deleted twice.
        if UNFINISHED.fullmatch(place.name) and place.is_dir() and found.isdisjoint(place.parents):
            found.add(place)
            yield _leftover(folder, place, "the unfinished output of a job")


def delete_leftovers(folder: Path, leftovers: list[Leftover]) -> None:
    """Delete folders of a study. Raises UserError, and deletes nothing, while jobs of the study run or wait."""
    workflow, queue = read_workflow(folder), read_queue(folder)
    if workflow.state in ("running", "locked") or queue.jobs:
        raise UserError(f"{folder}: Snakemake or jobs of this study are running: delete when they have ended")
    for leftover in leftovers:
        shutil.rmtree(folder / leftover.path)


def _leftover(study: Path, place: Path, why: str) -> Leftover:
    n_bytes = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return Leftover(place.relative_to(study), why, n_bytes)
