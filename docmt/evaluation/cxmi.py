"""CXMI, conditional cross-mutual information: how much a model uses context (Fernandes et al. 2021).

CXMI is the mean over sentences of log p(reference | its instance) − log p(reference | its sentence alone), both by the
same model. It is 0 for a model without context. A model that never saw single sentences may find these harder for that
reason alone: compare systems with the same training data.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
from docmt.decoding.translation import place_source
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.evaluation.metrics import CXMI
from docmt.evaluation.score_rows import ScoreRow

SIGNATURE = "nats per sentence, words and </s>|log p in its instance − log p alone|interval:normal 95 %"


def context_gains(
    documents: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    scorer: TargetScorer,
    trees: Sequence[DiscourseDocument] | None = None,
) -> list[np.ndarray]:
    """Difference that context makes to the log probability of each sentence, in nats; float64 [sentences] per document.

    `documents` are id, source and reference sentences; `trees` are in the same order, for models that read them.
    """
    if trees is not None and [document.id for document in trees] != [name for name, _, _ in documents]:
        raise UserError("the trees do not match the documents in order: parse them again")
    candidates = [
        Candidate(src, tgt, None if trees is None else place_source(trees[number], src, scorer.trained))
        for number, (_, src, tgt) in enumerate(documents)
    ]
    together, alone = scorer.score_sentences(candidates), scorer.score_sentences(candidates, alone=True)
    return [with_context - without for with_context, without in zip(together, alone, strict=True)]


def split_rows(gains: Sequence[np.ndarray]) -> list[ScoreRow]:
    """The row of a test split: CXMI over all its sentences."""
    return [_row(list(chain.from_iterable(gains)))]


def suite_rows(items: Sequence[ContrastiveItem], gains: Sequence[np.ndarray]) -> list[ScoreRow]:
    """The rows of a suite: CXMI of the last sentences of the right candidates, over all items and by phenomenon."""
    last = [float(gain[-1]) for gain in gains]
    rows = [_row(last)]
    for phenomenon in dict.fromkeys(item.phenomenon for item in items):
        own = [gain for gain, item in zip(last, items, strict=True) if item.phenomenon == phenomenon]
        rows.append({**_row(own), "phenomenon": phenomenon, "kind": phenomenon})
    return rows


def _row(gains: Sequence[float]) -> ScoreRow:
    mean, n = float(np.mean(gains)), len(gains)
    row: ScoreRow = {"metric": CXMI, "value": mean, "n": n, "signature": SIGNATURE}
    if n > 1:
        # ddof=1: the deviation of the population is estimated from these sentences.
        margin = 1.96 * float(np.std(gains, ddof=1)) / n**0.5
        row["low"], row["high"] = mean - margin, mean + margin
    return row
