"""Attention patterns: functions from the lengths in a batch to a grouping, the keys that queries see.

Five terms explain all attention modules:

- A *side* holds packed items, sentence after sentence without padding, for example all target tokens in a batch.
- A *slot* is a place for attention in a model. It determines the side for queries and the side for keys.
- A *unit* is a sentence, or an EDU in a source tree. Its tokens see the same keys, except in causal attention.
- A *pattern* is a visibility rule between units. A *fusion* combines attentions with different patterns.
- A *grouping* is a pattern applied to a batch: query groups, and the keys that a group sees.

For example, in cross-attention with the pattern `group`, a target sentence sees the source sentence with the same
number. An instance has two sentences, with 2 and 1 target tokens (queries) and 3 and 2 source tokens (keys):

>>> units = AttentionUnits(query_lengths_U=np.array([2, 1]), key_lengths_U=np.array([3, 2]), units_B=np.array([2]))
>>> grouping = find_pattern("group").see(units)
>>> grouping.query_lengths_G, grouping.key_lengths_G, grouping.key_rows
(array([2, 1]), array([3, 2]), array([0, 1, 2, 3, 4]))
>>> grouping.dense_mask(n_keys=5).astype(int)
array([[1, 1, 1, 0, 0],
       [1, 1, 1, 0, 0],
       [0, 0, 0, 1, 1]])

With the pattern `global`, both sentences form one group. Queries then see all keys in their instance:

>>> find_pattern("global").see(units).query_lengths_G
array([3])

`layout.py` makes the units for the slots in a batch, `multi_head.py` has the modules with parameters, and `kernels.py`
turns a grouping into index tensors and computes attention with them. Settings read the rows in `PATTERNS`, so this
module must not import torch.

Shape letters: N packed queries, G groups, U units, B instances, P pairs of a group and a unit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from docmt.ranges import expand_ranges, starts_of

SLOTS = ("encoder", "decoder", "cross")
"""Slots in a model without context modules."""
Slot = Literal["encoder", "decoder", "cross", "context", "before", "src_before", "tgt_before", "near", "drafted"]
Side = Literal["src", "tgt", "vectors", "before"]
"""Source tokens, target tokens, one vector per sentence, or source tokens from the previous sentences of a sentence."""
SIDES: dict[Slot, tuple[Side, Side]] = {
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
    # Context modules.
    "context": ("src", "vectors"),
    "before": ("before", "before"),
    "src_before": ("src", "before"),
    "tgt_before": ("tgt", "before"),
    "near": ("tgt", "src"),  # CADec's second decoder, to this and previous source sentences
    "drafted": ("tgt", "tgt"),  # keys: all target tokens, then the tokens of the drafts
}
"""Sides for queries and keys by slot."""
IndexKind = Literal["instance", "sentence", "in_batch", "number", "row", "is_word", "padded_row"]
"""Integers per item on a side, for embeddings and context modules:

