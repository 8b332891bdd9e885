"""`docmt tidy`: what takes space although nothing needs it."""

from docmt.cli.status import StudyFolder
from docmt.commands import CommandGroup
from docmt.errors import UserError
from docmt.status.leftovers import delete_leftovers, find_leftovers

command = CommandGroup("tidy")


@command.default
def tidy(*, study: StudyFolder = StudyFolder(), delete: bool = False) -> None:
    """List what a study no longer needs, with sizes.

    Without its checkpoints, a finished training cannot be continued with a larger max_steps. Models, translations and
    scores stay.

    Example:
        docmt tidy --configfile config/examples/smoke.yaml --delete

    Args:
        delete: delete what is listed.
    """
    plan = study.plan()
    folder = study.directory.resolve()
    if not (folder / "results").is_dir():
        raise UserError(f"--directory {study.directory}: has no results: give the folder of a study")
    leftovers = list(find_leftovers(folder, plan))
    if delete:
        delete_leftovers(folder, leftovers)
    for leftover in leftovers:
        print(f"{leftover.n_bytes / 1e6:10.1f} MB  {leftover.path}  ({leftover.why})")
    total = f"{sum(leftover.n_bytes for leftover in leftovers) / 1e6:10.1f} MB in {len(leftovers)} folders"
    print(f"{total}, {'deleted' if delete else 'which docmt tidy --delete deletes'}")
