"""Log probabilities of candidate translations, for contrastive test sets.

Documents are cut into instances as in training. Instances with the same source share a batch, so that the encoder and
common target prefixes are computed once (`SharedLayout`). The visible context of a target token follows from its
sentence and the tokens before it, so equal prefixes have equal states.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances in a batch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.corpora.suite_items import ContrastiveItem
from docmt.decoding.beam_search import TargetSymbols
from docmt.decoding.decoding_model import DecodingModel, prepare_model, prepare_search
from docmt.decoding.settings import SMOOTHING, ContrastScore, DecodingSettings
from docmt.decoding.translation import Translator, align_trees, bundled_trees, slice_trees
from docmt.decoding.two_pass_search import TwoPassSearch
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.errors import UserError
from docmt.instances.packing import PackedSentences
from docmt.instances.trees import SubwordTrees
from docmt.logs import Meter
from docmt.models.attention.layout import AttentionLayout, BatchTrees
from docmt.models.attention.patterns import SIDES, Grouping, IndexKind, Side, Slot
from docmt.models.batch import Batch, pack
from docmt.models.model_file import TrainedModel
from docmt.models.systems.transformer import Transformer
from docmt.ranges import expand_ranges, starts_of
from docmt.text.vocabulary import EOS

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
        trees = [] if self.trees is None else vars(self.trees).values()
        return tuple(array.tobytes() for array in [*self.src, *trees])


@dataclass(frozen=True)
class SourceFamily:
    """Instances with the same source, and the number of decoder inputs that they share with the first instance."""

    members: list[ScoredInstance]
    shared: list[int]

    @property
    def n_tokens(self) -> int:
        """Computed tokens: the first instance, and the part after the shared prefix in every other target."""
        rests = (sum(map(len, other.tgt)) - n for other, n in zip(self.members[1:], self.shared[1:], strict=True))
        return self.members[0].n_tokens + sum(rests)


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
        self.trained, self.settings, self.device, self.rule = trained, settings, device, rule
        self.model = prepare_model(trained.model, settings, device)
        self.encode = cache(trained.encode)
        self._drafter: DecodingModel | None = None
        if trained.model.settings.drafts and settings.context == "document":
            self._drafter = prepare_search(trained.model, settings, device)
        self._drafted: dict[tuple[bytes, ...], list[np.ndarray]] = {}
        limit = settings.max_batch_tokens
        self._budget = min(limit, CPU_BATCH_TOKENS) if device == "cpu" else limit

    def score(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return a score per candidate by the rule, by default its log probability in nats."""
        instances = self._instances(candidates)
        # The longest first: if a batch needs too much memory, this shows at once and not after hours.
        families = sorted(self._families(instances), key=lambda family: -family.members[0].n_tokens)
        totals, n_labels = np.zeros((2, len(candidates)))
        smoothing = SMOOTHING if self.rule == "label_smoothed" else 0.0
        batches = list(fill_batches(families, self._budget, cost=lambda family: family.n_tokens))
        with Meter(sum(len(instance.src) for instance in instances), label="score", unit="sentences") as meter:
            for batch in batches:
                members = [instance for family in batch for instance in family.members]
                sizes = np.array([len(family.members) for family in batch])
                # The families are packed one after another, and the first instance of each leads the others.
                leaders = np.repeat(starts_of(sizes), sizes)
                shared = np.array([n for family in batch for n in family.shared], dtype=np.int64)
                packed, numbers = self._pack(members), [instance.candidate for instance in members]
                # What ends a translation that breaks off: `</s>`, and `<eod>` in free streams.
                n_ends = 2 if self.model.settings.target_stream == "free" else 1
                ends = [n_ends * instance.is_prefix for instance in members]
                n_counted = packed.layout.instance_lengths("tgt") - ends
                sums = instance_log_probabilities(
                    self.model, packed, PrefixSharing(leaders, shared), smoothing=smoothing, n_counted=n_counted
                )
                # `np.add.at`, because a candidate can have several instances in a batch: `+=` would count one of them.
                np.add.at(totals, numbers, sums)
                np.add.at(n_labels, numbers, n_counted)
                meter.add(sum(len(instance.src) for instance in members))
        # A candidate that breaks off before its first word has no labels.
        return (totals / np.maximum(n_labels, 1) if self.rule == "per_token" else totals).tolist()

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
                breaks_off = [
                    instance.is_prefix and number == len(instance.src)
                    for instance in members
                    for number in range(1, len(instance.src) + 1)
                ]
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
        splits = (self._split(number, candidate, alone=alone) for number, candidate in enumerate(candidates))
        return list(chain.from_iterable(splits))

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
        siblings = ([self.encode(sentence, "tgt") for sentence in sibling] for sibling in candidate.siblings)
        costs = [max(map(len, sentences)) for sentences in zip(src, tgt, *siblings, strict=True)]
        marks, start = self.trained.model.settings.n_src_boundaries, 0
        context = self.settings.context
        for count in [1] * len(costs) if alone else self.trained.split(costs, context=context):
            end = start + count
            trees = None if candidate.trees is None else slice_trees(candidate.trees, start, end, marks)
            pair = src[start:end], tgt[start:end]
            if context == "joined":
                pair = [self.trained.marks.join(pair[0], "src")], [self.trained.marks.join(pair[1], "tgt")]
            yield ScoredInstance(number, *pair, trees, candidate.is_prefix and end == len(costs))
            start = end

    def _pack(self, instances: Sequence[ScoredInstance]) -> Batch:
        def packed(translations: Sequence[list[np.ndarray]]) -> PackedSentences:
            src = [sentence for instance in instances for sentence in instance.src]
            tgt = [sentence for sentences in translations for sentence in sentences]
            return PackedSentences.of(src, tgt, np.array([len(instance.src) for instance in instances]))

        drafts = None
        if self._drafter is not None:
            self._draft(self._drafter, instances)
            drafts = packed([self._drafted[instance.source] for instance in instances])
        return pack(
            packed([instance.tgt for instance in instances]),
            drafts=drafts,
            trees=BatchTrees.join_known(
                [instance.trees for instance in instances],
                [np.array([len(sentence) for sentence in instance.src]) for instance in instances],
            ),
            settings=self.model.settings,
            context=self.settings.context,
        ).to(self.device)

    def _draft(self, model: DecodingModel, instances: Sequence[ScoredInstance]) -> None:
        """Draft the sources that have no drafts yet, all sentences side by side."""
        sources = {instance.source: instance.src for instance in instances if instance.source not in self._drafted}
        if not sources:
            return
        sentences = [sentence for src in sources.values() for sentence in src]
        counts = np.array([len(src) for src in sources.values()])
        layout = AttentionLayout.of_source(np.array(list(map(len, sentences))), counts, settings=model.settings)
        symbols = TargetSymbols.of(self.trained.marks, self.trained.vocabulary)
        hypotheses = TwoPassSearch(model, np.concatenate(sentences), layout, self.settings, symbols).draft()
        drafts = iter(self.trained.marks.wrap(hypothesis.sentences[0], "tgt") for hypothesis in hypotheses)
        self._drafted |= {source: list(islice(drafts, len(src))) for source, src in sources.items()}