- `instance`, `sentence`: position in the instance or sentence
- `in_batch`, `number`: sentence number in the batch or document
- `row`: row on the side `src` (for the side `before`)
- `is_word`: 1 for words and 0 for boundary tokens
- `padded_row`: row in instances that are padded to the longest
"""
CacheKind = Literal["document", "range", "related"]
"""Guarantee for sentence-by-sentence decoding, see `Pattern`."""
MAX_SENTENCES = 20
"""Maximum sentence distance. Longer distances count as this one."""


@dataclass(frozen=True)
class Grouping:
    """Keys that query groups see. Queries are packed group after group, keys can be any packed rows.

    Attributes:
        query_lengths_G: int64 array, queries per group.
        key_lengths_G: int64 array, keys per group, at least 1.
        key_rows: int64 array [sum of key_lengths], packed key rows, group after group.
        is_causal: true if query j in a group with n queries and m keys sees only its first m − n + j + 1 keys.
        distances: int64 array like `key_rows`, key distances for attentions that read them, otherwise None.
        positions_N: int64 array, query positions in the instance. None if not needed.
    """

    query_lengths_G: np.ndarray
    key_lengths_G: np.ndarray
    key_rows: np.ndarray
    is_causal: bool
    distances: np.ndarray | None = None
    positions_N: np.ndarray | None = None

    @classmethod
    def of_ranges(
        cls,
        query_lengths_G: np.ndarray,
        key_starts_G: np.ndarray,
        key_lengths_G: np.ndarray,
        *,
        is_causal: bool = False,
    ) -> "Grouping":
        """Return groups with one contiguous key range per group."""
        key_rows = expand_ranges(key_starts_G, key_lengths_G)
        return cls(query_lengths_G, key_lengths_G, key_rows, is_causal)

    @classmethod
    def of_units(
        cls,
        groups_P: np.ndarray,
        units_P: np.ndarray,
        *,
        query_lengths_G: np.ndarray,
        key_lengths_U: np.ndarray,
        is_causal: bool = False,
    ) -> "Grouping":
        """Return groups whose keys are whole units in packed order.

        `groups_P` and `units_P` are pairs of a group and a unit that it sees, in any order. A group sees at least one
        unit. In causal attention, the last unit that a group sees must be its own.
        """
        n_units = len(key_lengths_U)
        # One number per pair: `unique` sorts the pairs by group, then unit, and drops pairs that are given twice.
        groups_P, units_P = np.divmod(np.unique(groups_P * n_units + units_P), n_units)
        key_starts_U = starts_of(key_lengths_U)
        lengths_P = key_lengths_U[units_P]
        return cls(
            query_lengths_G,
            # `reduceat` sums from each start to the next. A group starts where the group number changes.
            np.add.reduceat(lengths_P, np.flatnonzero(np.diff(groups_P, prepend=-1))),
            expand_ranges(key_starts_U[units_P], lengths_P),
            is_causal,
        )

    @property
    def n_queries(self) -> int:
        return int(self.query_lengths_G.sum())

    def dense_mask(self, n_keys: int) -> np.ndarray:
        """Return the mask that the papers use, bool [N, n_keys], true where a query sees a key."""
        mask = np.zeros((self.n_queries, n_keys), dtype=bool)
        first_query = first_key = 0
        for n, m in zip(self.query_lengths_G.tolist(), self.key_lengths_G.tolist(), strict=True):
            # The last query of a causal group sees all m keys: the triangle is aligned at its lower right corner.
            visible = True
            if self.is_causal:
                visible = np.tri(n, m, m - n, dtype=bool)
            mask[first_query : first_query + n, self.key_rows[first_key : first_key + m]] = visible
            first_query, first_key = first_query + n, first_key + m
        return mask


@dataclass(frozen=True)
class AttentionUnits:
    """Units in a batch between which an attention runs, in packed order.

    Attributes:
        query_lengths_U, key_lengths_U: int64, tokens per unit on the query and key side. In a target stream without
            sentences, tokens per instance.
        units_B: int64, units per instance.
        documents_B: int64, units per document. None if an instance is a document. Windows do not cross documents.
        is_causal: true if a query sees no later token on its side.
        window: previous sentences that the pattern `window` sees.
        n_before: previous sentences that a context module reads.
        parents_U: int64, row of the unit's parent in the tree, −1 for none. None without trees.
        open_B: bool, instances whose units all see one another. None without trees.
    """

    query_lengths_U: np.ndarray
    key_lengths_U: np.ndarray
    units_B: np.ndarray
    documents_B: np.ndarray | None = None
    is_causal: bool = False
    window: int = 0
    n_before: int = 0
    parents_U: np.ndarray | None = None
    open_B: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """Return unit numbers in the document, from 0, int64 [U]."""
        return positions_within(self.units_B if self.documents_B is None else self.documents_B)

    def query_lengths(self) -> np.ndarray:
        """Return queries per instance, int64 [B]."""
        return sum_instances(self.query_lengths_U, self.units_B)

    def key_lengths(self) -> np.ndarray:
        """Return keys per instance, int64 [B]."""
        return sum_instances(self.key_lengths_U, self.units_B)


def positions_within(lengths: np.ndarray) -> np.ndarray:
    """Return 0 … n − 1 for every length n, concatenated, int64."""
    return expand_ranges(np.zeros_like(lengths), lengths)


def sum_instances(lengths_U: np.ndarray, units_B: np.ndarray) -> np.ndarray:
    """Sum lengths over the units in an instance (at least one), int64 [B]. Lengths per instance stay as they are."""
    if len(lengths_U) == len(units_B):
        return lengths_U
    return np.add.reduceat(lengths_U, starts_of(units_B))


def first_before(numbers_U: np.ndarray, n_before: int) -> np.ndarray:
    """Return the unit `n_before` units earlier, or the first in the document, from unit numbers, int64 [U]."""
    return np.arange(len(numbers_U)) - np.minimum(n_before, numbers_U)


def see_window(units: AttentionUnits, *, n_before: int | None = None) -> Grouping:
    """A sentence sees itself and the `n_before` previous sentences in its document. Default: `units.window`."""
    lengths = units.key_lengths_U
    ends = lengths.cumsum()
    first_U = first_before(units.numbers(), units.window if n_before is None else n_before)
    # Sentences of an instance are neighbors, so a window is one range of keys, from its first sentence to the own one.
    starts = (ends - lengths)[first_U]
    return Grouping.of_ranges(units.query_lengths_U, starts, ends - starts, is_causal=units.is_causal)


def see_instance(units: AttentionUnits) -> Grouping:
    """An instance sees itself."""
    keys = units.key_lengths()
    return Grouping.of_ranges(units.query_lengths(), starts_of(keys), keys, is_causal=units.is_causal)


def see_related(units: AttentionUnits) -> Grouping:
    """A unit sees itself, its parent and its children in the tree (RST-Transformer, Eq. 6–7).

    In an open instance all units form one group, so that every unit sees all, as in global attention. In causal
    attention, a query sees only earlier related units and, in its own group, earlier tokens.
    """
    parents_U, units_B = units.parents_U, units.units_B
    assert parents_U is not None, "without trees the pattern is `global`"
    assert units.open_B is not None, "given with the trees"
    starts_group_U = np.repeat(~units.open_B, units_B)
    # The first unit of an instance (each has one) starts a group also where the instance is open.
    starts_group_U[starts_of(units_B)] = True
    children, indices = np.flatnonzero(parents_U >= 0), np.arange(len(parents_U))
    parents = parents_U[children]
    # Each unit sees itself, a child its parent, and a parent its children.
    queries, keys = np.concatenate((indices, children, parents)), np.concatenate((indices, parents, children))
    if units.is_causal:
        is_past = keys <= queries
        queries, keys = queries[is_past], keys[is_past]
    return Grouping.of_units(
        (np.cumsum(starts_group_U) - 1)[queries],
        keys,
        query_lengths_G=np.add.reduceat(units.query_lengths_U, np.flatnonzero(starts_group_U)),
        key_lengths_U=units.key_lengths_U,
        is_causal=units.is_causal,
    )


def see_segments(units: AttentionUnits) -> Grouping:
    """`see_window` with distance 0 for keys in the same sentence and 1 for all others."""
    grouping = see_window(units)
    return replace(grouping, distances=_sentences_back(units, grouping).clip(max=1))


def see_memory(units: AttentionUnits) -> Grouping:
    """A sentence sees itself and, at distance 1, the previous sentence. Positions count through the instance."""
    grouping = see_window(units, n_before=1)
    positions = positions_within(units.query_lengths())
    return replace(grouping, distances=_sentences_back(units, grouping), positions_N=positions)


def see_distances(units: AttentionUnits) -> Grouping:
    """A sentence sees its instance. Key distances are 20 + sentences back, clipped to 0 … 40."""
    keys = units.key_lengths()
    starts, lengths = (np.repeat(values, units.units_B) for values in (starts_of(keys), keys))
    grouping = Grouping.of_ranges(units.query_lengths_U, starts, lengths)
    back = _sentences_back(units, grouping)
    return replace(grouping, distances=back.clip(-MAX_SENTENCES, MAX_SENTENCES) + MAX_SENTENCES)


def see_each_before(units: AttentionUnits) -> Grouping:
    """J copies of the queries. Copy j sees the sentence j sentences earlier, or its own if there is none."""
    lengths = units.query_lengths_U
    starts, indices, numbers = starts_of(lengths), np.arange(len(lengths)), units.numbers()
    # Attention needs a key: where there is no such sentence, the own one is seen, and HAN masks it.
    seen = np.concatenate([np.where(numbers >= j, indices - j, indices) for j in range(1, units.n_before + 1)])
    return Grouping.of_ranges(np.tile(lengths, units.n_before), starts[seen], lengths[seen])


def see_sources(units: AttentionUnits) -> Grouping:
    """A target sentence sees its source and the previous source sentences, at distances in sentences."""
    grouping = see_window(units, n_before=units.n_before)
    return replace(grouping, distances=_sentences_back(units, grouping))


def see_drafts(units: AttentionUnits) -> Grouping:
    """A target sentence sees the previous target sentences, and its draft at distance 0.

    The drafts of all sentences follow the target tokens. `units.key_lengths_U` are draft lengths.
    """
    numbers = units.numbers()
    indices, first = np.arange(len(numbers)), first_before(numbers, units.n_before)
    lengths = np.concatenate((units.query_lengths_U, units.key_lengths_U))
    grouping = Grouping.of_units(
        np.concatenate((np.repeat(indices, indices - first), indices)),
        np.concatenate((expand_ranges(first, indices - first), indices + len(indices))),
        query_lengths_G=units.query_lengths_U,
        key_lengths_U=lengths,
    )
    # Keys are in the target sentences, then in their drafts. Both belong to sentences 0 … U − 1.
    of_keys = np.repeat(np.tile(indices, 2), lengths)[grouping.key_rows]
    return replace(grouping, distances=np.repeat(indices, grouping.key_lengths_G) - of_keys)


def _sentences_back(units: AttentionUnits, grouping: Grouping) -> np.ndarray:
    """Return key distances in sentences from the group's sentence, int64 like `key_rows`."""
    sentences = np.arange(len(grouping.key_lengths_G))
    of_keys = np.repeat(sentences, units.key_lengths_U)
    return np.repeat(sentences, grouping.key_lengths_G) - of_keys[grouping.key_rows]


