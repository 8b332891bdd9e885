"""`docmt clean`: list or delete checkpoints, runs that are not in the configuration, and killed jobs' files."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmt.cli.status import StudyFolder
from docmt.commands import CommandGroup
from docmt.config.artifacts.runs import run_folder
from docmt.config.plan import Plan
from docmt.config.systems import list_runs
from docmt.errors import UserError, escape_controls
from docmt.slurm import QueueError, list_jobs
from docmt.snakemake import read_workflow

QUEUE_SECONDS = 2.0  # timeout for Slurm's controller

command = CommandGroup("clean")


@command.default
def clean(study: StudyFolder = StudyFolder(), *, delete: bool = False) -> None:
    """List files that a study no longer needs, with sizes.

    Without its checkpoints, a finished training cannot be continued with a larger max_steps. Models, translations and
    scores stay.

    Example:
        docmt clean config/examples/smoke.yaml --delete

    Args:
        delete: delete the listed files.
    """
    with study.opened() as (plan, folder):
        if not (folder / "results").is_dir():
            raise UserError(f"--directory {study.directory}: contains no results: pass the folder of a study")
        leftovers = list(find_leftovers(folder, plan))
    if delete:
        try:
            jobs = list_jobs(folder, timeout_seconds=QUEUE_SECONDS)
        except QueueError:
            jobs = []
        if read_workflow(folder).state in ("running", "locked") or jobs:
            raise UserError(f"{folder}: Snakemake or jobs of this study are still running: wait until they have ended")
        for leftover in leftovers:
            shutil.rmtree(folder / leftover.path)
    for leftover in leftovers:
        print(f"{leftover.n_bytes / 1e6:10.1f} MB  {escape_controls(f'{leftover.path}  ({leftover.why})')}")
    total = f"{sum(leftover.n_bytes for leftover in leftovers) / 1e6:10.1f} MB in {len(leftovers)} folders"
    print(f"{total}, {'deleted' if delete else 'delete them with docmt clean --delete'}")


# Name pattern for temporary output folders (`docmt.files.atomic_writer`)
UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}")


@dataclass(frozen=True)
class Leftover:
    """A folder that can be deleted."""

    path: Path  # relative to the study folder
    why: str
    n_bytes: int


def find_leftovers(folder: Path, plan: Plan) -> Iterator[Leftover]:
    """Yield the folders that can be deleted. None of them is inside another."""
    needed = {run_folder(run.dataset, run.system, run.seed) for run in list_runs(plan.config)}
    found: set[Path] = set()
    for place in sorted(folder.glob("results/*/runs/*/seed*")):
        # Copies under other names and symbolic link targets belong to the user.
        if not re.fullmatch("seed[0-9]+", place.name) or not place.is_dir() or place.is_symlink():
            continue
        checkpoints = place / "checkpoints"
        if str(place.relative_to(folder)) not in needed:
            found.add(place)
            yield _leftover(folder, place, "the configuration has no such run")
        # A finished run keeps its model. Checkpoints are only needed to resume a training.
        elif (place / "model.pt").exists() and checkpoints.is_dir() and not checkpoints.is_symlink():
            found.add(checkpoints)
            yield _leftover(folder, checkpoints, "the training is finished")
    for place in sorted(folder.glob("results/**/.*")):
        # A folder inside another leftover would be counted and deleted twice.
        if UNFINISHED.fullmatch(place.name) and place.is_dir() and found.isdisjoint(place.parents):
            found.add(place)
            yield _leftover(folder, place, "the unfinished output of a job")


def _leftover(study: Path, place: Path, why: str) -> Leftover:
    n_bytes = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    return Leftover(place.relative_to(study), why, n_bytes)
