"""Score files: rows of one run with their provenance."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from docmt import provenance
from docmt.files import sha256_file, write_json


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


def write_scores(
    path: Path,
    rows: Sequence[ScoreRow],
    *,
    run: dict[str, Any],
    settings: Mapping[str, Any],
    inputs: dict[str, Path],
    **facts: Any,
) -> None:
    """Write the score file of one run on one test.

    `run` has `dataset`, `system`, `seed` and `test`. The checksums of `inputs`, files by role, become a part of the
    provenance, as do `facts`.
    """
    checksums = {role: {"name": file.name, "sha256": sha256_file(file)} for role, file in inputs.items()}
    described = provenance.describe_result(settings=settings, inputs=checksums, **facts)
    empty = {"phenomenon": None, "distance": None}
    write_json(path, {"provenance": described, "scores": [run | empty | row for row in rows]})
