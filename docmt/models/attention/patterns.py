"""Attention patterns: which keys each query sees, as functions from the lengths of a batch to a grouping.

Five terms explain all modules of attention:

- A *side* holds packed items, sentence after sentence without padding, such as all target tokens of a batch.
- A *slot* is a place of attention in a model. It says which side its queries and which side its keys come from.
- A *unit* is a sentence, or an EDU of a source tree. Its tokens see the same keys, except in causal attention.
- A *pattern* is a rule that says which units see which. A *fusion* of patterns joins several attentions.
- A *grouping* is a pattern applied to a batch: groups of queries, and the keys that each group sees.

For example, in cross-attention with the pattern `group`, a target sentence sees the source sentence of the same number.
An instance has two sentences, with 2 and 1 target tokens (queries) and 3 and 2 source tokens (keys):

>>> units = AttentionUnits(query_lengths_U=np.array([2, 1]), key_lengths_U=np.array([3, 2]), units_B=np.array([2]))
>>> grouping = find_part("group").see(units)
>>> grouping.query_lengths_G, grouping.key_lengths_G, grouping.key_rows
(array([2, 1]), array([3, 2]), array([0, 1, 2, 3, 4]))
>>> grouping.dense_mask(n_keys=5).astype(int)
array([[1, 1, 1, 0, 0],
       [1, 1, 1, 0, 0],
       [0, 0, 0, 1, 1]])

With the pattern `global`, both sentences are one group. Queries then see all keys of their instance:

>>> find_part("global").see(units).query_lengths_G
array([3])

`layout.py` makes the units of each slot of a batch, `multi_head.py` has the modules with parameters, and `kernels.py`
computes attention with a grouping. Settings read the rows of `PATTERNS`, so this module must not import torch.

Shape letters: N packed queries, G groups, U units, B instances, P pairs of a group and a unit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from docmt.instances.storage import expand_ranges

SLOTS = ("encoder", "decoder", "cross")
"""The slots of a model without context modules."""
Slot = Literal["encoder", "decoder", "cross", "context", "before", "src_before", "tgt_before", "near", "drafted"]
Side = Literal["src", "tgt", "vectors", "before"]
"""Source tokens, target tokens, one vector per sentence, or the source tokens of the sentences before each sentence."""
SIDES: dict[Slot, tuple[Side, Side]] = {
    "encoder": ("src", "src"),
    "decoder": ("tgt", "tgt"),
    "cross": ("tgt", "src"),
    # Context modules.
    "context": ("src", "vectors"),
    "before": ("before", "before"),
    "src_before": ("src", "before"),
    "tgt_before": ("tgt", "before"),
    "near": ("tgt", "src"),
    "drafted": ("tgt", "tgt"),  # behind the target tokens, its keys are the tokens of the drafts
}
"""The sides of queries and keys of each slot."""
Index = Literal["instance", "sentence", "in_batch", "number", "row", "is_word", "padded_row"]
"""An integer for each item of a side, which embeddings and context modules read:

