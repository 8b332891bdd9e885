"""The layout of a batch: token ranges of sentences, EDUs and instances, from which all groupings follow.

An `AttentionLayout` computes groupings and indexes such as positions, as arrays on the host. A `DeviceLayout` contains
the ones that a model reads, as tensors on its device.

Shape letters: N packed target tokens, S packed source tokens, G sentences in the batch, B instances, E EDUs, T
positions, D width.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from docmt.discourse.dependencies import NO_HEAD, number_through
from docmt.models.attention.kernels import Kernel, KernelIndexes, indexes_for
from docmt.models.attention.patterns import (
    SIDES,
    AttentionUnits,
    Grouping,
    IndexKind,
    Side,
    Slot,
    find_pattern,
    first_before,
    part_names,
    positions_within,
    sum_instances,
)
from docmt.models.attention.varlen import VarlenIndexes
from docmt.models.settings import Context, ModelSettings, Positions
from docmt.ranges import expand_ranges, starts_of

IN_ORDER = ("group", "global")
"""Patterns whose keys are all packed rows in their order. Gathering them would copy all of them in every layer.

A compiled graph cannot choose per batch, so other patterns always gather their keys.
"""


@dataclass(frozen=True)
class BatchTrees:
    """Discourse trees of the instances in a batch, for RST attention.

    Attributes:
        edu_lengths_E: int64, source tokens per EDU. Boundary tokens belong to the first and last EDU of their sentence.
        edu_heads_E: int64, row of the EDU's parent in the batch, in the same instance. −1 for none.
        edu_counts_G: int64, EDUs per sentence, at least 1.
        sentence_heads_G: the same for the sentence tree.
        open_B: bool, instances whose units all see one another (dropped trees, or decoding without a tree).
    """

    edu_lengths_E: np.ndarray
    edu_heads_E: np.ndarray
    edu_counts_G: np.ndarray
    sentence_heads_G: np.ndarray
    open_B: np.ndarray

    @classmethod
    def of_instance(
        cls, *, edu_lengths: np.ndarray, edu_heads: np.ndarray, edu_counts: np.ndarray, sentence_heads: np.ndarray
    ) -> "BatchTrees":
        """Return a batch with one closed instance. Heads are rows in the instance."""
        arrays = (np.asarray(part, dtype=np.int64) for part in (edu_lengths, edu_heads, edu_counts, sentence_heads))
        return cls(*arrays, open_B=np.zeros(1, dtype=bool))

    @classmethod
    def of_open_instance(cls, src_lengths: np.ndarray) -> "BatchTrees":
        """Return a batch with one instance without trees, whose sentences have `src_lengths` source tokens."""
        lengths = np.asarray(src_lengths, dtype=np.int64)
        heads = np.full(len(lengths), NO_HEAD)
        return cls(lengths, heads, np.ones(len(lengths), dtype=np.int64), heads, np.ones(1, dtype=bool))

    @classmethod
    def join(cls, batches: Sequence["BatchTrees"]) -> "BatchTrees":
        return cls(
            np.concatenate([trees.edu_lengths_E for trees in batches]),
            number_through([trees.edu_heads_E for trees in batches]),
            np.concatenate([trees.edu_counts_G for trees in batches]),
            number_through([trees.sentence_heads_G for trees in batches]),
            np.concatenate([trees.open_B for trees in batches]),
        )

    @classmethod
    def join_known(
        cls, batches: Sequence["BatchTrees | None"], src_lengths: Sequence[np.ndarray]
    ) -> "BatchTrees | None":
        """Concatenate batches, with open instances in place of missing trees. None if all are missing.

        `src_lengths` are the source tokens per sentence.
        """
        if all(trees is None for trees in batches):
            return None
        pairs = zip(batches, src_lengths, strict=True)
        return cls.join([cls.of_open_instance(lengths) if trees is None else trees for trees, lengths in pairs])

    def without_tree_mask(self, open_B: np.ndarray) -> "BatchTrees":
        """Return the trees, also open where `open_B` is true."""
        return replace(self, open_B=self.open_B | open_B)

    def with_boundaries(self, n_tokens: tuple[int, int]) -> "BatchTrees":
        """Return the trees for sentences with another number of boundary tokens (before, after) than (1, 1)."""
        if n_tokens == (1, 1):
            return self
        lengths_E, ends_G = self.edu_lengths_E.copy(), np.cumsum(self.edu_counts_G)
        # The stored lengths contain one boundary token on each side, which belongs to the first and the last EDU.
        lengths_E[ends_G - self.edu_counts_G] += n_tokens[0] - 1
        lengths_E[ends_G - 1] += n_tokens[1] - 1
        return replace(self, edu_lengths_E=lengths_E)


AnyLayout = TypeVar("AnyLayout")


@dataclass
class Drafts(Generic[AnyLayout]):
    """Draft translations of all sentences: int64 inputs and labels, and a layout without context."""

    inputs_N: Tensor
    labels_N: Tensor
    layout: AnyLayout


class AttentionLayout:
    """Lengths in a batch, with groupings and indexes that are computed on demand.

    Attributes:
        src_lengths_G: int64, tokens per source sentence with boundary tokens, in packed order.
        tgt_lengths_G: int64, decoder inputs per target sentence. In a free stream, per instance.
        sentences_B: int64, source sentences per instance.
        settings: model settings.
        trees: discourse trees for RST attention. None leaves all instances open.
        documents_B: int64, source sentences per document for the context module. Default: `sentences_B`.
        context: whether a model with a context module reads instances as documents or as single sentences.
        drafts: drafts for a model that reads them. If None, the model makes drafts with the lengths of the target
            sentences.
        groupings: a cache that can also be filled in advance.
    """

    def __init__(
        self,
        src_lengths_G: ArrayLike,
        tgt_lengths_G: ArrayLike,
        sentences_B: ArrayLike,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        documents_B: np.ndarray | None = None,
        context: Context = "document",
        drafts: "Drafts[AttentionLayout] | None" = None,
    ) -> None:
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        self.settings, self.trees, self.drafts = settings, trees, drafts
        self.documents_B = self.sentences_B if documents_B is None else documents_B
        self.context: Context = context
        self.groupings: dict[tuple[Slot, str], Grouping] = {}

    @classmethod
    def of_source(
        cls,
        src_lengths_G: np.ndarray,
        sentences_B: np.ndarray,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        context: Context = "document",
    ) -> "AttentionLayout":
        """Return the layout for instances without a target yet: one token per target sentence."""
        n_targets = len(sentences_B) if settings.target_stream == "free" else len(src_lengths_G)
        lengths = src_lengths_G, np.ones(n_targets), sentences_B
        return AttentionLayout(*lengths, settings=settings, trees=trees, context=context)

    def _copy(self, **changes: Any) -> "AttentionLayout":
        """Return a copy with other attributes and empty caches."""
        layout = copy.copy(self)
        vars(layout).pop("rows_before", None)
        vars(layout).update(groupings={}, **changes)
        return layout

    def split_into_sentences(self) -> "AttentionLayout":
        """Return the same sentences as separate instances, without trees. Context modules still see their documents."""
        return self._copy(trees=None, sentences_B=np.ones_like(self.src_lengths_G))

    def without_tree_mask(self, open_B: np.ndarray) -> "AttentionLayout":
        """Return the layout with more instances open to RST attention, bool [B]."""
        trees = None
        if self.trees is not None:
            trees = self.trees.without_tree_mask(open_B)
        return self._copy(trees=trees)

    @property
    def n_sentences(self) -> int:
        """G, the number of source sentences in the batch."""
        return len(self.src_lengths_G)

    @property
    def padded_sizes(self) -> tuple[int, int, int]:
        """Number of instances, and maximum source tokens (at least 2) and sentences per instance."""
        longest = max(2, int(self.instance_lengths("src").max()))
        return len(self.sentences_B), longest, int(self.sentences_B.max())

    @property
    def reads_context(self) -> bool:
        """True if the model has a context module that reads this batch."""
        return self.settings.context is not None and self.context == "document"

    def sentence_lengths(self, side: Side) -> np.ndarray:
        """Return the items per sentence on a side, int64 [G]."""
        if side == "src":
            return self.src_lengths_G
        if side == "before":
            return self.rows_before[1]
        if side == "vectors":
            return np.ones_like(self.src_lengths_G)
        return self.tgt_lengths_G

    def instance_lengths(self, side: Side) -> np.ndarray:
        """Return the items per instance on a side, int64 [B]."""
        return sum_instances(self.sentence_lengths(side), self.sentences_B)

    def sentence_numbers(self) -> np.ndarray:
        """Return the number in its document of every source sentence, from 0, int64 [G]."""
        return positions_within(self.documents_B)

    def first_sentences(self, n_before: int) -> np.ndarray:
        """Return the sentence `n_before` sentences earlier, or the first in the document, int64 [G]."""
        return first_before(self.sentence_numbers(), n_before)

    @cached_property
    def rows_before(self) -> tuple[np.ndarray, np.ndarray]:
        """Source rows on the side `before`, and their number per sentence. int64."""
        starts_G = starts_of(self.src_lengths_G)
        firsts_G = starts_G[self.first_sentences(self.settings.n_before)]
        # Attention needs keys, so a sentence with nothing before it has its own first token. Context modules discard
        # the output there.
        lengths_G = np.maximum(starts_G - firsts_G, 1)
        return expand_ranges(firsts_G, lengths_G), lengths_G

    def resolve(self, pattern: str) -> str:
        """Return the pattern that applies to this batch: without trees, tree patterns become `global`."""
        if self.trees is None and find_pattern(pattern).needs_trees:
            return "global"
        return pattern

    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        """Return the grouping for a slot and a single pattern. Fusions have one grouping per part."""
        key = slot, self.resolve(pattern)
        if key not in self.groupings:
            part = find_pattern(key[1])
            self.groupings[key] = part.see(self._tree_units(slot) if part.needs_trees else self._sentence_units(slot))
        return self.groupings[key]

    def _sentence_units(self, slot: Slot) -> AttentionUnits:
        """Return the sentences between which a slot attends."""
        queries_G, keys_G = (self.sentence_lengths(side) for side in SIDES[slot])
        if slot == "drafted" and self.drafts is not None:
            keys_G = self.drafts.layout.tgt_lengths_G
        return AttentionUnits(
            queries_G,
            keys_G,
            self.sentences_B,
            self.documents_B,
            is_causal=slot == "decoder",
            window=self.settings.window_sentences,
            n_before=self.settings.n_before,
        )

    def _tree_units(self, slot: Slot) -> AttentionUnits:
        """Return EDUs in the encoder and sentences elsewhere, with their heads."""
        trees = self.trees
        assert trees is not None, "patterns that need trees are resolved to `global` without"
        if slot == "encoder":
            n_edus_B = np.add.reduceat(trees.edu_counts_G, starts_of(self.sentences_B))
            lengths_E = trees.edu_lengths_E
            return AttentionUnits(lengths_E, lengths_E, n_edus_B, parents_U=trees.edu_heads_E, open_B=trees.open_B)
        return replace(self._sentence_units(slot), parents_U=trees.sentence_heads_G, open_B=trees.open_B)

    def sentence_grouping(self, slot: Slot, pattern: str) -> Grouping:
        """Return a grouping with one row per target sentence instead of one row per target token."""
        return self._copy(tgt_lengths_G=np.ones_like(self.tgt_lengths_G)).grouping(slot, pattern)

    def index(self, side: Side, kind: IndexKind) -> np.ndarray:
        """Return an index for a side, int64. See `IndexKind`."""
        lengths_G = self.sentence_lengths(side)
        if kind == "in_batch":
            return np.repeat(np.arange(len(lengths_G)), lengths_G)
        if kind == "number":
            return np.repeat(self.sentence_numbers(), lengths_G)
        if kind == "row":
            return self.rows_before[0]
        if kind == "is_word":
            before, after = self.settings.n_src_boundaries
            positions = positions_within(lengths_G)
            is_word = (positions >= before) & (positions < np.repeat(lengths_G - after, lengths_G))
            return is_word.astype(np.int64)
        if kind == "padded_row":
            lengths_B = self.instance_lengths(side)
            return expand_ranges(np.arange(len(lengths_B)) * self.padded_sizes[1], lengths_B)
        return positions_within(self.instance_lengths(side) if kind == "instance" else lengths_G)

    def max_positions(self) -> int:
        """Return the highest position + 1 in all indexes that the model needs."""
        highest = 0
        for side, kind in self.index_kinds():
            if kind == "instance" or kind == "sentence":
                lengths = self.instance_lengths(side) if kind == "instance" else self.sentence_lengths(side)
                highest = max(highest, int(lengths.max(initial=0)))
        return highest

    def index_kinds(self) -> set[tuple[Side, IndexKind]]:
        """Return side and kind of all indexes that the model needs."""
        kinds: set[tuple[Side, IndexKind]] = {(side, self.settings.positions) for side in ("src", "tgt")}
        if self.settings.form.learned_sentences is not None:
            kinds.add(("src", "number"))
        context = self.settings.context
        if context is not None and self.reads_context:
            kinds |= {("src", context.positions), *context.traits.indexes}
        return kinds

    def attention_parts(self) -> list[tuple[Slot, str]]:
        """Return slot and pattern of all attentions that the model computes."""
        context = None
        if self.reads_context:
            context = self.settings.context
        return [*(context.traits.attentions if context else ())] + [
            (slot, part)
            for slot, attention in self.settings.attentions.items()
            for pattern in attention.patterns()
            for part in part_names(pattern)
        ]


@dataclass
class DeviceLayout:
    """The part of a layout that a model reads: tensors on the model's device, and numbers.

    A model computes nothing more of its layout. `torch.compile` therefore makes one graph that serves batches of all
    shapes. Groupings have the pattern names in the settings, even where they are resolved to others.

    Attributes:
        n_positions: the highest position + 1, or more.
        default: default range for positions.
        table_TD: float32, at least as many position vectors as needed. None: the model computes them.
    """

    groupings: dict[tuple[Slot, str], KernelIndexes]
    indexes: dict[tuple[Side, IndexKind], Tensor]
    n_sentences: int
    padded_sizes: tuple[int, int, int]
    n_positions: int
    reads_context: bool
    default: Positions
    drafts: "Drafts[DeviceLayout] | None" = None
    table_TD: Tensor | None = None

    @classmethod
    def of(cls, layout: AttentionLayout, kernel: Kernel) -> "DeviceLayout":
        """Return the layout for an attention kernel (`kernels.kernel_for`), on the CPU."""
        groupings = {}
        for slot, pattern in dict.fromkeys(layout.attention_parts()):
            grouping = layout.grouping(slot, pattern)
            indexes = indexes_for(grouping, kernel)
            # A batch with shared prefixes has other keys.
            is_in_order = pattern in IN_ORDER and np.array_equal(grouping.key_rows, np.arange(len(grouping.key_rows)))
            if is_in_order and isinstance(indexes, VarlenIndexes):
                indexes = replace(indexes, key_rows_M=None)
            groupings[slot, pattern] = indexes
        drafts = None
        if layout.drafts is not None:
            tokens = layout.drafts.inputs_N, layout.drafts.labels_N
            drafts = Drafts(*tokens, cls.of(layout.drafts.layout, kernel))
        return cls(
            groupings,
            # In a fixed order: a graph asks for the keys of a dict in their order.
            {kind: torch.from_numpy(layout.index(*kind)) for kind in sorted(layout.index_kinds())},
            layout.n_sentences,
            layout.padded_sizes,
            layout.max_positions(),
            layout.reads_context,
            layout.settings.positions,
            drafts,
        )

    def grouping(self, slot: Slot, pattern: str) -> KernelIndexes:
        """Return the grouping for a slot and a single pattern."""
        return self.groupings[slot, pattern]

    def index(self, side: Side, kind: IndexKind) -> Tensor:
        """Return an index for a side, int64. See `IndexKind`."""
        return self.indexes[side, kind]

    def positions(self, side: Side, *, within: Positions | None = None) -> Tensor:
        """Return token positions in the instance or sentence, from 0, int64. None: as in the model settings."""
        return self.index(side, within or self.default)
