"""Targets of one source, computed together: the source is encoded once, and so are equal beginnings of its targets.

The visible context of a target token follows from its sentence and the tokens before it, so equal beginnings have equal
states.

Shape letters: S packed source tokens, N packed target tokens, G sentences, B instances of a batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from docmt.instances.storage import expand_ranges
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.patterns import SIDES, Grouping, Index, Side, Slot


@dataclass(frozen=True)
class PrefixSharing:
    """The instances of a batch that begin as the first one with the same source and trees, their leader.

    `shared_B` are the numbers of first decoder inputs equal to the leader's; leaders are their own, and share 0.
    """

    leader_B: np.ndarray
    shared_B: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """The rows of a side that are computed, and for every row of it, the place among them of one equal to it."""

    kept: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, lengths_B: np.ndarray, sharing: PrefixSharing, shared_B: np.ndarray) -> "_Rows":
        """The rows of instances of these lengths, of which the first `shared_B` equal the leader's."""
        starts_B = np.cumsum(lengths_B) - lengths_B
        equal_to = np.arange(int(lengths_B.sum()))
        equal_to[expand_ranges(starts_B, shared_B)] = expand_ranges(starts_B[sharing.leader_B], shared_B)
        kept = np.flatnonzero(equal_to == np.arange(len(equal_to)))
        return cls(kept, np.searchsorted(kept, equal_to))


class SharedLayout(AttentionLayout):
    """The layout of a batch in which the rows of a leader replace the rows equal to them."""

    def __init__(self, layout: AttentionLayout, sharing: PrefixSharing) -> None:
        lengths = layout.src_lengths_G, layout.tgt_lengths_G, layout.sentences_B
        super().__init__(*lengths, settings=layout.settings, trees=layout.trees, context=layout.context)
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
        """int64, for every row of a side, the computed row equal to it."""
        return torch.from_numpy(self._rows[side].places).to(device)

    @override
    def index(self, side: Side, kind: Index, device: torch.device) -> Tensor:
        kept = self.keep(super().index(side, kind, device), side)
        # These two kinds are numbers of rows themselves, so they must point to computed rows.
        numbered: dict[Index, Side] = {"row": "src", "in_batch": "vectors"}
        return self.places(numbered[kind], device)[kept] if kind in numbered else kept

    @property
    @override
    def n_sentences(self) -> int:
        return len(self._rows["vectors"].kept)

    @override
    def grouping(self, slot: Slot, pattern: str) -> Grouping:
        key = slot, self.resolve(pattern)
        if key not in self._shared_groupings:
            full = super().grouping(slot, pattern)
            queries, keys = (self._rows[side] for side in SIDES[slot])
            groups = np.repeat(np.arange(len(full.query_lengths_G)), full.query_lengths_G)
            # Queries can be repeated as a whole, one copy after another (`n_before` times). The kept queries of a group
            # are its last ones, as a causal kernel requires.
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
    """Number of equal decoder inputs at the beginnings of two targets, given as sentences with both marks."""
    one, other = np.concatenate(first), np.concatenate(second)
    n = min(len(one), len(other))
    differ = np.flatnonzero(one[:n] != other[:n])
    n_equal = int(differ[0]) if len(differ) else n
    ends = np.cumsum([len(sentence) for sentence in first])
    # In a free stream every token is an input, in an aligned one all except the last token of each sentence.
    return n_equal if is_free else n_equal - int(np.searchsorted(ends, n_equal, side="right"))
