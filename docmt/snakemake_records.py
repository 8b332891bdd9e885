"""Snakemake's records of outputs: with which parameters a job made a file.

Snakemake writes a record after the output, without a flush to disk. A power failure, a full quota or an incomplete copy
can therefore leave an output without a record. Snakemake then considers it a result of the current settings.
"""

import base64
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from docmt.errors import UserError
from docmt.files import read_facts

RECORDS = Path(".snakemake/metadata")
"""Folder with a record per output."""
STARTED = Path(".snakemake/incomplete")
"""Folder with a mark per output of unfinished jobs."""
N_EXAMPLES = 3
WITHOUT_CHECK = {"--touch", "-t", "--unlock", "--cleanup-metadata", "--cm"}
"""Options of Snakemake that write or remove records or locks, and run no job."""


class Fingerprinted(Protocol):
    """An artifact. Files of one job have the same fingerprint."""

    @property
    def fingerprint(self) -> str: ...


def check_records(outputs: Mapping[str, Fingerprinted]) -> None:
    """Raise UserError if existing results of a study have no readable record, because their settings are unknown.

    Outputs of jobs that were killed are accepted, since Snakemake makes them again. `resources` is shared by studies,
    and the files there depend on no settings.
    """
    if WITHOUT_CHECK & {*sys.argv}:
        return
    results = sorted({path for path in outputs if path.startswith("results/") and os.path.exists(path)})
    lost = [path for path in results if not read_record(path)]
    if lost:
        # Of an unfinished job, a single mark is enough: when it was killed, others may have been missing.
        started = {artifact.fingerprint for path, artifact in outputs.items() if record_path(STARTED, path).exists()}
        lost = [path for path in lost if outputs[path].fingerprint not in started]
    if not lost:
        return
    names = ", ".join(lost[:N_EXAMPLES]) + (", …" if len(lost) > N_EXAMPLES else "")
    what = f"{Path.cwd()}: {len(lost):,} of {len(results):,} results have no readable Snakemake records (.snakemake), "
    what += f"so their settings are unknown: {names}. "
    if len(lost) == len(results):
        raise UserError(
            f"{what}Copy a study as a whole folder with `cp -a`. If the current settings made the results, record this "
            "with the options `--touch --forceall` of `docmt run`. Otherwise remove the results"
        )
    raise UserError(
        f"{what}Restore the folder .snakemake from a copy, or remove these files to make them again. Trainings resume "
        "from their checkpoints"
    )


def read_record(path: str) -> dict[str, Any]:
    """Return Snakemake's record of an output. Empty if it is missing or damaged."""
    record = read_facts(record_path(RECORDS, path))
    return record if isinstance(record.get("params"), list) else {}


def record_path(folder: Path, path: str) -> Path:
    """Return where Snakemake stores the record or mark of an output."""
    name = base64.urlsafe_b64encode(path.encode()).decode()
    length = (os.pathconf(folder, "PC_NAME_MAX") if folder.is_dir() else 255) - 1
    parts = [name[start : start + length] for start in range(0, len(name), length)]
    return folder.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])
