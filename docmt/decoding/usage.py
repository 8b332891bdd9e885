"""How much a model uses context: conditional cross-mutual information (CXMI, Fernandes et al. 2021).

CXMI is the mean over sentences of log p(reference | its instance) − log p(reference | its sentence alone), both by the
same model. It is 0 for a model without context. One that never saw single sentences may find these harder for that
reason alone: compare systems with the same training data.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from docmt.corpora.contrastive import ContrastiveItem
from docmt.decoding.contrast import Candidate, TargetScorer
from docmt.decoding.translation import place_source
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError

CXMI = "CXMI"
SIGNATURE = "nats per sentence, words and </s>|log p in its instance − log p alone|interval:normal 95 %"


def context_gains(
    documents: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    scorer: TargetScorer,
    trees: Sequence[DiscourseDocument] | None = None,
) -> list[np.ndarray]:
    """What context adds to the log probability of each sentence, in nats; float64 [sentences] for each document.

    Args:
        documents: id, source sentences and reference sentences.
        scorer: of the model.
        trees: of the same documents in their order, for models that read them.

    Raises:
        UserError: the trees belong to other documents.
    """
    if trees is not None and [document.id for document in trees] != [name for name, _, _ in documents]:
        raise UserError("the trees do not match the documents in order: parse them again")
    candidates = [
        Candidate(src, tgt, None if trees is None else place_source(trees[number], src, scorer.trained))
        for number, (_, src, tgt) in enumerate(documents)
    ]
    together, alone = scorer.score_sentences(candidates), scorer.score_sentences(candidates, alone=True)
    return [one - other for one, other in zip(together, alone, strict=True)]


def describe_test(gains: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """The row of a test set: over all sentences."""
    return [_row(list(chain.from_iterable(gains)))]


def describe_suite(items: Sequence[ContrastiveItem], gains: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """The rows of a suite: the last sentence of each right candidate, over all items and for each phenomenon."""
    last = [float(gain[-1]) for gain in gains]
    rows = [_row(last)]
    for phenomenon in dict.fromkeys(item.phenomenon for item in items):
        own = [gain for gain, item in zip(last, items, strict=True) if item.phenomenon == phenomenon]
        rows.append(_row(own) | {"phenomenon": phenomenon, "kind": phenomenon})
    return rows


def _row(gains: Sequence[float]) -> dict[str, Any]:
    mean, n = float(np.mean(gains)), len(gains)
    row = {"metric": CXMI, "value": mean, "n": n, "signature": SIGNATURE}
    if n == 1:
        return row
    margin = 1.96 * float(np.std(gains, ddof=1)) / n**0.5
    return row | {"low": mean - margin, "high": mean + margin}
