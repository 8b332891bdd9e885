"""Log probabilities of given translations, for contrastive test sets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from docmt.batching import fill_batches
from docmt.corpora.contrastive import ContrastiveItem
from docmt.decoding.drafting import TwoPassSearch
from docmt.decoding.prepared import PreparedTransformer
from docmt.decoding.settings import SMOOTHING, ContrastScore, DecodingSettings
from docmt.decoding.sharing import SharedLayout, Sharing, n_shared_inputs
from docmt.decoding.streams import TargetSymbols
from docmt.decoding.translation import Translator, cut_trees, place_source, prepare_model, prepare_search
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.trees import PlacedTrees
from docmt.logs import Meter
from docmt.models.batch import Batch, pack
from docmt.models.layout import Layout
from docmt.models.model_file import TrainedModel
from docmt.models.transformer import Transformer
from docmt.models.trees import BatchTrees
from docmt.text.vocabulary import EOS

CPU_BATCH_TOKENS = 2048
"""Larger batches gain nothing on a CPU, and leave its caches (docs/experiments/performance.md)."""


@dataclass(frozen=True)
class Candidate:
    """A source document with a given translation.

    Attributes:
        src, tgt: sentences.
        trees: of the source over its subwords, for models that read them.
        siblings: the translations of the same item, itself included: all are cut into instances alike.
    """

    src: Sequence[str]
    tgt: Sequence[str]
    trees: PlacedTrees | None = None
    siblings: Sequence[Sequence[str]] = ()


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
    """Scores given target documents with teacher forcing, on the device `cpu` or `cuda`, by one of the rules.

    Drafts, for models that read them, are those of a search with the settings, once for each source.
    """

    def __init__(
        self,
        trained: TrainedModel,
        settings: DecodingSettings,
        *,
        device: str = "cpu",
        rule: ContrastScore = "log_probability",
    ) -> None:
        self.trained, self.settings, self.device, self.rule = trained, settings, device, rule
        self.model = prepare_model(trained.model, settings, device)
        self.encode = cache(trained.encode)
        self._drafter: PreparedTransformer | None = None
        if trained.model.settings.drafts and settings.context == "document":
            self._drafter = prepare_search(trained.model, settings, device)
        self._drafted: dict[tuple[bytes, ...], list[np.ndarray]] = {}
        limit = settings.max_batch_tokens
        self._budget = min(limit, CPU_BATCH_TOKENS) if device == "cpu" else limit

    def score(self, candidates: Sequence[Candidate]) -> list[float]:
        """Log probability in nats of each candidate, or what the rule makes of it."""
        pairs = [pair for number, candidate in enumerate(candidates) for pair in self._split(number, candidate)]
        families = sorted(self._families(pairs), key=lambda family: -family.pairs[0].n_tokens)
        totals, n_labels = np.zeros((2, len(candidates)))
        smoothing = SMOOTHING if self.rule == "label_smoothed" else 0.0
        batches = list(fill_batches(families, self._budget, cost=lambda family: family.n_tokens))
        with Meter(sum(len(pair.src) for pair in pairs), label="score", unit="sentences") as meter:
            for batch in batches:
                members = [pair for family in batch for pair in family.pairs]
                packed, numbers = self._pack(members), [pair.candidate for pair in members]
                sums = instance_log_probabilities(self.model, packed, _sharing(batch), smoothing=smoothing)
                np.add.at(totals, numbers, sums)
                np.add.at(n_labels, numbers, np.diff(_last_labels(packed), prepend=0))
                meter.add(sum(len(pair.src) for pair in members))
        return (totals / n_labels if self.rule == "per_token" else totals).tolist()

    def score_sentences(self, candidates: Sequence[Candidate], *, alone: bool = False) -> list[np.ndarray]:
        """Log probability in nats of the words and `</s>` of each sentence; float64 [sentences] for each candidate.

        Args:
            candidates: the documents.
            alone: each sentence is an instance by itself, instead of part of an instance as the model knows them.
        """
        pairs = [pair for number, one in enumerate(candidates) for pair in self._split(number, one, alone=alone)]
        order = sorted(range(len(pairs)), key=lambda number: -pairs[number].n_tokens)
        found = [np.zeros(0)] * len(pairs)
        with Meter(sum(len(pair.src) for pair in pairs), label="score", unit="sentences") as meter:
            for batch in fill_batches(order, self._budget, cost=lambda number: pairs[number].n_tokens):
                members = [pairs[number] for number in batch]
                sums = sentence_log_probabilities(self.model, self._pack(members))
                counts = [len(pair.src) for pair in members]
                for number, part in zip(batch, np.split(sums, np.cumsum(counts)[:-1]), strict=True):
                    found[number] = part
                meter.add(sum(counts))
        parts: list[list[np.ndarray]] = [[] for _ in candidates]
        for pair, part in zip(pairs, found, strict=True):
            parts[pair.candidate].append(part)
        return [np.concatenate(own) for own in parts]

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

    def _split(self, number: int, candidate: Candidate, *, alone: bool = False) -> Iterator[Pair]:
        """The instances of a candidate, split by the rule that the model was trained with, or into sentences."""
        src = [self.encode(sentence, "src") for sentence in candidate.src]
        tgt = [self.encode(sentence, "tgt") for sentence in candidate.tgt]
        siblings = ([self.encode(sentence, "tgt") for sentence in sibling] for sibling in candidate.siblings)
        costs = [max(map(len, sentences)) for sentences in zip(src, tgt, *siblings, strict=True)]
        marks, start = self.trained.model.settings.src_marks, 0
        for count in [1] * len(costs) if alone else self.trained.split(costs):
            end = start + count
            trees = None if candidate.trees is None else cut_trees(candidate.trees, start, end, marks)
            yield Pair(number, src[start:end], tgt[start:end], trees)
            start = end

    def _pack(self, pairs: Sequence[Pair]) -> Batch:
        drafts = None
        if self._drafter is not None:
            self._draft(self._drafter, pairs)
            drafts = _pack_sentences(pairs, [self._drafted[pair.source] for pair in pairs])
        return pack(
            _pack_sentences(pairs, [pair.tgt for pair in pairs]),
            drafts=drafts,
            trees=BatchTrees.join_known(
                [pair.trees for pair in pairs],
                [np.array([len(sentence) for sentence in pair.src]) for pair in pairs],
            ),
            settings=self.model.settings,
            context=self.settings.context,
        ).to(self.device)

    def _draft(self, model: PreparedTransformer, pairs: Sequence[Pair]) -> None:
        """Draft the sources that have no drafts yet, all sentences side by side."""
        sources = {pair.source: pair.src for pair in pairs if pair.source not in self._drafted}
        if not sources:
            return
        sentences = [sentence for src in sources.values() for sentence in src]
        counts = np.array([len(src) for src in sources.values()])
        layout = Layout.of_source(np.array(list(map(len, sentences))), counts, settings=model.settings)
        symbols = TargetSymbols.of(self.trained.marks, self.trained.vocabulary)
        found = TwoPassSearch(model, np.concatenate(sentences), layout, self.settings, symbols).draft()
        drafts = iter(self.trained.marks.wrap(hypothesis.sentences[0], "tgt") for hypothesis in found)
        self._drafted |= {source: list(islice(drafts, len(src))) for source, src in sources.items()}


def _pack_sentences(pairs: Sequence[Pair], translations: Sequence[list[np.ndarray]]) -> PackedSentences:
    src = [sentence for pair in pairs for sentence in pair.src]
    tgt = [sentence for sentences in translations for sentence in sentences]
    return PackedSentences.of(src, tgt, np.array([len(pair.src) for pair in pairs]))


def _sharing(families: Sequence[Siblings]) -> Sharing:
    sizes = np.array([len(family.pairs) for family in families])
    shared = [n for family in families for n in family.shared]
    return Sharing(np.repeat(np.cumsum(sizes) - sizes, sizes), np.array(shared, dtype=np.int64))


@torch.inference_mode()
def instance_log_probabilities(
    model: Transformer, batch: Batch, sharing: Sharing | None = None, *, smoothing: float = 0.0
) -> np.ndarray:
    """Log probability in nats of all labels of each instance; float64 [instances].

    With `sharing`, what instances have in common is computed once, unless the model reads drafts. With `smoothing`, a
    label's log probability is mixed with the mean over the vocabulary in this proportion, as in the training loss.
    """
    layout = batch.layout
    if sharing is None or (model.settings.drafts and layout.reads_context):
        logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, layout)).float()
        losses = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none", label_smoothing=smoothing)
    else:
        shared = SharedLayout(layout, sharing)
        states = model(shared.keep(batch.src_tokens_S, "src"), shared.keep(batch.tgt_inputs_N, "tgt"), shared)
        scores = model.logits(states).float().log_softmax(-1)
        places = shared.places("tgt", scores.device)
        losses = -scores[places, batch.tgt_labels_N]
        if smoothing:
            losses = (1 - smoothing) * losses - smoothing * scores.mean(-1)[places]
    sums = np.concatenate(([0.0], np.cumsum(losses.double().cpu().numpy())))
    return -np.diff(sums[np.concatenate(([0], _last_labels(batch)))])


def _last_labels(batch: Batch) -> np.ndarray:
    """How many labels there are up to the end of each instance; int64 [instances]."""
    layout = batch.layout
    return np.cumsum(layout.tgt_lengths_G)[np.cumsum(layout.tgt_sentences_B) - 1]


@torch.inference_mode()
def sentence_log_probabilities(model: Transformer, batch: Batch) -> np.ndarray:
    """Log probability in nats of the words and `</s>` of each sentence; float64 [sentences].

    Other labels, which free streams have, do not count: a sentence alone has others than one in a document.
    """
    logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)).float()
    losses_N = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none").double() * batch.is_word_or_end()
    sums_N = losses_N.cpu().numpy().cumsum()
    return -np.diff(sums_N[(batch.tgt_labels_N == EOS).cpu().numpy()], prepend=0)


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
        flat += [Candidate(item.src, candidate, placed, item.candidates) for candidate in item.candidates]
    scores = iter(scorer.score(flat))
    return [{"id": item.id, "scores": [next(scores) for _ in item.candidates]} for item in items]


def with_own_context(
    items: Sequence[ContrastiveItem], translator: Translator, trees: Sequence[DiscourseDocument] | None = None
) -> list[ContrastiveItem]:
    """The items with the system's translation in place of the target sentences before those that differ.

    Where sentences correspond by construction, whole documents are translated, with their trees; otherwise only what
    comes before, so that no candidate follows a translation of itself.
    """
    if translator.is_aligned:
        found = translator.translate_documents([item.src for item in items], trees)
    else:
        found = translator.translate_documents([item.src[: item.sentence] for item in items])
    return [
        replace(
            item,
            candidates=tuple((*own[: item.sentence], *candidate[item.sentence :]) for candidate in item.candidates),
        )
        for item, own in zip(items, found, strict=True)
    ]
