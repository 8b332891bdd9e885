"""CXMI (Fernandes et al. 2021) as scores: from what context adds to the log probability of each sentence."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from docmt.corpora.contrastive import ContrastiveItem
from docmt.evaluation.metrics import CXMI
from docmt.evaluation.rows import ScoreRow

SIGNATURE = "nats per sentence, words and </s>|log p in its instance − log p alone|interval:normal 95 %"


def describe_test(gains: Sequence[np.ndarray]) -> list[ScoreRow]:
    """The row of a test set: over all sentences."""
    return [_row(list(chain.from_iterable(gains)))]


def describe_suite(items: Sequence[ContrastiveItem], gains: Sequence[np.ndarray]) -> list[ScoreRow]:
    """The rows of a suite: the last sentence of each right candidate, over all items and for each phenomenon."""
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
        margin = 1.96 * float(np.std(gains, ddof=1)) / n**0.5
        row["low"], row["high"] = mean - margin, mean + margin
    return row
