"""`docmt status`: training progress and failed jobs of a study."""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import CommandGroup, option
from docmt.config.loading import load_config, read_config_files
from docmt.config.plan import Plan
from docmt.errors import UserError
from docmt.status.study import show_study


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class StudyFolder:
    """Options for the folder and the configuration of a study."""

    directory: Annotated[Path, option("folder of the study.")] = Path(".")
    configfile: Annotated[
        list[Path] | None, option("configuration files, as for Snakemake. Default: config/config.yaml.")
    ] = None

    @property
    def configfiles(self) -> list[Path]:
        """Return the configuration files. Default: config/config.yaml in the current folder or in the repository."""
        if self.configfile:
            return self.configfile
        places = [Path("config/config.yaml"), Path(__file__).parents[2] / "config/config.yaml"]
        found = next((path for path in places if path.is_file()), None)
        if found is None:
            raise UserError(f"{places[0]}: no such file: give the study's configuration with --configfile")
        return [found]

    @contextmanager
    def opened(self) -> Iterator[tuple[Plan, Path]]:
        """Return the plan and the folder of the study, which is the working directory inside the context."""
        if not self.directory.is_dir():
            what = "is a file" if self.directory.exists() else "no such folder"
            raise UserError(f"--directory {self.directory}: {what}: give the folder of a study")
        values = read_config_files(self.configfiles)
        with chdir(self.directory):
            yield Plan(load_config(values)), Path.cwd()


command = CommandGroup("status")


@command.default
def status(*, study: StudyFolder = StudyFolder()) -> None:
    """Show training progress, failed jobs with their last error, and the number of finished results.

    Example:
        docmt status --configfile config/examples/smoke.yaml
    """
    with study.opened() as (plan, folder):
        print(show_study(folder, plan))
