"""Which keys each query sees: a function for each pattern, from the lengths of a batch to a grouping.

Shape letters: G sentences of the batch, B instances, U units.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from docmt.instances.storage import expand_ranges
from docmt.models.attention.batch_trees import BatchTrees
from docmt.models.attention.distances import MAX_SENTENCES
from docmt.models.attention.grouping import Grouping
from docmt.models.attention.patterns import SIDES, Side, Slot
from docmt.models.settings import ModelSettings


class PackedLengths:
    """Lengths of the packed sentences of a batch, from which the patterns derive groupings.

    (No dataclass: in mixed precision, Fabric would take one apart and convert its fields in every call of a model.)

    Attributes:
        src_lengths_G: int64, tokens of each source sentence (marks included), in packed order.
        tgt_lengths_G: int64, decoder inputs of each target sentence; in a free stream one length per instance.
        sentences_B: int64, source sentences of each instance.
        settings: of the model.
        trees: discourse trees, for RST attention; None leaves every instance open, so that it sees all.
        documents_B: int64, source sentences of each document for its context module; by default `sentences_B`.
    """

    def __init__(
        self,
        src_lengths_G: Any,
        tgt_lengths_G: Any,
        sentences_B: Any,
        *,
        settings: ModelSettings,
        trees: BatchTrees | None = None,
        documents_B: np.ndarray | None = None,
    ) -> None:
        self.src_lengths_G = np.asarray(src_lengths_G, dtype=np.int64)
        self.tgt_lengths_G = np.asarray(tgt_lengths_G, dtype=np.int64)
        self.sentences_B = np.asarray(sentences_B, dtype=np.int64)
        self.settings, self.trees = settings, trees
        self.documents_B = self.sentences_B if documents_B is None else documents_B

    @property
    def n_sentences(self) -> int:
        """G, source sentences of the batch."""
        return len(self.src_lengths_G)

    def draft_lengths(self) -> np.ndarray:
        """Tokens of the draft of each target sentence, for a model that drafts; int64 [G]."""
        return self.tgt_lengths_G

    @property
    def padded_sizes(self) -> tuple[int, int, int]:
        """Instances, source tokens of the longest (2 or more), and sentences of the one with the most."""
        longest = max(2, int(self.instance_lengths("src").max()))
        return len(self.sentences_B), longest, int(self.sentences_B.max())

    def sentence_lengths(self, side: Side) -> np.ndarray:
        """Items of each sentence of a side; int64 [G]."""
        if side == "src":
            return self.src_lengths_G
        if side == "before":
            return self.rows_before[1]
        return np.ones_like(self.src_lengths_G) if side == "vectors" else self.tgt_lengths_G

    def instance_lengths(self, side: Side) -> np.ndarray:
        """Items of each instance of a side; int64 [B]."""
        if side == "tgt" and self.settings.target_stream == "free":
            return self.tgt_lengths_G
        return np.add.reduceat(self.sentence_lengths(side), np.cumsum(self.sentences_B) - self.sentences_B)

    def first_sentences(self, n_before: int) -> np.ndarray:
        """The sentence `n_before` sentences before each one, never before its document; int64 [G]."""
        own_G = np.arange(len(self.src_lengths_G))
        return own_G - np.minimum(n_before, self.sentence_numbers())

    def sentence_numbers(self) -> np.ndarray:
        """The number of each source sentence in its document, from 0; int64 [G]."""
        return positions_within(self.documents_B)

    @cached_property
    def rows_before(self) -> tuple[np.ndarray, np.ndarray]:
        """The source rows of the side `before`, and the number of them that each sentence has; int64."""
        starts_G = self.src_lengths_G.cumsum() - self.src_lengths_G
        firsts_G = starts_G[self.first_sentences(self.settings.n_before)]
        # Attention needs keys, so a sentence with nothing before it has its own first token. Context modules discard
        # the output there.
        lengths_G = np.maximum(starts_G - firsts_G, 1)
        return expand_ranges(firsts_G, lengths_G), lengths_G


def positions_within(lengths: np.ndarray) -> np.ndarray:
    """0 … n − 1 for each length n, one after another; int64."""
    return expand_ranges(np.zeros_like(lengths), lengths)


def see_sentence(layout: PackedLengths, slot: Slot) -> Grouping:
    """A sentence sees the same sentence, of the other side in cross-attention."""
    return see_window(layout, slot, n_before=0)


def see_window(layout: PackedLengths, slot: Slot, *, n_before: int | None = None) -> Grouping:
    """A sentence sees itself and `n_before` sentences before it in its instance; None means `window_sentences`."""
    query_side, key_side = SIDES[slot]
    lengths = layout.sentence_lengths(key_side)
    ends = lengths.cumsum()
    first_G = layout.first_sentences(layout.settings.window_sentences if n_before is None else n_before)
    # Sentences of an instance are neighbors, so a window is one range of keys, from its first sentence to the own one.
    starts = (ends - lengths)[first_G]
    return Grouping.of_ranges(layout.sentence_lengths(query_side), starts, ends - starts, is_causal=slot == "decoder")


def see_instance(layout: PackedLengths, slot: Slot) -> Grouping:
    """An instance sees itself."""
    queries, keys = (layout.instance_lengths(side) for side in SIDES[slot])
    return Grouping.of_ranges(queries, keys.cumsum() - keys, keys, is_causal=slot == "decoder")


def see_related(layout: PackedLengths, slot: Slot) -> Grouping:
    """A unit sees itself, its parent and its children in the tree (RST-Transformer, Eq. 7).

    Units are EDUs in the encoder and sentences elsewhere. In an open instance all units form one group, so that each
    sees all: that is global attention. In the decoder, a query sees only earlier related units, and of its own group
    only earlier tokens.
    """
    trees, is_causal = layout.trees, slot == "decoder"
    assert trees is not None, "patterns that need trees are resolved to `global` without"
    if slot == "encoder":
        heads_U, units_B = trees.edu_heads_E, trees.n_edus(layout.sentences_B)
        query_lengths_U = key_lengths_U = trees.edu_lengths_E
    else:
        heads_U, units_B = trees.sentence_heads_G, layout.sentences_B
        query_lengths_U, key_lengths_U = (layout.sentence_lengths(side) for side in SIDES[slot])
    starts_group_U = np.repeat(~trees.open_B, units_B)
    # The first unit of an instance (each has one) starts a group also where the instance is open.
    starts_group_U[np.cumsum(units_B) - units_B] = True
    children, own = np.flatnonzero(heads_U >= 0), np.arange(len(heads_U))
    parents = heads_U[children]
    # Each unit sees itself, a child its parent, and a parent its children.
    queries, keys = np.concatenate((own, children, parents)), np.concatenate((own, parents, children))
    if is_causal:
        is_past = keys <= queries
        queries, keys = queries[is_past], keys[is_past]
    return Grouping.of_units(
        (np.cumsum(starts_group_U) - 1)[queries],
        keys,
        query_lengths_G=np.add.reduceat(query_lengths_U, np.flatnonzero(starts_group_U)),
        key_lengths_U=key_lengths_U,
        is_causal=is_causal,
    )


def see_segments(layout: PackedLengths, slot: Slot) -> Grouping:
    """`see_window` with distance 0 to keys of the same sentence and 1 to all others."""
    grouping = see_window(layout, slot)
    return replace(grouping, distances=_sentences_back(layout, slot, grouping).clip(max=1))


def see_memory(layout: PackedLengths, slot: Slot) -> Grouping:
    """A sentence sees itself and, at distance 1, the one before; positions run through the instance."""
    grouping = see_window(layout, slot, n_before=1)
    positions = positions_within(layout.instance_lengths(SIDES[slot][0]))
    return replace(grouping, distances=_sentences_back(layout, slot, grouping), positions_N=positions)


def see_distances(layout: PackedLengths, slot: Slot) -> Grouping:
    """A sentence sees its instance; distances to keys are 20 + sentences back, cut to 0 … 40."""
    query_side, key_side = SIDES[slot]
    keys = layout.instance_lengths(key_side)
    starts, lengths = (np.repeat(values, layout.sentences_B) for values in (keys.cumsum() - keys, keys))
    grouping = Grouping.of_ranges(layout.sentence_lengths(query_side), starts, lengths)
    back = _sentences_back(layout, slot, grouping)
    return replace(grouping, distances=back.clip(-MAX_SENTENCES, MAX_SENTENCES) + MAX_SENTENCES)


def see_each_before(layout: PackedLengths, slot: Slot) -> Grouping:
    """For HAN: J copies of the queries; copy j sees the sentence j before its own, or its own if there is none."""
    lengths = layout.sentence_lengths(SIDES[slot][0])
    starts, own = lengths.cumsum() - lengths, np.arange(len(lengths))
    numbers = layout.sentence_numbers()
    # Attention needs a key: where there is no such sentence, the own one is seen, and HAN masks it.
    seen = np.concatenate([np.where(numbers >= j, own - j, own) for j in range(1, layout.settings.n_before + 1)])
    return Grouping.of_ranges(np.tile(lengths, layout.settings.n_before), starts[seen], lengths[seen])


def see_sources(layout: PackedLengths, slot: Slot) -> Grouping:
    """For CADec: a target sentence sees its source and the sources before, at distances in sentences."""
    grouping = see_window(layout, slot, n_before=layout.settings.n_before)
    return replace(grouping, distances=_sentences_back(layout, slot, grouping))


def see_drafts(layout: PackedLengths, slot: Slot) -> Grouping:
    """For CADec: a target sentence sees the target sentences before it, and its draft at distance 0.

    The drafts of all sentences follow the target tokens.
    """
    own_G, lengths_G = np.arange(layout.n_sentences), layout.tgt_lengths_G
    lengths_U = np.concatenate((lengths_G, layout.draft_lengths()))
    first_G = layout.first_sentences(layout.settings.n_before)
    grouping = Grouping.of_units(
        np.concatenate((np.repeat(own_G, own_G - first_G), own_G)),
        np.concatenate((expand_ranges(first_G, own_G - first_G), own_G + len(own_G))),
        query_lengths_G=lengths_G,
        key_lengths_U=lengths_U,
    )
    # Key units are the target sentences, then their drafts; both belong to sentences 0 … G − 1.
    of_keys = np.repeat(np.tile(own_G, 2), lengths_U)[grouping.key_rows]
    return replace(grouping, distances=np.repeat(own_G, grouping.key_lengths_G) - of_keys)


def _sentences_back(layout: PackedLengths, slot: Slot, grouping: Grouping) -> np.ndarray:
    """Distance of each key from its group, which is a sentence, in sentences; int64 like `key_rows`."""
    sentences = np.arange(len(grouping.key_lengths_G))
    of_keys = np.repeat(sentences, layout.sentence_lengths(SIDES[slot][1]))
    return np.repeat(sentences, grouping.key_lengths_G) - of_keys[grouping.key_rows]


GROUPINGS: dict[str, Callable[[PackedLengths, Slot], Grouping]] = {
    "group": see_sentence,
    "window": see_window,
    "global": see_instance,
    "rst": see_related,
    "segments": see_segments,
    "distances": see_distances,
    "memory": see_memory,
    "each_before": see_each_before,
    "near": see_sources,
    "drafts": see_drafts,
}
"""The function of each pattern."""