@dataclass(frozen=True)
class Pattern:
    """A visibility rule, with facts for settings and decoding.

    Attributes:
        see: makes the grouping. The keys of a target token may depend only on its sentence.
        cache: guarantee for sentence-by-sentence decoding. `document`: every sentence sees its whole instance. `range`:
            its own and a fixed number of previous sentences. `related`: any earlier sentences.
        needs_trees: true if units have parents, and are EDUs in the encoder. Without trees, such a pattern sees the
            whole instance.
        slots: attentions that can have the pattern. Empty for context modules.
    """

    see: Callable[[AttentionUnits], Grouping]
    cache: CacheKind = "related"
    needs_trees: bool = False
    slots: tuple[str, ...] = SLOTS


@dataclass(frozen=True)
class Fusion:
    """Several attentions in one place, with these patterns, in the order in which they run.

    `FUSIONS` in `multi_head.py` has the class that combines their outputs.
    """

    parts: tuple[str, ...]
    has_gate: bool = True  # whether a gate joins their outputs, as `FusedAttention.has_gate`


PATTERNS: dict[str, Pattern | Fusion] = {
    # G-Transformer, Eq. 6–7.
    "group": Pattern(partial(see_window, n_before=0), cache="range"),
    # Concatenation, the usual baseline: sentences with the sentences before.
    "window": Pattern(see_window, cache="range"),
    # G-Transformer, Eq. 4.
    "global": Pattern(see_instance, cache="document"),
    # RST-Transformer, Eq. 6–7.
    "rst": Pattern(see_related, needs_trees=True),
    # Baselines: Flat-Transformer, Hybrid Context (encoder and decoder), long-short term masking.
    "segments": Pattern(see_segments, slots=("encoder",)),
    "distances": Pattern(see_distances, slots=("encoder",)),
    "memory": Pattern(see_memory, cache="range", slots=("decoder",)),
    "long_short": Fusion(("group", "global"), has_gate=False),
    # G-Transformer, Eq. 10.
    "combined": Fusion(("group", "global")),
    # RST-Transformer, Eq. 8–10.
    "rst_serial": Fusion(("group", "rst"), has_gate=False),
    # RST-Transformer, Eq. 11–13.
    "rst_parallel": Fusion(("group", "rst")),
    # RST-Transformer, Eq. 12–13 on the outputs of Eq. 8 and 10.
    "rst_mix": Fusion(("group", "rst")),
    # Context module of HAN.
    "each_before": Pattern(see_each_before, slots=()),
    # Context module of CADec.
    "near": Pattern(see_sources, slots=()),
    "drafts": Pattern(see_drafts, slots=()),
}
"""All patterns and fusions. `DISTANCES` in `multi_head.py` and `ENCODER_LAYERS` in `layers.py` list the patterns that
need parameters or layers of their own. docs/models.md shows how to add a pattern.
"""

NO_GATE = (
    "init_new_parameters 'zero': several attentions in one layer have no gate, so the model cannot start like its "
    "`init` model: use an architecture with gates"
)


def part_names(name: str) -> tuple[str, ...]:
    """Return the patterns in a fusion. For a pattern, return its own name."""
    pattern = PATTERNS[name]
    if isinstance(pattern, Fusion):
        return pattern.parts
    return (name,)


def can_start_from(name: str, initial_name: str) -> bool:
    """True if an attention can copy the weights of an attention with another pattern or fusion.

    The parts of `long_short` share the heads, which can only come from an attention with one pattern.
    """
    return initial_name != "long_short" and (name != "long_short" or len(part_names(initial_name)) == 1)


def pattern_slots(name: str) -> list[str]:
    """Return the attentions that can have a pattern or fusion."""
    return [slot for slot in SLOTS if all(slot in find_pattern(part).slots for part in part_names(name))]


def find_pattern(name: str) -> Pattern:
    """Return a pattern by name. Raises ValueError for a fusion, because it has parts instead of a grouping."""
    pattern = PATTERNS[name]
    if isinstance(pattern, Fusion):
        raise ValueError(f"{name} is a fusion of {' and '.join(pattern.parts)}: use one of these")
    return pattern
