"""A layout as a compiler sees it: tensors and numbers alone, with nothing left to compute.

With it, `torch.compile` makes one graph of `Transformer.forward` that serves batches of any shape.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from docmt.models.attention.grouping import CompiledGrouping
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.patterns import Index, Side, Slot
from docmt.models.attention.varlen import find_varlen
from docmt.models.settings import Positions

IN_ORDER = ("group", "global")
"""Patterns whose keys are always in the order of the packed rows. The keys of other patterns are in that order in some
batches only, but a compiled graph either has an index or not."""


@dataclass(frozen=True)
class CompiledLayout:
    """What a model asks of a layout (see `AttentionLayout`), for the variable-length kernel.

    Groupings are by the patterns of the settings, also where they are resolved to others. `default` is what positions
    run through where nothing else is asked for, `table_TD` has the vectors of at least as many as there are, float32.
    """

    groupings: dict[tuple[Slot, str], CompiledGrouping]
    indexes: dict[tuple[Side, Index], Tensor]
    n_sentences: int
    padded_sizes: tuple[int, int, int]
    reads_context: bool
    default: Positions
    table_TD: Tensor
    drafts: None = None

    @classmethod
    def of(cls, layout: AttentionLayout, table_TD: Tensor) -> "CompiledLayout":
        """A compiled layout on the device of the table; complete, if the layout has been prepared."""
        device = table_TD.device
        # In a fixed order: a graph asks for the keys of a dict in their order.
        kinds = sorted(layout.index_kinds())
        kernel = find_varlen()
        assert kernel is not None, "asked for only where this torch has it"
        groupings = {}
        for slot, pattern in layout.attention_parts():
            grouping = layout.grouping(slot, pattern)
            inputs = grouping.varlen_inputs(device)
            if inputs.key_rows_M is None and pattern not in IN_ORDER:
                inputs = replace(inputs, key_rows_M=torch.arange(len(grouping.key_rows), device=device))
            groupings[slot, pattern] = CompiledGrouping(inputs, grouping.is_causal, kernel)
        indexes = {kind: layout.index(*kind, device) for kind in kinds}
        n_instances, longest, most_sentences = layout.padded_sizes
        # A graph for any size is none for 1, and padding changes nothing.
        sizes = max(2, n_instances), longest, max(2, most_sentences)
        facts = layout.n_sentences, sizes, layout.reads_context
        return cls(groupings, indexes, *facts, layout.settings.positions, table_TD)

    def grouping(self, slot: Slot, pattern: str) -> CompiledGrouping:
        return self.groupings[slot, pattern]

    def positions(self, side: Side, device: torch.device, *, within: Positions | None = None) -> Tensor:
        return self.index(side, within or self.default, device)

    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        return self.indexes[side, kind]
