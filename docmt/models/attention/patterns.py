"""All attention patterns and their fusions: what settings, decoding and messages must know without importing torch.

A pattern says which keys each query sees: `GROUPINGS` in visibility.py has its function. A fusion runs several patterns
and joins their outputs: `FUSIONS` in multi_head.py has its class. A new one needs a row here and a row there
(docs/models.md). `DISTANCES` in distances.py and `ENCODER_LAYERS` in layers.py have the patterns that need more.
"""

from dataclasses import dataclass
from typing import Literal

SLOTS = ("encoder", "decoder", "cross")
"""The attentions of a model without context modules."""
Slot = Literal["encoder", "decoder", "cross", "context", "before", "src_before", "tgt_before", "near", "drafted"]
Side = Literal["src", "tgt", "vectors", "before"]
"""A row of packed items, sentence after sentence: source tokens, target tokens, one vector per sentence, or the source
tokens of the sentences before each sentence."""
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
"""The sides of queries and keys of each attention."""
Index = Literal["instance", "sentence", "in_batch", "number", "row", "is_word", "place"]
"""A number for each item of a side: its position in its instance or in its sentence; its sentence in the batch, or
(`number`) in the document; on the side `before`, its row of the source; 1 for words and 0 for marks; its row in
instances that are padded to the longest."""
CacheKind = Literal["document", "range", "related"]


@dataclass(frozen=True)
class Pattern:
    """Which keys each group of queries sees. Where the queries are target tokens, this must follow from their sentence.

    Attributes:
        cache: what sentence-by-sentence decoding can rely on. `document`: every sentence sees its whole instance;
            `range`: its own and a fixed number of sentences before it; `related`: any earlier sentences.
        needs_trees: whether the grouping follows discourse trees. Without trees such a pattern sees the whole instance.
        slots: the attentions that can have it; none for those of context modules.
    """

    cache: CacheKind = "related"
    needs_trees: bool = False
    slots: tuple[str, ...] = SLOTS


@dataclass(frozen=True)
class Fusion:
    """Several attentions in the place of one, with these patterns, in the order in which they run."""

    parts: tuple[str, ...]
    has_gate: bool = True  # whether a gate joins their outputs, as `FusedAttention.has_gate`


PATTERNS: dict[str, Pattern | Fusion] = {
    "group": Pattern(cache="range"),
    "window": Pattern(cache="range"),
    "global": Pattern(cache="document"),
    "rst": Pattern(needs_trees=True),
    # Baselines.
    "segments": Pattern(slots=("encoder",)),
    "distances": Pattern(slots=("encoder",)),
    "memory": Pattern(cache="range", slots=("decoder",)),
    "long_short": Fusion(("group", "global"), has_gate=False),
    # G-Transformer and RST-Transformer.
    "combined": Fusion(("group", "global")),
    "rst_serial": Fusion(("group", "rst"), has_gate=False),
    "rst_parallel": Fusion(("group", "rst")),
    "rst_mix": Fusion(("group", "rst")),
    # Context modules.
    "each_before": Pattern(slots=()),
    "near": Pattern(slots=()),
    "drafts": Pattern(slots=()),
}

NO_GATE = (
    "new_parts 'silent': this model has several attentions in one place with no gate between them, so it cannot start "
    "as the sentence model that it is initialized from; use an architecture with gates"
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
