"""`docmt status`: training progress and failed jobs in a study."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import CommandGroup
from docmt.config.loading import load_config, read_config_files
from docmt.config.plan import Plan
from docmt.errors import UserError, escape_controls
from docmt.snakemake import last_configuration
from docmt.status.study import show_study

log = logging.getLogger(__name__)


def find_configuration(files: Sequence[Path], directory: Path) -> list[Path]:
    """Return a command's configuration files. Default: the last run's files in the study folder."""
    last = last_configuration(directory)
    named = " ".join(map(str, last))
    if not files:
        if not last:
            raise UserError(
                "no configuration: this folder has no previous run. Start one with `docmt run my.yaml`, or the "
                "demo with `docmt run config/config.yaml`"
            )
        log.info("configuration of the last run: %s", named)
    elif last and [file.resolve() for file in files] != [file.resolve() for file in last]:
        log.warning("using %s, but the last run in this folder used %s", " ".join(map(str, files)), named)
    return [*files] or last


@Parameter(name="*")
@dataclass(frozen=True)
class StudyFolder:
    """Options for a study's folder and configuration."""

    files: Annotated[
        list[Path],
        Parameter(name="--configfile", help="YAML files. Default: the files of the last run.", show_default=False),
    ] = field(default_factory=list)
    directory: Annotated[Path, Parameter(alias="-d", help="folder of the study.")] = field(default=Path(), kw_only=True)

    @contextmanager
    def opened(self) -> Iterator[tuple[Plan, Path, list[Path]]]:
        """Return the plan, the study folder and the configuration files, as absolute paths.

        The study folder is the working directory inside the context.
        """
        if not self.directory.is_dir():
            what = "is a file" if self.directory.exists() else "no such folder"
            raise UserError(f"--directory {self.directory}: {what}: pass the folder of a study")
        files = find_configuration(self.files, self.directory)
        values = read_config_files(files)
        files = [file.absolute() for file in files]
        with chdir(self.directory):
            yield Plan(load_config(values)), Path.cwd(), files


command = CommandGroup("status")


@command.default
def status(study: StudyFolder = StudyFolder()) -> None:
    """Show training progress, failed jobs with their last error, and the number of finished results.

    Example:
        docmt status config/examples/smoke.yaml
    """
    with study.opened() as (plan, folder, _):
        print(escape_controls(show_study(folder, plan), keep="\n"))