@dataclass(frozen=True)
class PrefixSharing:
    """For instances in a batch, the first instance with the same source and trees, called the leader.

    `shared_B` are the numbers of first decoder inputs equal to the leader's. Leaders lead themselves and share 0.
    """

    leader_B: np.ndarray
    shared_B: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """The computed rows on a side, and for every row on it, the number of an equal computed row."""

    distinct: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, lengths_B: np.ndarray, sharing: PrefixSharing, shared_B: np.ndarray) -> "_Rows":
        """Return the rows for instances with these lengths, whose first `shared_B` rows equal the leader's."""
        starts_B = starts_of(lengths_B)
        equal_to = np.arange(int(lengths_B.sum()))
        equal_to[expand_ranges(starts_B, shared_B)] = expand_ranges(starts_B[sharing.leader_B], shared_B)
        rows = np.flatnonzero(equal_to == np.arange(len(equal_to)))
        return cls(rows, np.searchsorted(rows, equal_to))


class SharedLayout(AttentionLayout):
    """The layout of a batch in which a leader's rows replace the rows equal to them."""

    def __init__(self, layout: AttentionLayout, sharing: PrefixSharing) -> None:
        lengths = layout.src_lengths_G, layout.tgt_lengths_G, layout.sentences_B
        super().__init__(*lengths, settings=layout.settings, trees=layout.trees, context=layout.context)
        follows_B = sharing.leader_B != np.arange(len(sharing.leader_B))
        sides: tuple[Side, ...] = ("src", "tgt", "vectors", *(("before",) if layout.settings.n_before else ()))
        n_rows = {side: self.instance_lengths(side) for side in sides}
        self._rows = {
            side: _Rows.of(lengths_B, sharing, sharing.shared_B if side == "tgt" else lengths_B * follows_B)
            for side, lengths_B in n_rows.items()
        }
        self._shared_groupings: dict[tuple[Slot, str], Grouping] = {}

    def keep(self, rows: Tensor, side: Side) -> Tensor:
        """Return the rows on a side that are computed."""
        return rows[torch.from_numpy(self._rows[side].distinct).to(rows.device)]

    def places(self, side: Side, device: torch.device) -> Tensor:
        """Return, for every row on a side, the computed row equal to it, int64."""
        return torch.from_numpy(self._rows[side].places).to(device)

    @override
    def index(self, side: Side, kind: IndexKind, device: torch.device) -> Tensor:
        rows = self.keep(super().index(side, kind, device), side)
        # These two kinds are numbers of rows themselves, so they must point to computed rows.
        numbered: dict[IndexKind, Side] = {"row": "src", "in_batch": "vectors"}
        return self.places(numbered[kind], device)[rows] if kind in numbered else rows

    @property
    @override
    def n_sentences(self) -> int:
        return len(self._rows["vectors"].distinct)

    @override
    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        key = slot, self.resolve(pattern)
        if key not in self._shared_groupings:
            full = super().grouping(slot, pattern)
            queries, keys = (self._rows[side] for side in SIDES[slot])
            groups = np.repeat(np.arange(len(full.query_lengths_G)), full.query_lengths_G)
            # Queries can be repeated as a whole, one copy after another (`n_before` times). The kept queries of a group
            # are its last ones, as a causal kernel requires.
            groups = groups.reshape(-1, len(queries.places))[:, queries.distinct].ravel()
            lengths_G = np.bincount(groups, minlength=len(full.query_lengths_G))
            is_left = lengths_G > 0
            is_seen = np.repeat(is_left, full.key_lengths_G)
            self._shared_groupings[key] = Grouping(
                lengths_G[is_left],
                full.key_lengths_G[is_left],
                keys.places[full.key_rows[is_seen]],
                full.is_causal,
                distances=None if full.distances is None else full.distances[is_seen],
                positions_N=None if full.positions_N is None else full.positions_N[queries.distinct],
            )
        return self._shared_groupings[key]


