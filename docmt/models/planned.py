"""A layout as a compiler sees it: tensors and numbers alone, with nothing left to compute.

With it, `torch.compile` makes one graph of `Transformer.forward` that serves batches of any shape.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from docmt.models.layout import Index, Layout, Side, Slot
from docmt.models.plans import PlannedGrouping
from docmt.models.ragged import find_varlen
from docmt.models.settings import Positions

IN_ORDER = ("group", "global")
"""Patterns whose keys are always in the order of the packed rows. Those of others are in some batches, but a graph
either has an index or not."""


@dataclass(frozen=True)
class PlannedLayout:
    """What a model asks of a layout, for the variable-length kernel.

    Attributes:
        groupings: by the patterns of the settings, also where they are resolved to others.
        indexes: int64, what `Layout.index` gives for each item of a side.
        n_sentences, padded_sizes, reads_context: see `Layout`.
        default: what positions run through where nothing else is asked for.
        table_TD: float32, the vectors of at least as many positions as there are.
        drafts: none in training.
    """

    groupings: dict[tuple[Slot, str], PlannedGrouping]
    indexes: dict[tuple[Side, Index], Tensor]
    n_sentences: int
    padded_sizes: tuple[int, int, int]
    reads_context: bool
    default: Positions
    table_TD: Tensor
    drafts: None = None

    @classmethod
    def of(cls, layout: Layout, table_TD: Tensor) -> "PlannedLayout":
        """The plan of a layout on the device of the table; complete, if the layout has been prepared."""
        device = table_TD.device
        # In a fixed order: a graph asks for the keys of a dict in their order.
        kinds = sorted(layout.index_kinds())
        groupings = {slot_part: _plan(layout, *slot_part, device) for slot_part in layout.attention_parts()}
        indexes = {kind: layout.index(*kind, device) for kind in kinds}
        n_instances, longest, most_sentences = layout.padded_sizes
        # A graph for any size is none for 1, and padding changes nothing.
        sizes = max(2, n_instances), longest, max(2, most_sentences)
        facts = layout.n_sentences, sizes, layout.reads_context
        return cls(groupings, indexes, *facts, layout.settings.positions, table_TD)

    def grouping(self, slot: Slot, pattern: str) -> PlannedGrouping:
        """As `Layout.grouping`."""
        return self.groupings[slot, pattern]

    def positions(self, side: Side, device: torch.device, *, within: Positions | None = None) -> Tensor:
        """As `Layout.positions`, on the device of the plan."""
        return self.index(side, within or self.default, device)

    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        """As `Layout.index`, on the device of the plan."""
        return self.indexes[side, kind]


def _plan(layout: Layout, slot: Slot, pattern: str, device: torch.device) -> PlannedGrouping:
    grouping, kernel = layout.grouping(slot, pattern), find_varlen()
    assert kernel is not None, "asked for only where this torch has it"
    plan = grouping.varlen_plan(device)
    if plan.key_rows_M is None and pattern not in IN_ORDER:
        rows_M = torch.from_numpy(np.arange(len(grouping.key_rows))).to(device)
        plan = replace(plan, key_rows_M=rows_M)
    return PlannedGrouping(plan, grouping.is_causal, kernel)
