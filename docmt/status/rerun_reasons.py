"""Why jobs run again, in words."""

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmt.checksums import recorded_fingerprint
from docmt.commands import as_argument
from docmt.config.artifacts.base import Artifact, UserFile, leading_to
from docmt.config.comparing import changed_values
from docmt.config.plan import Plan
from docmt.snakemake import Workflow, recorded_params

MOST_CHANGES = 6


@dataclass(frozen=True)
class Reason:
    """Why a job runs again."""

    stage: str
    rule: str
    file: str  # the first that the job makes
    words: str
    is_root: bool  # the reason lies in this job itself, not in one before it


def explain(folder: Path, plan: Plan, workflow: Workflow) -> list[Reason]:
    """The reasons of all jobs that have been made and run again, in the order of the workflow.

    Results whose file times alone make Snakemake run a job again are not found: `snakemake --dry-run` shows these.
    """
    artifacts = [each for each in leading_to(plan.artifacts.finals) if not isinstance(each, UserFile)]
    stages = list(plan.targets())
    artifacts.sort(key=lambda artifact: (stages.index(artifact.stage), artifact.rules, artifact.files[0]))
    # Stale: the file exists, but its job did not finish, its record has another fingerprint than the plan, or there is
    # neither a record of docmt's nor of Snakemake's. A file that does not exist is made for the first time, which needs
    # no explanation.
    params = recorded_params(folder)
    stale = set()
    for artifact in artifacts:
        for file in filter(lambda file: (folder / file).exists(), artifact.files):
            recorded = recorded_fingerprint(folder / file) or (artifact.fingerprint if file in params else None)
            if file in workflow.started or (artifact.is_recorded and recorded != artifact.fingerprint):
                stale.add(file)
    reasons: dict[str, Reason] = {}
    for artifact in artifacts:
        file = next((file for file in artifact.files if file in stale), None)
        if file is not None and file not in reasons:
            words, is_root = _reason(artifact, file, workflow, stale, params.get(file))
            reasons[file] = Reason(artifact.stage, artifact.rules[0], file, words, is_root)
    return list(reasons.values())


def _reason(
    artifact: Artifact, file: str, workflow: Workflow, stale: set[str], params: Sequence[str] | None
) -> tuple[str, bool]:
    if file in workflow.started:
        return "a job that was making it did not finish", True
    # An input that is made again suffices as the reason, even if settings of this job changed, too.
    inputs = [source for source in artifact.input_files() if source in stale]
    if inputs:
        more = f" and {len(inputs) - 1} more" if len(inputs) > 1 else ""
        return f"its input {inputs[0]}{more} is made again", False
    if params is None:
        return "its settings or its data changed, or it was copied without the records in .snakemake", True
    changes = list(_changed_settings(artifact, params))
    if changes:
        more = f" and {len(changes) - MOST_CHANGES} more" if len(changes) > MOST_CHANGES else ""
        return f"changed: {', '.join(changes[:MOST_CHANGES])}{more}", True
    return "its inputs are others, their content changed, or a new version of docmt makes it differently", True


def _changed_settings(artifact: Artifact, params: Sequence[str]) -> Iterator[str]:
    """The settings of a job that differ from those that Snakemake recorded, as `KEY: OLD → NEW`."""
    old = next((value for value in map(_parse, params) if isinstance(value, dict)), None)
    if old is not None and "settings" in artifact.params:
        yield from map(str, changed_values(old, json.loads(as_argument(artifact.params["settings"]))))


def _parse(text: str) -> Any:
    """The value of a recorded parameter; None if it is not JSON, the form in which docmt passes settings."""
    try:
        return json.loads(ast.literal_eval(text))  # Snakemake records the `repr` of a parameter
    except (ValueError, SyntaxError, TypeError):
        return None
