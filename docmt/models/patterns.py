"""All attention patterns and their fusions, in one place. Importing this module does not import torch.

A pattern says which keys each query sees; a fusion runs several patterns and joins what they give. To add a pattern,
write a function that gives its grouping (docmt/models/visibility.py has the built-in ones) and a row here. Other
packages register theirs as entry points, see docs/models.md.
"""

import functools
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal

from docmt.models.plugins import load_plugins
from docmt.settings import nearest

if TYPE_CHECKING:
    from docmt.models.distances import Distances
    from docmt.models.grouping import Grouping
    from docmt.models.layers import FusedAttention
    from docmt.models.layout import Layout, Slot

SLOTS = ("encoder", "decoder", "cross")
"""The attentions of a model."""
CacheKind = Literal["document", "range", "related"]


@dataclass(frozen=True)
class Pattern:
    """Which keys each group of queries sees.

    Attributes:
        function: `module:name` of a function of a `Layout` and a slot that returns the `Grouping`; imported on first
            use. Where the queries are target tokens, what a token sees must follow from its sentence.
        cache: what sentence-by-sentence decoding can rely on. `document`: every sentence sees its whole instance;
            `range`: its own and a fixed number of sentences before it; `related`: any earlier sentences.
        needs_trees: whether the grouping follows discourse trees. Without trees such a pattern sees the whole instance.
        distances: `module:name` of a subclass of `Distances` that reads the distances of the grouping; None for none.
        layer: `module:name` of the subclass of `EncoderLayer` that layers with this pattern are; None for itself.
        slots: the attentions that can have it.
    """

    function: str
    cache: CacheKind = "related"
    needs_trees: bool = False
    distances: str | None = None
    layer: str | None = None
    slots: tuple[str, ...] = SLOTS

    def grouping(self, layout: "Layout", slot: "Slot") -> "Grouping":
        """The grouping of one of a model's attentions for a batch."""
        return resolve_name(self.function)(layout, slot)

    def build_distances(self, heads: int, head_width: int) -> "Distances | None":
        """What an attention with this pattern knows of distances, with fresh parameters."""
        return None if self.distances is None else resolve_name(self.distances)(heads, head_width)


@dataclass(frozen=True)
class Fusion:
    """Several attentions in the place of one.

    Attributes:
        class_name: `module:name` of a subclass of `FusedAttention`; imported on first use.
        parts: the patterns of its parts, in the order in which it runs them.
    """

    class_name: str
    parts: tuple[str, ...]

    @property
    def needs_trees(self) -> bool:
        """Whether a part follows discourse trees."""
        return any(find_pattern(part).needs_trees for part in self.parts)

    def build(self, width: int, heads: int) -> "FusedAttention":
        """A new module with fresh parameters."""
        return resolve_name(self.class_name)(width, heads, self.parts)


PATTERNS: dict[str, Pattern | Fusion] = {
    "group": Pattern("docmt.models.visibility:see_sentence", cache="range"),
    "window": Pattern("docmt.models.visibility:see_window", cache="range"),
    "global": Pattern("docmt.models.visibility:see_instance", cache="document"),
    "rst": Pattern("docmt.models.visibility:see_related", needs_trees=True),
    # Baselines.
    "segments": Pattern(
        "docmt.models.visibility:see_segments", distances="docmt.models.distances:OwnOrOther", slots=("encoder",)
    ),
    "distances": Pattern(
        "docmt.models.visibility:see_distances",
        distances="docmt.models.distances:ClippedDistances",
        layer="docmt.models.gated:GatedEncoderLayer",
        slots=("encoder",),
    ),
    "memory": Pattern(
        "docmt.models.visibility:see_memory",
        cache="range",
        distances="docmt.models.distances:TokenDistances",
        slots=("decoder",),
    ),
    "long_short": Fusion("docmt.models.split_heads:SplitAttention", ("group", "global")),
    "combined": Fusion("docmt.models.layers:ParallelAttention", ("group", "global")),
    "rst_serial": Fusion("docmt.models.layers:SerialAttention", ("group", "rst")),
    "rst_parallel": Fusion("docmt.models.layers:ParallelAttention", ("group", "rst")),
    "rst_mix": Fusion("docmt.models.layers:MixedAttention", ("group", "rst")),
}
"""The patterns of docmt itself."""


@functools.cache
def all_patterns() -> dict[str, Pattern | Fusion]:
    """The patterns of docmt and of installed packages. Raises UserError for packages that clash or fail to import."""
    return load_plugins("docmt.patterns", PATTERNS, what="attention pattern", types=(Pattern, Fusion))


def find_pattern(name: str) -> Pattern | Fusion:
    """The pattern or fusion of a name. Raises ValueError that names the nearest known one."""
    # Other packages are only imported for names that docmt does not have.
    found = PATTERNS.get(name) or all_patterns().get(name)
    if found is None:
        raise ValueError(f"must be an attention pattern ({nearest(name, list(all_patterns()))})")
    return found


def part_names(name: str) -> tuple[str, ...]:
    """The patterns of the parts of a fusion; of a pattern, itself."""
    found = find_pattern(name)
    return found.parts if isinstance(found, Fusion) else (name,)


def pattern_slots(name: str) -> list[str]:
    """The attentions that can have a pattern or fusion."""
    return [slot for slot in SLOTS if all(slot in find_part(part).slots for part in part_names(name))]


def find_part(name: str) -> Pattern:
    """As `find_pattern`, but not a fusion: those have parts instead of a grouping."""
    found = find_pattern(name)
    if isinstance(found, Fusion):
        raise ValueError(f"{name} is a fusion of {' and '.join(found.parts)}: ask for one of these")
    return found
