"""Which configuration trained a model.

Two configurations that use the same names in one folder would replace each other's models. Therefore the folder of a
run contains the names of the configuration files, not their content: after an edit, the same file trains again. So does
the same file with or without further files, for example after a trial with fewer updates.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from docmt.current_run import planned_configuration
from docmt.errors import UserError
from docmt.files import read_lines, write_lines
from docmt.snakemake_records import WITHOUT_CHECK

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

OWNER = "configuration.txt"
"""File in the folder of a run, with a configuration file per line."""
REPLACE_VARIABLE = "DOCMT_REPLACE"
"""Environment variable that allows to replace models of other configurations, and to delete all outputs (`docmt run
--replace`)."""
MERGED = Path("results/config.yaml")
"""Configuration files and changes by `docmt run --set`. Its first line names the files and the changes."""
MERGED_DRY_RUN = Path(".snakemake/dry_run.yaml")
"""The same file for a dry run."""
MERGED_HEAD = "# merged by docmt run: "


def configuration_names(files: Iterable[Path]) -> list[str]:
    """Return the names of a study's configuration files. A file that `--set` merged stands for its sources."""
    names, _ = configuration_sources(files)
    return names


def configuration_sources(files: Iterable[Path]) -> tuple[list[str], list[str]]:
    """Return the names of a study's configuration files, and the changes in files that `--set` merged.

    The working directory is the study folder. Paths inside it are relative, since the folder can be moved.
    """
    names: list[str] = []
    changes: list[str] = []
    for file in files:
        path, folder = os.path.realpath(file), os.path.realpath(Path.cwd())
        name = os.path.relpath(path, folder) if Path(path).is_relative_to(folder) else path
        if Path(name) in (MERGED, MERGED_DRY_RUN):
            merged_names, merged_changes = _read_head(file)
            names += merged_names
            changes += merged_changes
        else:
            names.append(name)
    return names, changes


def _read_head(file: Path) -> tuple[list[str], list[str]]:
    """Return the files and changes that `docmt run --set` merged into a file. Just this file if it was not made so."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            head = json.loads(lines.readline().removeprefix(MERGED_HEAD))
        return [str(name) for name in head["files"]], [str(change) for change in head["--set"]]
    except (OSError, ValueError, LookupError, TypeError):
        return [str(MERGED)], []


def record_owner(run: Path) -> None:
    """Write the names of the current configuration into the folder of a run. Outside of a workflow, remove them."""
    names = planned_configuration()
    if names:
        write_lines(run / OWNER, names, checksum=False)
    else:
        (run / OWNER).unlink(missing_ok=True)


def read_owner(run: Path) -> list[str]:
    """Return the names of the configuration that trained a run's model. Empty if unknown."""
    return read_lines(run / OWNER) if (run / OWNER).is_file() else []


def belongs_to_others(run: Path, names: list[str]) -> bool:
    """True if another configuration than the one with these names trained a run's model.

    Configurations with the same first file are the same study if one of them only adds files.
    """
    shorter, longer = sorted([read_owner(run), names], key=len)
    remaining = iter(longer)
    is_subset = all(name in remaining for name in shorter)  # in the same order
    return not is_subset or shorter[:1] not in ([], longer[:1])


def check_owners(models: Iterable[str], names: list[str]) -> None:
    """Raise UserError if a run of the configuration with these names would replace a model of another one."""
    if os.environ.get(REPLACE_VARIABLE) or WITHOUT_CHECK & {*sys.argv}:
        return
    others = [path for path in models if belongs_to_others(Path(path).parent, names)]
    if others:
        owner = read_owner(Path(others[0]).parent)
        raise UserError(
            f"{len(others)} model(s) of {' '.join(owner)} would be replaced by {' '.join(names)}, such as "
            f"{others[0]}: use another folder (--directory) or other names of datasets or systems, or allow it with "
            "`docmt run --replace`"
        )


def guard_deletion(workflow: "Workflow") -> None:
    """Refuse `snakemake --delete-all-output`, which would delete all models of a study without a question."""
    from snakemake.exceptions import WorkflowError

    delete = workflow.delete_output

    def delete_if_allowed(only_temp: bool = False, dryrun: bool = False) -> None:
        if not (only_temp or dryrun or os.environ.get(REPLACE_VARIABLE)):
            raise WorkflowError(
                "docmt: error: --delete-all-output: would delete all results and models of this study: delete what it "
                "no longer needs with `docmt clean --delete`, or add `--replace` to `docmt run`"
            )
        delete(only_temp=only_temp, dryrun=dryrun)

    workflow.delete_output = delete_if_allowed
