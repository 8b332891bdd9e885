"""Log probabilities of candidate translations, for contrastive test sets.

Documents are cut into instances as in training. Instances with the same source share a batch, so that the encoder and
common target prefixes are computed once (see `prefix_sharing.py`).

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances in a batch.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.batching import fill_batches
from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.decoding_model import DecodingModel, prepare_model, prepare_search
from docmt.decoding.prefix_sharing import PrefixSharing, SharedLayout, n_shared_inputs
from docmt.decoding.settings import SMOOTHING, ContrastScore, DecodingSettings
from docmt.decoding.target_streams import TargetSymbols
from docmt.decoding.translation import Translator, slice_trees, subword_trees
from docmt.decoding.two_pass_search import TwoPassSearch
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.trees import SubwordTrees
from docmt.logs import Meter
from docmt.models.attention.layout import AttentionLayout, BatchTrees
from docmt.models.batch import Batch, pack
from docmt.models.model_file import TrainedModel
from docmt.models.systems.transformer import Transformer
from docmt.ranges import starts_of
from docmt.text.vocabulary import EOS

log = logging.getLogger(__name__)

# Larger batches gain nothing on a CPU, and leave its caches.
CPU_BATCH_TOKENS = 2048


@dataclass(frozen=True)
class Candidate:
    """A source document with a candidate translation, and its source trees over subwords, for models that read them.

    `siblings` are all candidates for the same item, cut into instances in the same way. A prefix is incomplete: the
    `</s>` of its last sentence does not count.
    """

    src: Sequence[str]
    tgt: Sequence[str]
    trees: SubwordTrees | None = None
    siblings: Sequence[Sequence[str]] = ()
    is_prefix: bool = False


@dataclass(frozen=True)
class ScoredInstance:
    """An instance with a fixed target: token ids of aligned sentences with boundary tokens, and a candidate number."""

    candidate: int
    src: list[np.ndarray]
    tgt: list[np.ndarray]
    trees: BatchTrees | None = None
    is_prefix: bool = False

    @property
    def n_tokens(self) -> int:
        """Tokens on the longer side: its size in a batch."""
        return max(sum(map(len, self.src)), sum(map(len, self.tgt)))

    @property
    def source(self) -> tuple[bytes, ...]:
        """Hashable key for the source, trees included."""
        arrays = list(self.src)
        if self.trees is not None:
            arrays += vars(self.trees).values()
        return tuple(array.tobytes() for array in arrays)


@dataclass(frozen=True)
class SourceFamily:
    """Instances with the same source, and the number of decoder inputs that they share with the first instance."""

    members: list[ScoredInstance]
    shared: list[int]

    @property
    def n_tokens(self) -> int:
        """Computed tokens: the first instance, and the part after the shared prefix in every other target."""
        n_tokens = self.members[0].n_tokens
        for member, n_shared in zip(self.members[1:], self.shared[1:], strict=True):
            n_tokens += sum(map(len, member.tgt)) - n_shared
        return n_tokens


class TargetScorer:
    """Scores fixed target documents with teacher forcing, on the device `cpu` or `cuda`, by one of the rules.

    A model that reads drafts gets them from a search with the settings, once per source.
    """

    def __init__(
        self,
        trained: TrainedModel,
        settings: DecodingSettings,
        *,
        device: str = "cpu",
        rule: ContrastScore = "log_probability",
    ) -> None:
        self.trained = trained
        self.settings = settings
        self.rule = rule
        self.model = prepare_model(trained.model, settings, device)
        self.encode = cache(trained.encode)
        self._drafter: DecodingModel | None = None
        if trained.model.settings.drafts and settings.context == "document":
            self._drafter = prepare_search(trained.model, settings, device)
        self._drafted: dict[tuple[bytes, ...], list[np.ndarray]] = {}
        self._budget = settings.max_batch_tokens
        if device == "cpu":
            self._budget = min(self._budget, CPU_BATCH_TOKENS)

    def score(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return a score per candidate by the rule, by default its log probability in nats."""
        instances = self._instances(candidates)
        # The longest first: if a batch needs too much memory, this shows at once and not after hours.
        families = sorted(self._families(instances), key=lambda family: -family.members[0].n_tokens)
        totals, n_labels = np.zeros((2, len(candidates)))
        smoothing = SMOOTHING if self.rule == "label_smoothed" else 0.0
        # What ends a translation that breaks off: `</s>`, and `<eod>` in free streams.
        n_ends = 2 if self.model.settings.target_stream == "free" else 1
        batches = list(fill_batches(families, self._budget, cost=lambda family: family.n_tokens))
        with Meter(sum(len(instance.src) for instance in instances), label="score", unit="sentences") as meter:
            for batch in batches:
                members: list[ScoredInstance] = []
                leaders: list[int] = []
                shared: list[int] = []
                for family in batch:
                    # The families are packed one after another, and the first instance of each leads the others.
                    leaders += [len(members)] * len(family.members)
                    members += family.members
                    shared += family.shared
                packed = self._pack(members)
                is_prefix = np.array([instance.is_prefix for instance in members])
                n_counted = packed.layout.instance_lengths("tgt") - n_ends * is_prefix
                sharing = PrefixSharing(np.array(leaders), np.array(shared))
                sums = instance_log_probabilities(self.model, packed, sharing, smoothing=smoothing, n_counted=n_counted)
                # `np.add.at`, because a candidate can have several instances in a batch: `+=` would count one of them.
                numbers = [instance.candidate for instance in members]
                np.add.at(totals, numbers, sums)
                np.add.at(n_labels, numbers, n_counted)
                meter.add(sum(len(instance.src) for instance in members))
        if self.rule == "per_token":
            # A candidate that breaks off before its first word has no labels.
            totals /= np.maximum(n_labels, 1)
        return totals.tolist()

    def score_sentences(self, candidates: Sequence[Candidate], *, alone: bool = False) -> list[np.ndarray]:
        """Return log probabilities in nats of words and `</s>` per sentence, float64 [sentences] per candidate.

        With `alone`, every sentence is a separate instance without context.
        """
        if self.settings.context == "joined":
            raise UserError("decoding.context: joined sentences have no `</s>`, so CXMI is not defined: remove the key")
        instances = self._instances(candidates, alone=alone)
        order = sorted(range(len(instances)), key=lambda number: -instances[number].n_tokens)
        scores = [np.zeros(0)] * len(instances)
        with Meter(sum(len(instance.src) for instance in instances), label="score", unit="sentences") as meter:
            for batch in fill_batches(order, self._budget, cost=lambda number: instances[number].n_tokens):
                members = [instances[number] for number in batch]
                breaks_off: list[bool] = []
                for instance in members:
                    breaks_off += [False] * (len(instance.src) - 1) + [instance.is_prefix]
                sums = sentence_log_probabilities(self.model, self._pack(members), breaks_off)
                counts = [len(instance.src) for instance in members]
                for number, part in zip(batch, np.split(sums, np.cumsum(counts)[:-1]), strict=True):
                    scores[number] = part
                meter.add(sum(counts))
        parts: list[list[np.ndarray]] = [[] for _ in candidates]
        for instance, part in zip(instances, scores, strict=True):
            parts[instance.candidate].append(part)
        return [np.concatenate(arrays) for arrays in parts]

    def _instances(self, candidates: Sequence[Candidate], *, alone: bool = False) -> list[ScoredInstance]:
        instances: list[ScoredInstance] = []
        for number, candidate in enumerate(candidates):
            instances += self._split(number, candidate, alone=alone)
        return instances

    def _families(self, instances: Sequence[ScoredInstance]) -> Iterator[SourceFamily]:
        """Yield the instances by source. Families larger than a batch are divided."""
        is_free = self.model.settings.target_stream == "free"
        by_source: dict[tuple[bytes, ...], list[ScoredInstance]] = {}
        for instance in instances:
            by_source.setdefault(instance.source, []).append(instance)
        for members in by_source.values():
            for part in fill_batches(members, self._budget, cost=lambda instance: instance.n_tokens):
                shared = [n_shared_inputs(part[0].tgt, other.tgt, is_free=is_free) for other in part[1:]]
                yield SourceFamily(part, [0, *shared])

    def _split(self, number: int, candidate: Candidate, *, alone: bool = False) -> Iterator[ScoredInstance]:
        """Yield a candidate's instances, split by the limits that the model was trained with, or into sentences."""
        src = [self.encode(sentence, "src") for sentence in candidate.src]
        tgt = [self.encode(sentence, "tgt") for sentence in candidate.tgt]
        # All candidates of an item are cut at the same sentences, so that each is scored with the same context.
        sides = [src, tgt]
        for sibling in candidate.siblings:
            sides.append([self.encode(sentence, "tgt") for sentence in sibling])
        costs = [max(map(len, sentences)) for sentences in zip(*sides, strict=True)]
        n_boundaries = self.trained.model.settings.n_src_boundaries
        context = self.settings.context
        counts = [1] * len(costs)
        if not alone:
            counts = self.trained.split(costs, context=context)
        start = 0
        for count in counts:
            end = start + count
            trees = None
            if candidate.trees is not None:
                trees = slice_trees(candidate.trees, start, end, n_boundaries)
            pair = src[start:end], tgt[start:end]
            if context == "joined":
                pair = [self.trained.marks.join(pair[0], "src")], [self.trained.marks.join(pair[1], "tgt")]
            yield ScoredInstance(number, *pair, trees, candidate.is_prefix and end == len(costs))
            start = end

    def _pack(self, instances: Sequence[ScoredInstance]) -> Batch:
        src: list[np.ndarray] = []
        tgt: list[np.ndarray] = []
        lengths = []
        for instance in instances:
            src += instance.src
            tgt += instance.tgt
            lengths.append(np.array(list(map(len, instance.src))))
        counts_B = np.array(list(map(len, lengths)))
        drafts = None
        if self._drafter is not None:
            self._draft(self._drafter, instances)
            drafted = chain.from_iterable(self._drafted[instance.source] for instance in instances)
            drafts = PackedSentences.of(src, list(drafted), counts_B)
        return pack(
            PackedSentences.of(src, tgt, counts_B),
            drafts=drafts,
            trees=BatchTrees.join_known([instance.trees for instance in instances], lengths),
            settings=self.model.settings,
            context=self.settings.context,
        )

    def _draft(self, model: DecodingModel, instances: Sequence[ScoredInstance]) -> None:
        """Draft the sources that have no drafts yet, all sentences side by side."""
        sources = {}
        for instance in instances:
            source = instance.source
            if source not in self._drafted:
                sources[source] = instance.src
        if not sources:
            return
        sentences = list(chain.from_iterable(sources.values()))
        lengths_G = np.array(list(map(len, sentences)))
        counts_B = np.array(list(map(len, sources.values())))
        layout = AttentionLayout.of_source(lengths_G, counts_B, settings=model.settings)
        symbols = TargetSymbols.of(self.trained.marks, self.trained.vocabulary)
        hypotheses = TwoPassSearch(model, np.concatenate(sentences), layout, self.settings, symbols).draft()
        drafts = iter(self.trained.marks.wrap(hypothesis.sentences[0], "tgt") for hypothesis in hypotheses)
        for source, src in sources.items():
            self._drafted[source] = list(islice(drafts, len(src)))


