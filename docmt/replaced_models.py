"""Models that a run of Snakemake will replace, or train again under another name."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from docmt.errors import UserError
from docmt.model_owners import check_owners
from docmt.paths import MODEL, names_in_path
from docmt.snakemake_records import read_record

REPLACED = "docmt: this run "
"""First words of the line."""
REFUSED = f"{REPLACED}would be refused: "
"""First words of the second line, in a dry run of a study that would be refused."""
N_NAMED = 10
"""Maximum number of models to name."""


def describe_trainings(jobs: Iterable[Any], configuration: list[str], *, is_dry_run: bool = False) -> str:
    """Return one line about the trainings among Snakemake's jobs that concern existing models. Empty if none does.

    Raises UserError if another configuration than this one trained an existing model (`docmt.model_owners`). In a dry
    run, the error is a second line.
    """
    trainings = {path: job for job in jobs for path in map(str, job.output) if names_in_path(MODEL, path)}
    existing = [path for path in sorted(trainings) if Path(path).exists()]
    refusal = []
    try:
        check_owners(existing, configuration)
    except UserError as error:
        if not is_dry_run:
            raise
        refusal = [f"{REFUSED}{error}"]
    replaced = [f"{_name(path)} ({_updates(path)})" for path in existing]
    new = {path: job for path, job in sorted(trainings.items()) if not Path(path).exists()}
    others = [
        str(path)
        for path in sorted(Path().glob(MODEL.format(dataset="*", system="*", seed="*")))
        if str(path) not in trainings
    ]
    params = {path: read_record(path).get("params", []) for path in others} if new else {}
    renamed = []
    for path, job in new.items():
        recorded = repr(job.params.get("fingerprint"))
        same = next((other for other in others if recorded in params[other]), None)
        if same is not None:
            renamed.append(f"{_name(path)} as {same}")
    parts = []
    if replaced:
        models = f"{len(replaced)} existing model{'s' if len(replaced) > 1 else ''}"
        parts.append(f"replaces {models}: {_join(replaced)}")
    if renamed:
        parts.append(f"trains models again that exist under another name: {_join(renamed)}")
    line = [REPLACED + "; ".join(parts)] if parts else []
    return "\n".join(line + refusal)


def _name(path: str) -> str:
    names = names_in_path(MODEL, path)
    return "{dataset}/{system} seed {seed}".format(**names or {})


def _updates(path: str) -> str:
    try:
        with open(Path(path).with_name("history.csv"), encoding="utf-8", newline="") as file:
            *_, row = csv.DictReader(file)
        return f"{int(row['step']):,} updates"
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return "unknown number of updates"


def _join(names: list[str]) -> str:
    more = f" and {len(names) - N_NAMED:,} more" if len(names) > N_NAMED else ""
    return ", ".join(names[:N_NAMED]) + more
