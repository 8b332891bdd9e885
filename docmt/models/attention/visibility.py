"""Which keys each query sees: a function for each pattern, from the lengths of a batch to a grouping."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from docmt.instances.storage import expand_ranges
from docmt.models.attention.batch_trees import related_grouping, unit_groups
from docmt.models.attention.distances import MAX_SENTENCES
from docmt.models.attention.grouping import Grouping
from docmt.models.attention.lengths import PackedLengths
from docmt.models.attention.patterns import SIDES, Slot
from docmt.plugins import Registry


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
    """A unit sees itself, its parent and its children in the tree: EDUs in the encoder, sentences elsewhere."""
    trees = layout.trees
    assert trees is not None, "patterns that need trees are resolved to `global` without"
    if slot == "encoder":
        heads, units = trees.edu_heads_E, trees.n_edus(layout.sentences_B)
        queries = keys = trees.edu_lengths_E
    else:
        heads, units = trees.sentence_heads_G, layout.sentences_B
        queries, keys = (layout.sentence_lengths(side) for side in SIDES[slot])
    return related_grouping(
        heads,
        unit_groups(units, trees.open_B),
        query_lengths_U=queries,
        key_lengths_U=keys,
        is_causal=slot == "decoder",
    )


def see_segments(layout: PackedLengths, slot: Slot) -> Grouping:
    """As `see_window`, with distance 0 to keys of the same sentence and 1 to all others."""
    grouping = see_window(layout, slot)
    return replace(grouping, distances=_sentences_back(layout, slot, grouping).clip(max=1))


def see_memory(layout: PackedLengths, slot: Slot) -> Grouping:
    """A sentence sees itself and, at distance 1, the one before; positions run through the instance."""
    grouping = see_window(layout, slot, n_before=1)
    lengths = layout.instance_lengths(SIDES[slot][0])
    positions = expand_ranges(np.zeros_like(lengths), lengths)
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
"""The function of each pattern of docmt."""
ALL_GROUPINGS = Registry("docmt.groupings", "grouping of a pattern", Callable, GROUPINGS)