@torch.inference_mode()
def instance_log_probabilities(
    model: Transformer,
    batch: Batch,
    sharing: PrefixSharing | None = None,
    *,
    smoothing: float = 0.0,
    n_counted: np.ndarray | None = None,
) -> np.ndarray:
    """Return the log probability in nats of all labels per instance, or of the first `n_counted`, float64 [instances].

    With `sharing`, common prefixes are computed once, unless the model reads drafts. With `smoothing`, a label's log
    probability is mixed with the mean over the vocabulary in this proportion, as in the training loss.
    """
    layout, device = batch.layout, model.embedding.weight.device
    labels_N = batch.tgt_labels_N.to(device)
    if sharing is None or (model.settings.drafts and layout.reads_context):
        losses = F.cross_entropy(_logits(model, batch), labels_N, reduction="none", label_smoothing=smoothing)
    else:
        shared = SharedLayout(layout, sharing)
        # Only the states are shared, and the vocabulary's log probabilities. Labels differ even after equal inputs.
        src_tokens_S, tgt_inputs_N = shared.keep(batch.src_tokens_S, "src"), shared.keep(batch.tgt_inputs_N, "tgt")
        states = model(src_tokens_S.to(device), tgt_inputs_N.to(device), model.place(shared))
        scores = model.logits(states).float().log_softmax(-1)
        computed_rows = shared.computed_rows("tgt", device)
        losses = -scores[computed_rows, labels_N]
        if smoothing:
            losses = (1 - smoothing) * losses - smoothing * scores.mean(-1)[computed_rows]
    # Instances have different lengths: their sums are differences of one running sum. In float64, because it grows
    # over the whole batch and differences of large float32 numbers would lose digits.
    sums = np.concatenate(([0.0], np.cumsum(losses.double().cpu().numpy())))
    lengths = layout.instance_lengths("tgt")
    starts = starts_of(lengths)
    if n_counted is None:
        n_counted = lengths
    return sums[starts] - sums[starts + n_counted]


