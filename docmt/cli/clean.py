"""`docmt clean`: list or delete checkpoints, runs that are not in the configuration, and killed jobs' files."""

import itertools
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
from docmt.files import UNFINISHED, read_facts
from docmt.model_owners import belongs_to_others, read_owner
from docmt.paths import RUN
from docmt.provenance import job_facts_path
from docmt.slurm import QueueError, list_jobs
from docmt.snakemake import read_workflow

QUEUE_SECONDS = 2.0  # timeout for Slurm's controller
UNKNOWN = "unknown configuration"
"""Heading for files that no configuration has recorded as its own."""


command = CommandGroup("clean")


@command.default
def clean(study: StudyFolder = StudyFolder(), *, delete: bool = False, yes: bool = False) -> None:
    """List files that a study no longer needs, with sizes, by the configuration that they belong to.

    Without its checkpoints, a finished training cannot be continued with a larger max_steps. Models of the
    configuration, translations and scores stay.

    Example:
        docmt clean config/examples/smoke.yaml --delete

    Args:
        delete: delete the listed files, except runs and files of other configurations.
        yes: with --delete, also delete these.
    """
    with study.opened() as (plan, folder, names):
        if not (folder / "results").is_dir():
            raise UserError(f"--directory {study.directory}: contains no results: pass the folder of a study")
        leftovers = sorted(find_leftovers(plan, names), key=lambda leftover: leftover.owner)
        owners = {" ".join(read_owner(run)) for run in run_folders()} - {""}
    if delete:
        if not study.files and len(owners) > 1:
            raise UserError(
                f"{folder}: contains runs of {' and '.join(sorted(owners))}: name the configuration whose files you no "
                "longer need, for example `docmt clean my.yaml --delete`"
            )
        try:
            jobs = list_jobs(folder, timeout_seconds=QUEUE_SECONDS)
        except QueueError:
            jobs = []
        if read_workflow(folder).state in ("running", "locked") or jobs:
            raise UserError(f"{folder}: Snakemake or jobs of this study are still running: wait until they have ended")
    deleted = []
    if delete:
        deleted = [leftover for leftover in leftovers if yes or not leftover.needs_yes]
    for leftover in deleted:
        try:
            shutil.rmtree(folder / leftover.path)
        except OSError as error:
            raise UserError(f"{folder / leftover.path}: cannot be deleted ({error.strerror})") from None
    for owner, group in itertools.groupby(leftovers, key=lambda leftover: leftover.owner):
        print(escape_controls(f"{owner}:"))
        for leftover in group:
            reason = leftover.why
            if leftover not in deleted:
                reason += "; --delete --yes" if leftover.needs_yes else "; --delete"
            print(f"{leftover.n_bytes / 1e6:10.1f} MB  {escape_controls(f'{leftover.path}  ({reason})')}")
    if delete:
        print(f"{_megabytes(deleted)} in {len(deleted)} folders deleted")
    else:
        print(f"{_megabytes(leftovers)} in {len(leftovers)} folders in all; nothing is deleted without --delete")


def _megabytes(leftovers: list["Leftover"]) -> str:
    return f"{sum(leftover.n_bytes for leftover in leftovers) / 1e6:10.1f} MB"


@dataclass(frozen=True)
class Leftover:
    """A folder that can be deleted.

    Attributes:
        path: path, relative to the study folder.
        why: reason why the study does not need it.
        owner: names of the configuration that it belongs to.
        needs_yes: True if it is only deleted with `--yes`.
        n_bytes: size.
    """

    path: Path
    why: str
    owner: str
    needs_yes: bool
    n_bytes: int


def run_folders() -> Iterator[Path]:
    """Yield the folders of runs in the working directory. Links and copies under other names belong to the user."""
    for path in sorted(Path().glob(RUN.format(dataset="*", system="*", seed="[0-9]*"))):
        is_link = any(part.is_symlink() for part in (path, *path.parents[:3]))
        if path.name.removeprefix("seed").isdecimal() and path.is_dir() and not is_link:
            yield path


def find_leftovers(plan: Plan, names: list[str]) -> Iterator[Leftover]:
    """Yield the folders below the working directory that can be deleted. None of them is inside another.

    Deleting runs, and files of other configurations than the one with these names, needs `--yes`.
    """
    needed = {run_folder(run.dataset, run.system, run.seed) for run in list_runs(plan.config)}
    paths: set[Path] = set()
    for run in run_folders():
        label = " ".join(read_owner(run)) or UNKNOWN
        if str(run) not in needed:
            paths.add(run)
            yield Leftover(run, "the configuration has no such run", label, True, _count_bytes(run))
            continue
        checkpoints = _finished_checkpoints(run)
        if checkpoints is not None:
            paths.add(checkpoints)
            needs_yes = belongs_to_others(run, names)
            yield Leftover(checkpoints, "the training is finished", label, needs_yes, _count_bytes(checkpoints))
    for path in sorted(Path().glob("results/**/.*")):
        # A folder inside another leftover would be counted and deleted twice.
        is_folder = path.is_dir() and not path.is_symlink()
        if UNFINISHED.fullmatch(path.name) and is_folder and paths.isdisjoint(path.parents):
            paths.add(path)
            yield Leftover(path, "the unfinished output of a job", UNKNOWN, False, _count_bytes(path))


def _finished_checkpoints(run: Path) -> Path | None:
    """Return the checkpoints of the training that made a run's model. Other settings have their own checkpoints."""
    checkpoints = run / "checkpoints"
    if not (run / "model.pt").exists() or not checkpoints.is_dir() or checkpoints.is_symlink():
        return None
    folders = [path for path in checkpoints.iterdir() if path.is_dir() and not path.is_symlink()]
    only = None
    if len(folders) == 1:
        only = folders[0].name
    name = read_facts(job_facts_path(run / "model.pt")).get("checkpoints", only)  # of any type in a damaged file
    for folder in folders:
        if folder.name == name:
            return folder
    return None


def _count_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
