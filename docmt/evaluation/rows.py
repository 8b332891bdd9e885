"""Score files: rows of one run with their provenance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from docmt import provenance
from docmt.errors import UserError
from docmt.files import sha256_file, write_json
from docmt.settings import nearest

RUN_KEYS = ("dataset", "system", "seed", "test")
OPTIONAL_RUN_KEYS = ("fingerprint",)


class ScoreRow(TypedDict):
    """One score of a run on a test, in percent; None when it could not be computed (docs/files.md)."""

    metric: str
    value: float | None
    n: int
    signature: str
    phenomenon: NotRequired[str | None]
    distance: NotRequired[int | None]
    kind: NotRequired[str | None]
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    chance: NotRequired[float]


def parse_run(arguments: Sequence[str]) -> dict[str, Any]:
    """Read `dataset=… system=… seed=… test=…`, and optionally `fingerprint=…` (the hash of the run's settings).

    Raises UserError for a missing or unknown key, and for a seed that is not a whole number.
    """
    run: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        known = [*RUN_KEYS, *OPTIONAL_RUN_KEYS]
        if key not in known:
            raise UserError(f"--run {argument}: unknown key; {nearest(key, known)}")
        if not equals or not value or key in run:
            raise UserError(f"--run {argument}: write {key}=VALUE once")
        run[key] = value
    missing = next((key for key in RUN_KEYS if key not in run), None)
    if missing:
        raise UserError(f"--run: {missing}=… is missing")
    try:
        run["seed"] = int(run["seed"])
    except ValueError:
        raise UserError(f"--run seed={run['seed']}: must be a whole number") from None
    return run


def write_scores(
    path: Path,
    rows: Sequence[ScoreRow],
    *,
    run: dict[str, Any],
    settings: Mapping[str, Any],
    inputs: dict[str, Path],
    **facts: Any,
) -> None:
    """Write the score file of one run, as of `parse_run`, on one test; its fingerprint replaces that of the settings.

    The provenance has the checksums of the files that were read, by role, and further facts.
    """
    checksums = {role: {"name": file.name, "sha256": sha256_file(file)} for role, file in inputs.items()}
    described = provenance.describe(settings=settings, inputs=checksums, **facts)
    if "fingerprint" in run:
        described["fingerprint"] = run["fingerprint"]
    keys = {key: run[key] for key in RUN_KEYS}
    empty = {"phenomenon": None, "distance": None}
    write_json(path, {"provenance": described, "scores": [keys | empty | row for row in rows]})