- `instance`, `sentence`: its position in its instance or in its sentence
- `in_batch`, `number`: the number of its sentence in the batch or in the document
- `row`: its row on the side `src` (for the side `before`)
- `is_word`: 1 for words and 0 for marks
- `padded_row`: its row in instances that are padded to the longest
"""
CacheKind = Literal["document", "range", "related"]
"""What sentence-by-sentence decoding can rely on, see `Pattern`."""
MAX_SENTENCES = 20
"""Sentences that are farther away count as this far."""


@dataclass(frozen=True)
class Grouping:
    """The keys that each group of queries sees. Queries are packed, group after group; keys can be any packed rows.

    Attributes:
        query_lengths_G: int64 array, queries of each group.
        key_lengths_G: int64 array, keys of each group, at least 1.
        key_rows: int64 array [sum of key_lengths], the packed key rows that each group sees, group after group.
        is_causal: whether query j of a group of n queries and m keys sees only its first m − n + j + 1 keys.
        distances: int64 array like `key_rows`, the distance of each key, for attentions that read it; otherwise None.
        positions_N: int64 array, the position of each query in its instance; None where it is not needed.
        kernel_inputs: index tensors of each kernel on the last device, made and read by `kernels.py`.
    """

    query_lengths_G: np.ndarray
    key_lengths_G: np.ndarray
    key_rows: np.ndarray
    is_causal: bool
    distances: np.ndarray | None = None
    positions_N: np.ndarray | None = None
    kernel_inputs: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_ranges(
        cls,
        query_lengths_G: np.ndarray,
        key_starts_G: np.ndarray,
        key_lengths_G: np.ndarray,
        *,
        is_causal: bool = False,
    ) -> "Grouping":
        """Groups with one contiguous range of the packed keys each."""
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
        """Groups whose keys are whole units in packed order.

        `groups_P` and `units_P` are the pairs of a group and a unit that it sees, in any order; each group sees at
        least one. In causal attention, the last unit that a group sees must be its own.
        """
        n_units = len(key_lengths_U)
        # One number per pair: `unique` sorts the pairs by group, then unit, and drops pairs that are given twice.
        groups_P, units_P = np.divmod(np.unique(groups_P * n_units + units_P), n_units)
        key_starts_U = np.cumsum(key_lengths_U) - key_lengths_U
        lengths_P = key_lengths_U[units_P]
        return cls(
            query_lengths_G,
            # `reduceat` sums from each start to the next; a group starts where the number of the group changes.
            np.add.reduceat(lengths_P, np.flatnonzero(np.diff(groups_P, prepend=-1))),
            expand_ranges(key_starts_U[units_P], lengths_P),
            is_causal,
        )

    @property
    def n_queries(self) -> int:
        return int(self.query_lengths_G.sum())

    def dense_mask(self, n_keys: int) -> np.ndarray:
        """Bool [N, n_keys], true where a query sees a key: the mask that the papers write down."""
        mask = np.zeros((self.n_queries, n_keys), dtype=bool)
        first_query = first_key = 0
        for n, m in zip(self.query_lengths_G.tolist(), self.key_lengths_G.tolist(), strict=True):
            # The last query of a causal group sees all m keys: the triangle is aligned at its lower right corner.
            visible = np.tri(n, m, m - n, dtype=bool) if self.is_causal else True
            mask[first_query : first_query + n, self.key_rows[first_key : first_key + m]] = visible
            first_query, first_key = first_query + n, first_key + m
        return mask


@dataclass(frozen=True)
class AttentionUnits:
    """The units of a batch between which an attention runs, in packed order.

    Attributes:
        query_lengths_U, key_lengths_U: int64, tokens of each unit on the side of queries and on the side of keys. (In a
            target stream without sentences, tokens of each instance.)
        units_B: int64, units of each instance.
        documents_B: int64, units of each document; None if each instance is one. Only earlier units of the same
            document are in a window.
        is_causal: whether a query sees no later token of its side.
        window: previous sentences that the pattern `window` sees.
        n_before: previous sentences that a context module reads.
        heads_U: int64, the row of each unit's head in the batch, −1 for none; None without trees.
        open_B: bool, instances in which every unit sees all; None without trees.
    """

    query_lengths_U: np.ndarray
    key_lengths_U: np.ndarray
    units_B: np.ndarray
    documents_B: np.ndarray | None = None
    is_causal: bool = False
    window: int = 0
    n_before: int = 0
    heads_U: np.ndarray | None = None
    open_B: np.ndarray | None = None

    def numbers(self) -> np.ndarray:
        """The number of each unit in its document, from 0; int64 [U]."""
        return positions_within(self.units_B if self.documents_B is None else self.documents_B)

    def query_lengths(self) -> np.ndarray:
        """Queries of each instance; int64 [B]."""
        return sum_instances(self.query_lengths_U, self.units_B)

    def key_lengths(self) -> np.ndarray:
        """Keys of each instance; int64 [B]."""
        return sum_instances(self.key_lengths_U, self.units_B)


def positions_within(lengths: np.ndarray) -> np.ndarray:
    """0 … n − 1 for each length n, one after another; int64."""
    return expand_ranges(np.zeros_like(lengths), lengths)


def sum_instances(lengths_U: np.ndarray, units_B: np.ndarray) -> np.ndarray:
    """Sums over the units of each instance (at least one); lengths that are those of instances stay; int64 [B]."""
    if len(lengths_U) == len(units_B):
        return lengths_U
    return np.add.reduceat(lengths_U, np.cumsum(units_B) - units_B)


def first_before(numbers_U: np.ndarray, n_before: int) -> np.ndarray:
    """The unit `n_before` units before each one, never before its document, given numbers in documents; int64 [U]."""
    return np.arange(len(numbers_U)) - np.minimum(n_before, numbers_U)


def see_window(units: AttentionUnits, *, n_before: int | None = None) -> Grouping:
    """A sentence sees itself and `n_before` sentences before it in its document; None means `units.window`."""
    lengths = units.key_lengths_U
    ends = lengths.cumsum()
    first_U = first_before(units.numbers(), units.window if n_before is None else n_before)
    # Sentences of an instance are neighbors, so a window is one range of keys, from its first sentence to the own one.
    starts = (ends - lengths)[first_U]
    return Grouping.of_ranges(units.query_lengths_U, starts, ends - starts, is_causal=units.is_causal)


def see_instance(units: AttentionUnits) -> Grouping:
    """An instance sees itself."""
    keys = units.key_lengths()
    return Grouping.of_ranges(units.query_lengths(), keys.cumsum() - keys, keys, is_causal=units.is_causal)


def see_related(units: AttentionUnits) -> Grouping:
    """A unit sees itself, its parent and its children in the tree.

    In an open instance all units form one group, so that each sees all: that is global attention. In causal attention,
    a query sees only earlier related units, and of its own group only earlier tokens.
    """
    heads_U, units_B = units.heads_U, units.units_B
    assert heads_U is not None, "patterns that need trees are resolved to `global` without"
    assert units.open_B is not None, "given with the trees"
    starts_group_U = np.repeat(~units.open_B, units_B)
    # The first unit of an instance (each has one) starts a group also where the instance is open.
    starts_group_U[np.cumsum(units_B) - units_B] = True
    children, own = np.flatnonzero(heads_U >= 0), np.arange(len(heads_U))
    parents = heads_U[children]
    # Each unit sees itself, a child its parent, and a parent its children.
    queries, keys = np.concatenate((own, children, parents)), np.concatenate((own, parents, children))
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
    """`see_window` with distance 0 to keys of the same sentence and 1 to all others."""
    grouping = see_window(units)
    return replace(grouping, distances=_sentences_back(units, grouping).clip(max=1))


def see_memory(units: AttentionUnits) -> Grouping:
    """A sentence sees itself and, at distance 1, the one before; positions run through the instance."""
    grouping = see_window(units, n_before=1)
    positions = positions_within(units.query_lengths())
    return replace(grouping, distances=_sentences_back(units, grouping), positions_N=positions)


def see_distances(units: AttentionUnits) -> Grouping:
    """A sentence sees its instance; distances to keys are 20 + sentences back, cut to 0 … 40."""
    keys = units.key_lengths()
    starts, lengths = (np.repeat(values, units.units_B) for values in (keys.cumsum() - keys, keys))
    grouping = Grouping.of_ranges(units.query_lengths_U, starts, lengths)
    back = _sentences_back(units, grouping)
    return replace(grouping, distances=back.clip(-MAX_SENTENCES, MAX_SENTENCES) + MAX_SENTENCES)


def see_each_before(units: AttentionUnits) -> Grouping:
    """J copies of the queries; copy j sees the sentence j before its own, or its own if there is none."""
    lengths = units.query_lengths_U
    starts, own, numbers = lengths.cumsum() - lengths, np.arange(len(lengths)), units.numbers()
    # Attention needs a key: where there is no such sentence, the own one is seen, and HAN masks it.
    seen = np.concatenate([np.where(numbers >= j, own - j, own) for j in range(1, units.n_before + 1)])
    return Grouping.of_ranges(np.tile(lengths, units.n_before), starts[seen], lengths[seen])


def see_sources(units: AttentionUnits) -> Grouping:
    """A target sentence sees its source and the sources before, at distances in sentences."""
    grouping = see_window(units, n_before=units.n_before)
    return replace(grouping, distances=_sentences_back(units, grouping))


def see_drafts(units: AttentionUnits) -> Grouping:
    """A target sentence sees the target sentences before it, and its draft at distance 0.

    The drafts of all sentences follow the target tokens; `units.key_lengths_U` are the lengths of the drafts.
    """
    numbers = units.numbers()
    own, first = np.arange(len(numbers)), first_before(numbers, units.n_before)
    lengths = np.concatenate((units.query_lengths_U, units.key_lengths_U))
    grouping = Grouping.of_units(
        np.concatenate((np.repeat(own, own - first), own)),
        np.concatenate((expand_ranges(first, own - first), own + len(own))),
        query_lengths_G=units.query_lengths_U,
        key_lengths_U=lengths,
    )
    # Keys are in the target sentences, then their drafts; both belong to sentences 0 … U − 1.
    of_keys = np.repeat(np.tile(own, 2), lengths)[grouping.key_rows]
    return replace(grouping, distances=np.repeat(own, grouping.key_lengths_G) - of_keys)


def _sentences_back(units: AttentionUnits, grouping: Grouping) -> np.ndarray:
    """Distance of each key from its group, which is a sentence, in sentences; int64 like `key_rows`."""
    sentences = np.arange(len(grouping.key_lengths_G))
    of_keys = np.repeat(sentences, units.key_lengths_U)
    return np.repeat(sentences, grouping.key_lengths_G) - of_keys[grouping.key_rows]


@dataclass(frozen=True)
class Pattern:
    """The visibility of keys, and what settings and decoding must know about it.

    Attributes:
        see: makes the grouping. Where the queries are target tokens, it must follow from their sentence.
        cache: what sentence-by-sentence decoding can rely on. `document`: every sentence sees its whole instance;
            `range`: its own and a fixed number of sentences before it; `related`: any earlier sentences.
        needs_trees: whether units have heads, and are EDUs in the encoder. Without trees such a pattern sees the whole
            instance.
        slots: the attentions that can have it; none for those of context modules.
    """

    see: Callable[[AttentionUnits], Grouping]
    cache: CacheKind = "related"
    needs_trees: bool = False
    slots: tuple[str, ...] = SLOTS


@dataclass(frozen=True)
class Fusion:
    """Several attentions in the place of one, with these patterns, in the order in which they run.

    `FUSIONS` in `multi_head.py` has the class that joins their outputs.
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
    # RST-Transformer, Eq. 8–10; Eq. 11–13; the outputs of Eq. 8 and 10 in Eq. 12–13.
    "rst_serial": Fusion(("group", "rst"), has_gate=False),
    "rst_parallel": Fusion(("group", "rst")),
    "rst_mix": Fusion(("group", "rst")),
    # Context modules: HAN, then CADec.
    "each_before": Pattern(see_each_before, slots=()),
    "near": Pattern(see_sources, slots=()),
    "drafts": Pattern(see_drafts, slots=()),
}
"""All patterns and fusions. `DISTANCES` in `multi_head.py` and `ENCODER_LAYERS` in `layers.py` name the patterns that
need parameters or layers of their own. docs/models.md shows how to add a pattern."""

NO_GATE = (
    "init_new_parameters 'zero': this model has several attentions in one place with no gate between them, so it "
    "cannot start as the sentence model that it is initialized from; use an architecture with gates"
)


def part_names(name: str) -> tuple[str, ...]:
    """The patterns of the parts of a fusion; of a pattern, itself."""
    pattern = PATTERNS[name]
    return pattern.parts if isinstance(pattern, Fusion) else (name,)


def pattern_slots(name: str) -> list[str]:
    """The attentions that can have a pattern or fusion."""
    return [slot for slot in SLOTS if all(slot in find_part(part).slots for part in part_names(name))]


def find_part(name: str) -> Pattern:
    """A pattern by name. Fusions are refused: they have parts in place of a grouping."""
    pattern = PATTERNS[name]
    if isinstance(pattern, Fusion):
        raise ValueError(f"{name} is a fusion of {' and '.join(pattern.parts)}: ask for one of these")
    return pattern
