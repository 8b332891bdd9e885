"""Targets of one source, computed together: the source is encoded once, and the equal beginnings of its targets once.

What a target token sees follows from its sentence and the tokens before it, so equal beginnings have equal states.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances of a batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges
from docmt.models.grouping import Grouping
from docmt.models.layout import SIDES, Index, Layout, Side, Slot


@dataclass(frozen=True)
class Sharing:
    """Which instances of a batch begin as an earlier one.

    Attributes:
        leader_B: int64, an instance with the same source and trees that leads itself; itself for those that lead.
        shared_B: int64, how many of its first decoder inputs equal those of its leader; 0 for those that lead.
    """

    leader_B: np.ndarray
    shared_B: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """The rows of a side that are computed.

    Attributes:
        kept: int64, those rows, in their order.
        places: int64, for every row of the side, which of the kept rows stands for it.
    """

    kept: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, lengths_B: np.ndarray, sharing: Sharing, shared_B: np.ndarray) -> "_Rows":
        """The rows of instances of these lengths, of which the first `shared_B` are those of their leaders."""
        starts_B = np.cumsum(lengths_B) - lengths_B
        standing = np.arange(int(lengths_B.sum()))
        standing[expand_ranges(starts_B, shared_B)] = expand_ranges(starts_B[sharing.leader_B], shared_B)
        kept = np.flatnonzero(standing == np.arange(len(standing)))
        return cls(kept, np.searchsorted(kept, standing))


class SharedLayout(Layout):
    """The layout of a batch without the rows that repeat those of a leader; they are seen in their place."""

    def __init__(self, layout: Layout, sharing: Sharing) -> None:
        super().__init__(
            layout.src_lengths_G,
            layout.tgt_lengths_G,
            layout.sentences_B,
            settings=layout.settings,
            trees=layout.trees,
            context=layout.context,
        )
        follows_B = sharing.leader_B != np.arange(len(sharing.leader_B))
        sides: tuple[Side, ...] = ("src", "tgt", "vectors", *(("before",) if layout.settings.n_before else ()))
        n_rows = {side: self.instance_lengths(side) for side in sides}
        self._rows = {
            side: _Rows.of(lengths_B, sharing, sharing.shared_B if side == "tgt" else lengths_B * follows_B)
            for side, lengths_B in n_rows.items()
        }
        self._shared_groupings: dict[tuple[Slot, str], Grouping] = {}

    def keep(self, rows: Tensor, side: Side) -> Tensor:
        """The rows of a side that are computed."""
        return rows[torch.from_numpy(self._rows[side].kept).to(rows.device)]

    def places(self, side: Side, device: torch.device) -> Tensor:
        """int64, for every row of a side, which of the computed rows stands for it."""
        return torch.from_numpy(self._rows[side].places).to(device)

    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        """As `Layout.index`, of the rows that are computed."""
        kept = self.keep(super().index(side, kind, device), side)
        standing: dict[Index, Side] = {"row": "src", "in_batch": "vectors"}  # what these are numbers of
        return self.places(standing[kind], device)[kept] if kind in standing else kept

    @property
    def n_sentences(self) -> int:
        """Source sentences that are computed."""
        return len(self._rows["vectors"].kept)

    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        """As `Layout.grouping`, of the rows that are computed.

        Of each group of queries, the kept ones are the last, which is all that causality asks for.
        """
        key = slot, self.resolve(pattern)
        if key not in self._shared_groupings:
            full = super().grouping(slot, pattern)
            queries, keys = (self._rows[side] for side in SIDES[slot])
            groups = np.repeat(np.arange(len(full.query_lengths_G)), full.query_lengths_G)
            # Queries may be there several times, one copy after another.
            groups = groups.reshape(-1, len(queries.places))[:, queries.kept].ravel()
            lengths_G = np.bincount(groups, minlength=len(full.query_lengths_G))
            is_left = lengths_G > 0
            is_seen = np.repeat(is_left, full.key_lengths_G)
            self._shared_groupings[key] = Grouping(
                lengths_G[is_left],
                full.key_lengths_G[is_left],
                keys.places[full.key_rows[is_seen]],
                full.is_causal,
                distances=None if full.distances is None else full.distances[is_seen],
                positions_N=None if full.positions_N is None else full.positions_N[queries.kept],
            )
        return self._shared_groupings[key]


def n_shared_inputs(first: list[np.ndarray], second: list[np.ndarray], *, is_free: bool) -> int:
    """How many decoder inputs two targets have in common at their beginnings.

    The targets are sentences with both marks. In a free stream every token is an input, else all but the last one of
    each sentence.
    """
    one, other = np.concatenate(first), np.concatenate(second)
    n = min(len(one), len(other))
    differ = np.flatnonzero(one[:n] != other[:n])
    n_equal = int(differ[0]) if len(differ) else n
    ends = np.cumsum([len(sentence) for sentence in first])
    return n_equal if is_free else n_equal - int(np.searchsorted(ends, n_equal, side="right"))
