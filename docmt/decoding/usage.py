"""How much a model uses context: conditional cross-mutual information (CXMI, Fernandes et al. 2021).

CXMI is the mean over sentences of log p(reference | its instance) − log p(reference | its sentence alone), both by the
same model. It is 0 for a model without context. One that never saw single sentences may find these harder for that
reason alone: compare systems with the same training data.
"""

from collections.abc import Sequence

import numpy as np

from docmt.decoding.contrast import Candidate, TargetScorer
from docmt.decoding.translation import place_source
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError


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
