"""`docmt init`: a new folder with the workflow, so that an installed package needs no clone of the repository."""

import argparse
import shutil
import sysconfig
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.errors import UserError

PARTS = ("Snakefile", "workflow", "profiles", "slurm", "config", "environment.yml")
NEXT = """{folder} is ready. Next:
  cd {folder}
  snakemake --cores all --configfile config/examples/smoke.yaml   # checks the installation in a minute or two
  cp config/config.yaml my.yaml                                   # edit it, then:
  docmt config check my.yaml && snakemake --cores all --configfile my.yaml"""


def add_commands(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="a folder that does not exist yet, or is empty")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Copy the workflow. Raises UserError when the folder holds something, or the installation lacks the workflow."""
    folder = options.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists and is not empty: give a new folder")
    source = find_workflow()
    for name in PARTS:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source / name, target)
    print(NEXT.format(folder=folder))


def find_workflow() -> Path:
    """The folder of the workflow: the repository, or what was installed with the package."""
    for folder in (Path(__file__).parents[2], Path(sysconfig.get_path("data")) / "share/docmt"):
        if all((folder / name).exists() for name in PARTS):
            return folder
    raise UserError("the workflow was not installed with docmt: install it again, or clone its repository")
