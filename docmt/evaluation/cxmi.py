"""Reference log probability, and CXMI: gain in log probability from context (Fernandes et al. 2021).

CXMI, conditional cross-mutual information, is the mean over sentences of log p(reference | its instance) − log
p(reference | the sentence without context), both by the same model. It is 0 for a model without context. If a model was
not trained on single sentences, CXMI also contains this disadvantage. Therefore you should compare systems with the
same training data, or compare two systems' log probabilities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
from docmt.decoding.translation import subword_trees
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.evaluation.metrics import CXMI, LOG_PROBABILITY
from docmt.evaluation.score_rows import ScoreRow, group_means

SIGNATURES = {
    LOG_PROBABILITY: "nats per sentence, words and </s>|interval:normal 95 %",
    CXMI: "nats per sentence, words and </s>|log p in its instance − log p alone|interval:normal 95 %",
}


def score_references(
    names: Sequence[str],
    references: Sequence[Candidate],
    scorer: TargetScorer,
    trees: Sequence[DiscourseDocument] | None = None,
) -> dict[str, list[np.ndarray]]:
    """Return log probabilities in instances and gains from context in nats, by metric. float64 [sentences].

    `trees` are the documents' trees in the same order, for models that read trees. Default: parse with the segmenter
    and parser in the model file, if any.
    """
    aligned = subword_trees(scorer.trained, names, [reference.src for reference in references], trees)
    references = [replace(reference, trees=tree) for reference, tree in zip(references, aligned, strict=True)]
    in_context = scorer.score_sentences(references)
    alone = scorer.score_sentences(references, alone=True)
    return {LOG_PROBABILITY: in_context, CXMI: list(map(np.subtract, in_context, alone))}


def suite_rows(items: Sequence[ContrastiveItem], scores: Mapping[str, Sequence[np.ndarray]]) -> list[ScoreRow]:
    """Return means over the correct candidates' last sentences, for all items and by phenomenon."""
    rows = []
    phenomena = np.array([item.phenomenon for item in items])
    for metric, item_scores in scores.items():
        last = np.array([sentences[-1] for sentences in item_scores])
        rows.append(mean_row(metric, last))
        for phenomenon in dict.fromkeys(phenomena.tolist()):
            row = mean_row(metric, last[phenomena == phenomenon])
            rows.append({**row, "phenomenon": phenomenon, "kind": phenomenon})
    return rows


def mean_row(metric: str, values: np.ndarray, documents: Sequence[str] | None = None) -> ScoreRow:
    """Return the mean over sentences, with its 95 % interval if there are several. `documents` as in `group_means`."""
    mean = float(values.mean())
    n = len(values)
    row: ScoreRow = {"metric": metric, "value": mean, "n": n, "signature": SIGNATURES[metric]}
    if n > 1:
        # ddof=1: these sentences are a sample.
        margin = 1.96 * float(values.std(ddof=1)) / n**0.5
        row["low"] = mean - margin
        row["high"] = mean + margin
        row["groups"] = group_means(values, documents)
    return row
