"""`docmt tidy`: what takes space although nothing needs it."""

import argparse

from docmt.cli.options import CommandParser
from docmt.cli.status import add_study_options, read_plan
from docmt.errors import UserError
from docmt.status.leftovers import delete_leftovers, find_leftovers


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    add_study_options(parser)
    parser.add_argument("--delete", action="store_true", help="delete what is listed")
    parser.epilog = (
        "Without its checkpoints, a finished training cannot be continued with a larger max_steps. "
        "Models, translations and scores stay."
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """List the folders with their sizes and, if asked for, delete them. Raises UserError while the study runs."""
    plan = read_plan(options)
    folder = options.directory.resolve()
    if not (folder / "results").is_dir():
        raise UserError(f"--directory {options.directory}: has no results: give the folder of a study")
    leftovers = list(find_leftovers(folder, plan))
    if options.delete:
        delete_leftovers(folder, leftovers)
    for leftover in leftovers:
        print(f"{leftover.n_bytes / 1e6:10.1f} MB  {leftover.path}  ({leftover.why})")
    total = f"{sum(leftover.n_bytes for leftover in leftovers) / 1e6:10.1f} MB in {len(leftovers)} folders"
    print(f"{total}, {'deleted' if options.delete else 'which docmt tidy --delete deletes'}")
