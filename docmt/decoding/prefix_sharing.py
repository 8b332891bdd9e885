"""Instances with the same source in a batch, whose source and common target prefixes are computed once.

The visible context of a target token follows from its sentence and the tokens before it, so equal prefixes have equal
states.

Shape letters: N packed target tokens, G sentences or groups, B instances in a batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.patterns import SIDES, Grouping, IndexKind, Side, Slot
from docmt.ranges import expand_ranges, starts_of


@dataclass(frozen=True)
class PrefixSharing:
    """For instances in a batch, the first instance with the same source and trees, called the leader.

    `shared_B` are the numbers of first decoder inputs equal to the leader's. Leaders lead themselves and share 0.
    """

    leader_B: np.ndarray
    shared_B: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """The computed rows on a side, and for every row on it, the number of an equal computed row."""

    distinct: np.ndarray
    computed: np.ndarray

    @classmethod
    def of(cls, lengths_B: np.ndarray, sharing: PrefixSharing, shared_B: np.ndarray) -> "_Rows":
        """Return the rows for instances with these lengths, whose first `shared_B` rows equal the leader's."""
        starts_B = starts_of(lengths_B)
        equal_to = np.arange(int(lengths_B.sum()))
        equal_to[expand_ranges(starts_B, shared_B)] = expand_ranges(starts_B[sharing.leader_B], shared_B)
        rows = np.flatnonzero(equal_to == np.arange(len(equal_to)))
        return cls(rows, np.searchsorted(rows, equal_to))


class SharedLayout(AttentionLayout):
    """The layout of a batch in which a leader's rows replace the rows equal to them."""

    def __init__(self, layout: AttentionLayout, sharing: PrefixSharing) -> None:
        lengths = layout.src_lengths_G, layout.tgt_lengths_G, layout.sentences_B
        super().__init__(*lengths, settings=layout.settings, trees=layout.trees, context=layout.context)
        follows_B = sharing.leader_B != np.arange(len(sharing.leader_B))
        sides: list[Side] = ["src", "tgt", "vectors"]
        if layout.settings.n_before:
            sides.append("before")
        self._rows: dict[Side, _Rows] = {}
        for side in sides:
            lengths_B = self.instance_lengths(side)
            shared_B = lengths_B * follows_B
            if side == "tgt":
                shared_B = sharing.shared_B
            self._rows[side] = _Rows.of(lengths_B, sharing, shared_B)
        self._shared_groupings: dict[tuple[Slot, str], Grouping] = {}

    def keep(self, rows: Tensor, side: Side) -> Tensor:
        """Return the rows on a side that are computed."""
        return rows[torch.from_numpy(self._rows[side].distinct)]

    def computed_rows(self, side: Side, device: torch.device) -> Tensor:
        """Return, for every row on a side, the computed row equal to it, int64."""
        return torch.from_numpy(self._rows[side].computed).to(device)

    @override
    def index(self, side: Side, kind: IndexKind) -> np.ndarray:
        rows = super().index(side, kind)[self._rows[side].distinct]
        # These two kinds are numbers of rows themselves, so they must point to computed rows.
        numbered: dict[IndexKind, Side] = {"row": "src", "in_batch": "vectors"}
        return self._rows[numbered[kind]].computed[rows] if kind in numbered else rows

    @property
    @override
    def n_sentences(self) -> int:
        return len(self._rows["vectors"].distinct)

    @override
    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        key = slot, self.resolve(pattern)
        if key not in self._shared_groupings:
            full = super().grouping(slot, pattern)
            query_side, key_side = SIDES[slot]
            queries = self._rows[query_side]
            groups = np.repeat(np.arange(len(full.query_lengths_G)), full.query_lengths_G)
            # Queries can be repeated as a whole, one copy after another (`n_before` times). The kept queries of a group
            # are its last ones, as a causal kernel requires.
            groups = groups.reshape(-1, len(queries.computed))[:, queries.distinct].ravel()
            lengths_G = np.bincount(groups, minlength=len(full.query_lengths_G))
            is_left = lengths_G > 0
            is_seen = np.repeat(is_left, full.key_lengths_G)
            distances = full.distances
            if distances is not None:
                distances = distances[is_seen]
            positions_N = full.positions_N
            if positions_N is not None:
                positions_N = positions_N[queries.distinct]
            self._shared_groupings[key] = Grouping(
                lengths_G[is_left],
                full.key_lengths_G[is_left],
                self._rows[key_side].computed[full.key_rows[is_seen]],
                full.is_causal,
                distances=distances,
                positions_N=positions_N,
            )
        return self._shared_groupings[key]


def n_shared_inputs(first: list[np.ndarray], second: list[np.ndarray], *, is_free: bool) -> int:
    """Return the number of equal decoder inputs at the start of two targets. Sentences have boundary tokens."""
    one, other = np.concatenate(first), np.concatenate(second)
    n_equal = min(len(one), len(other))
    differ = np.flatnonzero(one[:n_equal] != other[:n_equal])
    if len(differ):
        n_equal = int(differ[0])
    # In a free stream every token is an input, in an aligned one all except the last token of each sentence.
    if is_free:
        return n_equal
    ends = np.cumsum(list(map(len, first)))
    return n_equal - int(np.searchsorted(ends, n_equal, side="right"))
