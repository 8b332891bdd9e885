"""`docmt init`: a new folder with the workflow, so that an installed package needs no clone of the repository."""

import shutil
import sysconfig
from pathlib import Path

from docmt.commands import CommandGroup
from docmt.errors import UserError

PARTS = ("Snakefile", "workflow", "profiles", "slurm", "config", "environment.yml")
NEXT = """{folder} is ready. Next:
  cd {folder}
  docmt run config/examples/smoke.yaml   # checks the installation in a minute or two
  cp config/config.yaml my.yaml          # edit it, then:
  docmt config check my.yaml && docmt run my.yaml"""


command = CommandGroup("init")


@command.default
def init(folder: Path, /) -> None:
    """Start a study in a new folder: the workflow, its profiles and the example configurations.

    Example:
        docmt init my-study

    Args:
        folder: a folder that does not exist yet, or is empty.
    """
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
    schemes = sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")  # second: pip install --user
    installed = [Path(sysconfig.get_path("data", scheme)) / "share/docmt" for scheme in schemes]
    for folder in (Path(__file__).parents[2], *installed):
        if all((folder / name).exists() for name in PARTS):
            return folder
    raise UserError("the workflow was not installed with docmt: install it again, or clone its repository")
