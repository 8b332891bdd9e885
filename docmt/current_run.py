"""The file that describes the current run, for its jobs: docmt's version, configuration and user-supplied files.

Snakemake's main process writes it (`docmt.config.run_file`) and passes its path in the environment. Commands outside a
workflow have no such file, and nothing is compared.
"""

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docmt import __version__
from docmt.errors import UserError

RUN_VARIABLE = "DOCMT_RUN"
"""Environment variable with the path of the run file."""
RUN_KEY = "docmt_run"
"""Key in the run file, next to the sections of the configuration."""
RUN_FOLDER = Path(".snakemake/docmt")
"""Folder with run files in a study folder."""


def check_version(run: Mapping[str, Any] | None = None) -> None:
    """Raise UserError if this docmt is not the version that planned the run. Default: the run in the environment."""
    version = (run or _read_run(os.environ.get(RUN_VARIABLE))).get("version", __version__)
    if version != __version__:
        raise UserError(
            f"docmt {__version__}: this run was planned with docmt {version}: if docmt was replaced in the meantime, "
            "start the run again; if jobs run in a container, build its image again"
        )


def planned_digest(path: Path) -> str | None:
    """Return the SHA-256 of a user-supplied file when the run was planned. None without a run, or for other files."""
    files = _read_run(os.environ.get(RUN_VARIABLE)).get("files", {})
    return files.get(os.path.realpath(path)) or files.get(os.path.abspath(path)) if files else None


def planned_configuration() -> list[str]:
    """Return the names of the current run's configuration files. Empty without a run."""
    return _read_run(os.environ.get(RUN_VARIABLE)).get("configuration", [])


@functools.cache
def _read_run(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return json.loads(Path(path).read_bytes())[RUN_KEY]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}): it describes the current run; start the run again"
        ) from None
