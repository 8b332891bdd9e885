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
from docmt.decoding.sharing import SharedLayout, Sharing, n_shared_inputs
from docmt.decoding.translation import cut_trees, place_source, prepare_model
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.trees import PlacedTrees
from docmt.logs import Meter
from docmt.models.batch import Batch, pack
from docmt.models.model_file import TrainedModel
from docmt.models.transformer import Transformer
from docmt.models.trees import BatchTrees

CPU_BATCH_TOKENS = 2048
"""Larger batches gain nothing on a CPU, and leave its caches (docs/experiments/performance.md)."""


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

    @property
    def source(self) -> tuple[bytes, ...]:
        """Equal for pairs whose sources are equal, trees included."""
        trees = [] if self.trees is None else vars(self.trees).values()
        return tuple(array.tobytes() for array in [*self.src, *trees])


@dataclass(frozen=True)
class Siblings:
    """Pairs of equal sources, and how many decoder inputs each shares with the first one."""

    pairs: list[Pair]
    shared: list[int]

    @property
    def n_tokens(self) -> int:
        """Tokens that are computed: those of the first pair, and of the others what they do not share."""
        tails = (sum(map(len, pair.tgt)) - n for pair, n in zip(self.pairs[1:], self.shared[1:], strict=True))
        return self.pairs[0].n_tokens + sum(tails)


class TargetScorer:
    """Scores given target documents with teacher forcing, on the device `cpu` or `cuda`."""

    def __init__(self, trained: TrainedModel, settings: DecodingSettings, *, device: str = "cpu") -> None:
        self.trained, self.settings, self.device = trained, settings, device
        self.model = prepare_model(trained.model, settings, device)
        self.encode = cache(trained.encode)
        limit = settings.max_batch_tokens
        self._budget = min(limit, CPU_BATCH_TOKENS) if device == "cpu" else limit

    def score(self, candidates: Sequence[Candidate]) -> list[float]:
        """Log probability in nats of each candidate."""
        pairs = [pair for number, candidate in enumerate(candidates) for pair in self._split(number, candidate)]
        families = sorted(self._families(pairs), key=lambda family: -family.pairs[0].n_tokens)
        totals = np.zeros(len(candidates))
        batches = list(fill_batches(families, self._budget, cost=lambda family: family.n_tokens))
        with Meter(sum(len(pair.src) for pair in pairs), label="score", unit="sentences") as meter:
            for batch in batches:
                members = [pair for family in batch for pair in family.pairs]
                sums = instance_log_probabilities(self.model, self._pack(members), _sharing(batch))
                np.add.at(totals, [pair.candidate for pair in members], sums)
                meter.add(sum(len(pair.src) for pair in members))
        return totals.tolist()

    def _families(self, pairs: Sequence[Pair]) -> Iterator[Siblings]:
        """The pairs by source, as many together as a batch takes."""
        is_free = self.model.settings.target_stream == "free"
        by_source: dict[tuple[bytes, ...], list[Pair]] = {}
        for pair in pairs:
            by_source.setdefault(pair.source, []).append(pair)
        for members in by_source.values():
            for part in fill_batches(members, self._budget, cost=lambda pair: pair.n_tokens):
                shared = [n_shared_inputs(part[0].tgt, pair.tgt, is_free=is_free) for pair in part[1:]]
                yield Siblings(part, [0, *shared])

    def _split(self, number: int, candidate: Candidate) -> Iterator[Pair]:
        """The instances of a candidate, split by the rule that the model was trained with."""
        src = [self.encode(sentence, "src") for sentence in candidate.src]
        tgt = [self.encode(sentence, "tgt") for sentence in candidate.tgt]
        costs = [max(len(a), len(b)) for a, b in zip(src, tgt, strict=True)]
        marks, start = self.trained.model.settings.src_marks, 0
        for count in self.trained.split(costs):
            end = start + count
            trees = None if candidate.trees is None else cut_trees(candidate.trees, start, end, marks)
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


def _sharing(families: Sequence[Siblings]) -> Sharing:
    sizes = np.array([len(family.pairs) for family in families])
    shared = [n for family in families for n in family.shared]
    return Sharing(np.repeat(np.cumsum(sizes) - sizes, sizes), np.array(shared, dtype=np.int64))


@torch.inference_mode()
def instance_log_probabilities(model: Transformer, batch: Batch, sharing: Sharing | None = None) -> np.ndarray:
    """Log probability in nats of all labels of each instance; float64 [instances].

    With `sharing`, what instances have in common is computed once.
    """
    layout = batch.layout
    if sharing is None:
        logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, layout)).float()
        losses = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none")
    else:
        shared = SharedLayout(layout, sharing)
        states = model(shared.keep(batch.src_tokens_S, "src"), shared.keep(batch.tgt_inputs_N, "tgt"), shared)
        scores = model.logits(states).float().log_softmax(-1)
        losses = -scores[shared.places("tgt", scores.device), batch.tgt_labels_N]
    ends = np.cumsum(layout.tgt_lengths_G)[np.cumsum(layout.tgt_sentences_B) - 1]
    sums = np.concatenate(([0.0], np.cumsum(losses.double().cpu().numpy())))
    return -np.diff(sums[np.concatenate(([0], ends))])


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
