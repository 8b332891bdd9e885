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
from docmt.model_owners import configuration_names, configuration_sources
from docmt.snakemake import last_configuration
from docmt.status.study import show_study

log = logging.getLogger(__name__)


def find_configuration(files: Sequence[Path], directory: Path) -> tuple[list[Path], list[str]]:
    """Return a command's configuration files and changes. Default: the last run's files and `--set`.

    The files are read again, because you can have edited them. Without them, the merged configuration is used.
    """
    if files:
        return [*files], []
    last = last_configuration(directory)
    if not last:
        raise UserError(
            "no configuration: this folder has no previous run. Start one with `docmt run my.yaml`, or the "
            "demo with `docmt run config/config.yaml`"
        )
    for file in last:
        if not file.is_file():
            raise UserError(f"{file}: no such file, but the last run in this folder used it: name its configuration")
    merged = [file.absolute() for file in last]
    with chdir(directory):
        names, changes = configuration_sources(merged)
    words = [*names, *(f"--set {change}" for change in changes)]
    log.info("configuration of the last run: %s", " ".join(words))
    if not changes:
        return last, []
    sources = [directory / name for name in names]
    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        log.warning("%s: no such file: using its content of the last run, from %s", " ".join(missing), last[0])
        return last, []
    return sources, changes


def warn_of_other_files(names: list[str]) -> None:
    """Warn if the last run in the working directory used other configuration files than those with these names."""
    last = configuration_names(last_configuration(Path()))
    if last not in ([], names):
        log.warning("using %s, but the last run in this folder used %s", " ".join(names), " ".join(last))


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
    def opened(self) -> Iterator[tuple[Plan, Path, list[str]]]:
        """Return the plan, the study folder, and the names of the configuration files.

        The study folder is the working directory inside the context.
        """
        if not self.directory.is_dir():
            what = "is a file" if self.directory.exists() else "no such folder"
            raise UserError(f"--directory {self.directory}: {what}: pass the folder of a study")
        files, changes = find_configuration(self.files, self.directory)
        values = read_config_files(files, changes)
        files = [file.absolute() for file in files]
        with chdir(self.directory):
            plan = Plan(load_config(values))
            names = configuration_names(files)
            warn_of_other_files(names)
            yield plan, Path.cwd(), names


command = CommandGroup("status")


@command.default
def status(study: StudyFolder = StudyFolder()) -> None:
    """Show training progress, failed jobs with their last error, and the number of finished results.

    Example:
        docmt status config/examples/smoke.yaml
    """
    with study.opened() as (plan, folder, _):
        print(escape_controls(show_study(folder, plan), keep="\n"))