def n_shared_inputs(first: list[np.ndarray], second: list[np.ndarray], *, is_free: bool) -> int:
    """Return the number of equal decoder inputs at the start of two targets. Sentences have boundary tokens."""
    one, other = np.concatenate(first), np.concatenate(second)
    n = min(len(one), len(other))
    differ = np.flatnonzero(one[:n] != other[:n])
    n_equal = int(differ[0]) if len(differ) else n
    ends = np.cumsum([len(sentence) for sentence in first])
    # In a free stream every token is an input, in an aligned one all except the last token of each sentence.
    return n_equal if is_free else n_equal - int(np.searchsorted(ends, n_equal, side="right"))


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
    layout = batch.layout
    if sharing is None or (model.settings.drafts and layout.reads_context):
        logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, layout)).float()
        losses = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none", label_smoothing=smoothing)
    else:
        shared = SharedLayout(layout, sharing)
        # Only the states are shared, and the vocabulary's log probabilities. Labels differ even after equal inputs.
        states = model(shared.keep(batch.src_tokens_S, "src"), shared.keep(batch.tgt_inputs_N, "tgt"), shared)
        scores = model.logits(states).float().log_softmax(-1)
        places = shared.places("tgt", scores.device)
        losses = -scores[places, batch.tgt_labels_N]
        if smoothing:
            losses = (1 - smoothing) * losses - smoothing * scores.mean(-1)[places]
    # Instances have different lengths: their sums are differences of one running sum. In float64, because it grows
    # over the whole batch and differences of large float32 numbers would lose digits.
    sums = np.concatenate(([0.0], np.cumsum(losses.double().cpu().numpy())))
    lengths = layout.instance_lengths("tgt")
    starts = starts_of(lengths)
    return sums[starts] - sums[starts + (lengths if n_counted is None else n_counted)]


@torch.inference_mode()
def sentence_log_probabilities(model: Transformer, batch: Batch, breaks_off: Sequence[bool]) -> np.ndarray:
    """Return the log probability in nats of the words and `</s>` in every sentence, float64 [G].

    The `</s>` of an incomplete sentence does not count, nor do other labels in free streams, because a separate
    sentence has other such labels than a sentence in a document.
    """
    logits = model.logits(model(batch.src_tokens_S, batch.tgt_inputs_N, batch.layout)).float()
    losses_N = F.cross_entropy(logits, batch.tgt_labels_N, reduction="none").double() * batch.is_word_or_end_N
    # Each sentence has one `</s>` among its labels, its last one.
    losses_N, ends_G = (
        losses_N.cpu().numpy(),
        np.flatnonzero(((batch.tgt_labels_N == EOS) & batch.is_word_or_end_N).cpu().numpy()),
    )
    losses_N[ends_G[np.array(breaks_off)]] = 0.0
    return -np.diff(losses_N.cumsum()[ends_G], prepend=0)


def score_suite(
    items: Sequence[ContrastiveItem], scorer: TargetScorer, trees: Sequence[DiscourseDocument] | None = None
) -> list[dict[str, Any]]:
    """Return `{"id", "scores"}` per item: the scores of its candidates.

    `trees` has one tree per source document, in item order. Without it, the segmenter and parser in the model file make
    the trees, if it has these.
    """
    if trees is None:
        trees = bundled_trees(scorer.trained, [item.id for item in items], [item.src for item in items])
    if trees is not None and [document.id for document in trees] != [item.id for item in items]:
        raise UserError("the trees do not match the items of the test set in this order: parse the test set again")
    flat = []
    for number, item in enumerate(items):
        aligned = None if trees is None else align_trees(trees[number], item.src, scorer.trained)
        flat += [Candidate(item.src, tgt, aligned, item.candidates, item.is_prefix) for tgt in item.candidates]
    scores = iter(scorer.score(flat))
    return [{"id": item.id, "scores": [next(scores) for _ in item.candidates]} for item in items]


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
        candidates = tuple(
            (*translation[: item.sentence], *candidate[item.sentence :]) for candidate in item.candidates
        )
        changed.append(replace(item, candidates=candidates))
    return changed
