"""What the built-in attention patterns let each query see: one function per pattern, from a layout to a grouping."""

from dataclasses import replace

import numpy as np

from docmt.instances.storage import expand_ranges
from docmt.models.distances import MAX_SENTENCES
from docmt.models.grouping import Grouping
from docmt.models.layout import SIDES, Layout, Slot
from docmt.models.trees import related_grouping, unit_groups


def see_sentence(layout: Layout, slot: Slot) -> Grouping:
    """A sentence sees the same sentence, of the other side in cross-attention."""
    return see_window(layout, slot, n_before=0)


def see_window(layout: Layout, slot: Slot, *, n_before: int | None = None) -> Grouping:
    """A sentence sees itself and the sentences before it in its instance, as many as the settings say."""
    query_side, key_side = SIDES[slot]
    lengths = layout.sentence_lengths(key_side)
    ends = lengths.cumsum()
    first_G = layout.first_sentences(layout.settings.window_sentences if n_before is None else n_before)
    starts = (ends - lengths)[first_G]
    return Grouping.of_ranges(layout.sentence_lengths(query_side), starts, ends - starts, is_causal=slot == "decoder")


def see_instance(layout: Layout, slot: Slot) -> Grouping:
    """An instance sees itself."""
    query_side, key_side = SIDES[slot]
    keys = layout.instance_lengths(key_side)
    return Grouping.of_ranges(
        layout.instance_lengths(query_side),
        keys.cumsum() - keys,
        keys,
        is_causal=slot == "decoder",
    )


def see_related(layout: Layout, slot: Slot) -> Grouping:
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


def see_segments(layout: Layout, slot: Slot) -> Grouping:
    """As `see_window`, and which keys are of the sentence (0) and which of those before it (1)."""
    grouping = see_window(layout, slot)
    return replace(grouping, distances=sentences_back(layout, slot, grouping).clip(max=1))


def see_memory(layout: Layout, slot: Slot) -> Grouping:
    """A sentence sees itself and, at distance 1, the one before; positions run through the instance."""
    grouping = see_window(layout, slot, n_before=1)
    lengths = layout.instance_lengths(SIDES[slot][0])
    positions = expand_ranges(np.zeros_like(lengths), lengths)
    return replace(grouping, distances=sentences_back(layout, slot, grouping), positions_N=positions)


def see_distances(layout: Layout, slot: Slot) -> Grouping:
    """A sentence sees its instance, and how many sentences back each key is, from −20, counted as 0, to 20 (as 40)."""
    query_side, key_side = SIDES[slot]
    keys = layout.instance_lengths(key_side)
    starts, lengths = (np.repeat(values, layout.sentences_B) for values in (keys.cumsum() - keys, keys))
    grouping = Grouping.of_ranges(layout.sentence_lengths(query_side), starts, lengths)
    back = sentences_back(layout, slot, grouping)
    return replace(grouping, distances=back.clip(-MAX_SENTENCES, MAX_SENTENCES) + MAX_SENTENCES)


def sentences_back(layout: Layout, slot: Slot, grouping: Grouping) -> np.ndarray:
    """How many sentences each key is before that of its group, which is a sentence; int64 like `key_rows`."""
    sentences = np.arange(len(grouping.key_lengths_G))
    of_keys = np.repeat(sentences, layout.sentence_lengths(SIDES[slot][1]))
    return np.repeat(sentences, grouping.key_lengths_G) - of_keys[grouping.key_rows]
