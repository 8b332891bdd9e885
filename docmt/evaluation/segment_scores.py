"""Scores per segment from other programs, such as neural metrics, in user-supplied files."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.hypotheses import Unit
from docmt.files import read_lines

if TYPE_CHECKING:
    import numpy as np


class SegmentScores(NamedTuple):
    """Scores of a metric for every sentence or document of a test set."""

    unit: Unit
    values: "np.ndarray"  # float64 [segments]


def read_segment_scores(path: Path, index: DocumentIndex) -> SegmentScores:
    """Read a file with one number per line, for each sentence or each document of a test set."""
    import numpy as np  # planning a study imports this module without reading scores

    lines = read_lines(path)
    units: dict[int, Unit] = {len(index.ids): "documents", index.n_sentences: "sentences"}
    if len(lines) not in units:
        raise UserError(
            f"{path}: {len(lines)} lines, but the test set has {index.n_sentences} sentences in {len(index.ids)} "
            "documents: write one score for each sentence, or one for each document"
        )
    scores = []
    for number, line in enumerate(lines, start=1):
        try:
            score = float(line.replace("_", "?"))  # Python accepts 1_000
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise UserError(f"{path}: line {number}: {line.strip()!r} is not a finite number")
        scores.append(score)
    return SegmentScores(units[len(lines)], np.array(scores))


def read_metric_scores(metric: str, files: Sequence[tuple[str, Path]], index: DocumentIndex) -> list[SegmentScores]:
    """Read the files with scores of a metric, as pairs of the scored output and path. All must have the same unit."""
    scores = [read_segment_scores(path, index) for _, path in files]
    for (output, path), part in zip(files, scores, strict=True):
        first = scores[0]
        first_output, first_path = files[0]
        if part.unit != first.unit:
            raise UserError(
                f"{path}: scores of {output} by {metric!r} are for {len(part.values)} {part.unit}, but scores of "
                f"{first_output} in {first_path} are for {len(first.values)} {first.unit}: write one score for each "
                "sentence in both files, or one for each document"
            )
    return scores
