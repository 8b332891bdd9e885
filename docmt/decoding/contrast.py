"""Log probabilities of given translations, for contrastive test sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from docmt.batching import fill_batches
from docmt.corpora.contrastive import ContrastiveItem
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import cut_trees, place_source, prepare_model
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.trees import PlacedTrees
from docmt.logs import progress
from docmt.models.batch import Batch, pack
from docmt.models.model_file import TrainedModel
from docmt.models.transformer import Transformer
from docmt.models.trees import BatchTrees


@dataclass(frozen=True)
class Candidate:
    """A source document with a given translation and, for models that read them, its trees over the subwords."""

    src: Sequence[str]
    tgt: Sequence[str]
    trees: PlacedTrees | None = None


@dataclass(frozen=True)
class Pair:
    """An instance with a given target: token ids of aligned sentences with marks, and the candidate it belongs to."""

    candidate: int
    src: list[np.ndarray]
    tgt: list[np.ndarray]
    trees: BatchTrees | None = None

    @property
    def n_tokens(self) -> int:
        """Tokens of the longer side, as batches count them."""
        return max(sum(map(len, self.src)), sum(map(len, self.tgt)))


class TargetScorer:
    """Scores given target documents with teacher forcing, on the device `cpu` or `cuda`."""

    def __init__(self, trained: TrainedModel, settings: DecodingSettings, *, device: str = "cpu") -> None:
        self.trained, self.settings, self.device = trained, settings, device
        self.model = prepare_model(trained.model, settings, device)
        self.encode = cache(trained.encode)

    def score(self, candidates: Sequence[Candidate]) -> list[float]:
        """Log probability in nats of each candidate."""
        pairs = [pair for number, candidate in enumerate(candidates) for pair in self._split(number, candidate)]
        totals = np.zeros(len(candidates))
        batches = list(fill_batches(pairs, self.settings.max_batch_tokens, cost=lambda pair: pair.n_tokens))
        for batch in progress(batches, label="score", unit="batches"):
            sums = instance_log_probabilities(self.model, self._pack(batch))
            np.add.at(totals, [pair.candidate for pair in batch], sums)
        return totals.tolist()

    def _split(self, number: int, candidate: Candidate) -> Iterator[Pair]:
        """The instances of a candidate, split by the rule that the model was trained with."""
        src = [self.encode(sentence, "src") for sentence in candidate.src]
        tgt = [self.encode(sentence, "tgt") for sentence in candidate.tgt]
        costs = [max(len(a), len(b)) for a, b in zip(src, tgt, strict=True)]
        start = 0
        for count in self.trained.split(costs):
            end = start + count
            trees = None if candidate.trees is None else cut_trees(candidate.trees, start, end)
            yield Pair(number, src[start:end], tgt[start:end], trees)
            start = end

    def _pack(self, pairs: Sequence[Pair]) -> Batch:
        src = [sentence for pair in pairs for sentence in pair.src]
        tgt = [sentence for pair in pairs for sentence in pair.tgt]
        sentences = PackedSentences(
            np.concatenate(src),
            np.array([len(sentence) for sentence in src]),
            np.concatenate(tgt),
            np.array([len(sentence) for sentence in tgt]),
            np.array([len(pair.src) for pair in pairs]),
        )
        return pack(
            sentences,
            trees=BatchTrees.join_known(
                [pair.trees for pair in pairs],
                [np.array([len(sentence) for sentence in pair.src]) for pair in pairs],
            ),
            settings=self.model.settings,
            context=self.settings.context,
        ).to(self.device)


@torch.inference_mode()
def instance_log_probabilities(model: Transformer, batch: Batch) -> np.ndarray:
    """Log probability in nats of all labels of each instance; float64 [instances]."""
    logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)).float()
    losses = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none").double().cpu().numpy()
    layout = batch.layout
    ends = np.cumsum(layout.tgt_lengths_G)[np.cumsum(layout.tgt_sentences_B) - 1]
    return -np.diff(np.concatenate(([0.0], np.cumsum(losses)))[np.concatenate(([0], ends))])


def score_suite(
    items: Sequence[ContrastiveItem], scorer: TargetScorer, trees: Sequence[DiscourseDocument] | None = None
) -> list[dict[str, Any]]:
    """`{"id", "scores"}` of each item: the log probabilities of its candidates.

    The trees are those of the source documents, one per item and in their order; None scores without trees. Raises
    UserError when they belong to other items.
    """
    if trees is not None and [document.id for document in trees] != [item.id for item in items]:
        raise UserError("the trees do not match the items of the test set in order: parse the test set again")
    flat = []
    for number, item in enumerate(items):
        placed = None if trees is None else place_source(trees[number], item.src, scorer.trained)
        flat += [Candidate(item.src, candidate, placed) for candidate in item.candidates]
    scores = iter(scorer.score(flat))
    return [{"id": item.id, "scores": [next(scores) for _ in item.candidates]} for item in items]
