"""A layout as a compiler sees it: tensors and numbers alone, with nothing left to compute.

With it, `torch.compile` makes one graph of `Transformer.forward` that serves batches of any shape.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from docmt.models.layout import Counted, Layout, Side, Slot
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
        positions_of: int64 [S] or [N], the number of each token of a side, as `Layout.positions` gives it.
        sentences_S: int64, the sentence of each source token; None where no context encoder reads it.
        n_sentences: see `Layout`.
        default: what positions run through where nothing else is asked for.
        table_TD: float32, the vectors of at least as many positions as there are.
    """

    groupings: dict[tuple[Slot, str], PlannedGrouping]
    positions_of: dict[tuple[Side, Counted], Tensor]
    sentences_S: Tensor | None
    n_sentences: int
    default: Positions
    table_TD: Tensor

    @classmethod
    def of(cls, layout: Layout, table_TD: Tensor) -> "PlannedLayout":
        """The plan of a layout on the device of the table; complete, if the layout has been prepared."""
        device = table_TD.device
        # In a fixed order: a graph asks for the keys of a dict in their order.
        kinds = sorted(layout.position_kinds())
        groupings = {slot_part: _plan(layout, *slot_part, device) for slot_part in layout.attention_parts()}
        positions_of = {kind: layout.positions(kind[0], device, within=kind[1]) for kind in kinds}
        sentences_S = layout.sentences(device) if layout.reads_context else None
        return cls(groupings, positions_of, sentences_S, layout.n_sentences, layout.settings.positions, table_TD)

    @property
    def reads_context(self) -> bool:
        """As `Layout.reads_context`."""
        return self.sentences_S is not None

    def sentences(self, device: torch.device) -> Tensor:
        """As `Layout.sentences`, on the device of the plan."""
        assert self.sentences_S is not None, "only a context encoder asks for them"
        return self.sentences_S

    def grouping(self, slot: Slot, pattern: str) -> PlannedGrouping:
        """As `Layout.grouping`."""
        return self.groupings[slot, pattern]

    def positions(self, side: Side, device: torch.device, *, within: Counted | None = None) -> Tensor:
        """As `Layout.positions`, on the device of the plan."""
        return self.positions_of[side, within or self.default]


def _plan(layout: Layout, slot: Slot, pattern: str, device: torch.device) -> PlannedGrouping:
    grouping, kernel = layout.grouping(slot, pattern), find_varlen()
    assert kernel is not None, "asked for only where this torch has it"
    plan = grouping.varlen_plan(device)
    if plan.key_rows_M is None and pattern not in IN_ORDER:
        rows_M = torch.from_numpy(np.arange(len(grouping.key_rows))).to(device)
        plan = replace(plan, key_rows_M=rows_M)
    return PlannedGrouping(plan, grouping.is_causal, kernel)