@torch.inference_mode()
def sentence_log_probabilities(model: Transformer, batch: Batch, breaks_off: Sequence[bool]) -> np.ndarray:
    """Return the log probability in nats of the words and `</s>` in every sentence, float64 [G].

    The `</s>` of an incomplete sentence does not count, nor do other labels in free streams, because a separate
    sentence has other such labels than a sentence in a document.
    """
    logits = _logits(model, batch)
    losses_N = F.cross_entropy(logits, batch.tgt_labels_N.to(logits.device), reduction="none").double().cpu().numpy()
    losses_N *= batch.is_word_or_end_N.numpy()
    # Each sentence has one `</s>` among its labels, its last one.
    ends_G = np.flatnonzero((batch.tgt_labels_N == EOS) & batch.is_word_or_end_N)
    losses_N[ends_G[np.array(breaks_off)]] = 0.0
    return -np.diff(losses_N.cumsum()[ends_G], prepend=0)


def _logits(model: Transformer, batch: Batch) -> Tensor:
    """Return the scores for all symbols, float32 [N, V]."""
    placed = batch.prepare(model.kernel()).to(model.embedding.weight.device)
    return model.logits(model(placed.src_tokens_S, placed.tgt_inputs_N, placed.layout)).float()


def score_suite(
    items: Sequence[ContrastiveItem], scorer: TargetScorer, trees: Sequence[DiscourseDocument] | None = None
) -> list[dict[str, Any]]:
    """Return `{"id", "scores"}` per item: the scores of its candidates.

    `trees` has one tree per source document, in item order. Without it, the segmenter and parser in the model file make
    the trees, if it has these.
    """
    aligned_trees = subword_trees(scorer.trained, [item.id for item in items], [item.src for item in items], trees)
    candidates = []
    n_undecidable = 0
    for item, aligned in zip(items, aligned_trees, strict=True):
        encoded = [[scorer.encode(sentence, "tgt").tolist() for sentence in tgt] for tgt in item.candidates]
        n_undecidable += encoded.count(encoded[item.correct]) > 1
        for tgt in item.candidates:
            candidates.append(Candidate(item.src, tgt, aligned, item.candidates, item.is_prefix))
    if n_undecidable:
        log.warning(
            "%d of %d items: another candidate has the same subwords as the correct one, perhaps since the model does "
            "not know their characters, so that no system can prefer the correct one",
            n_undecidable,
            len(items),
        )
    scores = iter(scorer.score(candidates))
    return [{"id": item.id, "scores": list(islice(scores, len(item.candidates)))} for item in items]


def with_own_context(
    items: Sequence[ContrastiveItem], translator: Translator, trees: Sequence[DiscourseDocument] | None = None
) -> list[ContrastiveItem]:
    """Return the items with the system's translation in place of the target sentences before the tested one.

    Where sentences correspond by construction, whole documents are translated, with their trees. Otherwise only the
    sentences before the tested one are translated, so that no candidate follows a translation of itself.
    """
    if translator.is_aligned:
        translations = translator.translate_documents([item.src for item in items], trees)
    else:
        translations = translator.translate_documents([item.src[: item.sentence] for item in items])
    changed = []
    for item, translation in zip(items, translations, strict=True):
        candidates = []
        for candidate in item.candidates:
            candidates.append((*translation[: item.sentence], *candidate[item.sentence :]))
        changed.append(replace(item, candidates=tuple(candidates)))
    return changed
