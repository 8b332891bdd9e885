"""Groupings: which list of keys each group of queries sees.

Every attention pattern of the three papers is such a grouping. Queries are packed (no padding), group after group;
a group's keys are any rows of the packed keys. For computing, groups of similar size are combined in buckets, so that
little of a padded batch is padding.

Shape letters: N packed queries, M packed keys, G groups, U units, P pairs of a group and a unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges, offsets_of
from docmt.models.plans import Bucket, Kernel, PaddedPlan, Padding, PlannedGrouping, VarlenPlan
from docmt.models.tensors import map_leaves

BUCKET_MIN_FILL = 0.8
"""A bucket is closed when the next group would fill less than this share of its length …"""
BUCKET_MIN_GROUPS = 16
"""… and it already has this many groups: each bucket costs some kernel launches."""
BUCKET_WORST_FILL = 0.5
"""A group shorter than this share of the bucket's length always opens a new bucket."""


@dataclass(frozen=True)
class Grouping:
    """Which keys each group of queries sees.

    Attributes:
        query_lengths_G: int64 array, queries of each group; groups follow one another in the packed queries.
        key_lengths_G: int64 array, keys of each group, at least 1.
        key_rows: int64 array [sum of key_lengths], the packed key rows that each group sees, group after group.
        is_causal: whether query j of a group of n queries and m keys sees only its first m − n + j + 1 keys.
        distances: int64 array like `key_rows`, how far each key is, for attentions that read it; None for others.
        positions_N: int64 array, of each query in its instance, likewise.
        plans: the index tensors that kernels read, made when they are first asked for.
    """

    query_lengths_G: np.ndarray
    key_lengths_G: np.ndarray
    key_rows: np.ndarray
    is_causal: bool
    distances: np.ndarray | None = None
    positions_N: np.ndarray | None = None
    plans: dict[Kernel, VarlenPlan | PaddedPlan] = field(default_factory=dict, repr=False, compare=False)

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
        """Groups whose keys are whole units, such as sentences or EDUs, in packed order.

        Args:
            groups_P: int64, with `units_P` the pairs of a group and a unit that it sees, in any order; each group sees
                at least one.
            units_P: int64.
            query_lengths_G: int64, queries of each group.
            key_lengths_U: int64, keys of each unit.
            is_causal: see `Grouping`; then the own unit of a group must be the last one that it sees.
        """
        n_units = len(key_lengths_U)
        groups_P, units_P = np.divmod(np.unique(groups_P * n_units + units_P), n_units)
        key_starts_U = np.cumsum(key_lengths_U) - key_lengths_U
        lengths_P = key_lengths_U[units_P]
        return cls(
            query_lengths_G,
            np.add.reduceat(lengths_P, np.flatnonzero(np.diff(groups_P, prepend=-1))),
            expand_ranges(key_starts_U[units_P], lengths_P),
            is_causal,
        )

    @property
    def n_queries(self) -> int:
        """N, packed queries."""
        return int(self.query_lengths_G.sum())

    def plan(self, kernel: Kernel, device: torch.device) -> VarlenPlan | PaddedPlan:
        """What a kernel reads."""
        return self.varlen_plan(device) if kernel == "varlen" else self.padded_plan(device)

    def varlen_plan(self, device: torch.device) -> VarlenPlan:
        """What variable-length kernels read; the plan for the last device is kept."""
        plan = self.plans.get("varlen")
        if not isinstance(plan, VarlenPlan) or not plan.is_on(device):
            plan = self.plans["varlen"] = map_leaves(self._varlen_plan(), lambda tensor: tensor.to(device))
        return plan

    def padded_plan(self, device: torch.device) -> PaddedPlan:
        """What padded attention reads; the plan for the last device is kept."""
        plan = self.plans.get("padded")
        if not isinstance(plan, PaddedPlan) or not plan.is_on(device):
            plan = self.plans["padded"] = map_leaves(self._padded_plan(), lambda tensor: tensor.to(device))
        return plan

    def _varlen_plan(self) -> VarlenPlan:
        queries, keys = (offsets_of(n).astype(np.int32) for n in (self.query_lengths_G, self.key_lengths_G))
        is_in_order = np.array_equal(self.key_rows, np.arange(len(self.key_rows)))
        return VarlenPlan(
            query_offsets=torch.from_numpy(queries),
            key_offsets=torch.from_numpy(keys),
            key_rows_M=None if is_in_order else torch.from_numpy(self.key_rows),
            max_queries=int(self.query_lengths_G.max()),
            max_keys=int(self.key_lengths_G.max()),
            distances_P=_to_tensor(self.distances),
            positions_N=_to_tensor(self.positions_N),
        )

    def _padded_plan(self) -> PaddedPlan:
        groups = _bucket_groups(self.query_lengths_G, self.key_lengths_G)
        query_starts, key_starts = (np.cumsum(n) - n for n in (self.query_lengths_G, self.key_lengths_G))
        return PaddedPlan(
            buckets=tuple(
                _make_bucket(self.query_lengths_G[ids], self.key_lengths_G[ids], self.is_causal) for ids in groups
            ),
            query_padding=_make_padding(groups, query_starts, self.query_lengths_G, np.arange(self.n_queries)),
            key_padding=_make_padding(groups, key_starts, self.key_lengths_G, self.key_rows),
            distances_P=_to_tensor(
                None if self.distances is None else _pad(groups, key_starts, self.key_lengths_G, self.distances)[0]
            ),
            positions_N=_to_tensor(self.positions_N),
        )

    def dense_mask(self, n_keys: int) -> Tensor:
        """Bool [N, n_keys], true where a query may see a key: the mask that the papers write down (Eq. 7)."""
        mask = torch.zeros(self.n_queries, n_keys, dtype=torch.bool)
        first_query = first_key = 0
        for n, m in zip(self.query_lengths_G.tolist(), self.key_lengths_G.tolist(), strict=True):
            keys = torch.from_numpy(self.key_rows[first_key : first_key + m])
            visible = torch.ones(n, m, dtype=torch.bool)
            if self.is_causal:
                visible = visible.tril(m - n)
            mask[first_query : first_query + n].index_copy_(1, keys, visible)
            first_query, first_key = first_query + n, first_key + m
        return mask


AnyGrouping = Grouping | PlannedGrouping
"""As a model computes with it, or as a compiler sees it."""


def _bucket_groups(query_lengths: np.ndarray, key_lengths: np.ndarray) -> list[np.ndarray]:
    """Sort groups by length and split them where padding would become wasteful; groups without queries are left out."""
    sizes = np.maximum(query_lengths, key_lengths)
    order = np.argsort(-sizes, kind="stable")
    order = order[query_lengths[order] > 0]
    buckets: list[list[int]] = []
    for group in order.tolist():
        if buckets:
            longest, count = sizes[buckets[-1][0]], len(buckets[-1])
            fill = sizes[group] / longest
            wasteful = fill < BUCKET_MIN_FILL and (count >= BUCKET_MIN_GROUPS or longest > 256)
            if not wasteful and fill >= BUCKET_WORST_FILL:
                buckets[-1].append(group)
                continue
        buckets.append([group])
    if all(len(bucket) == 1 for bucket in buckets):
        buckets.sort()
    return [np.array(sorted(bucket)) for bucket in buckets]


def _make_bucket(query_lengths: np.ndarray, key_lengths: np.ndarray, is_causal: bool) -> Bucket:
    n, m = int(query_lengths.max()), int(key_lengths.max())
    is_full = bool((query_lengths == n).all() and (key_lengths == m).all())
    n_ahead = int((key_lengths - query_lengths).max()) if is_causal else m
    if is_full and (not is_causal or n == m):
        return Bucket(len(query_lengths), n, m, n_ahead, None)
    column, row = np.arange(m), np.arange(n)
    seen = np.broadcast_to(key_lengths[:, None], (len(key_lengths), n))
    if is_causal:
        # A padded query would see more keys than there are: cap it.
        seen = np.minimum(seen, (key_lengths - query_lengths)[:, None] + row + 1)
    mask = column < seen[:, :, None]
    return Bucket(len(query_lengths), n, m, n_ahead, torch.from_numpy(mask))


def _to_tensor(array: np.ndarray | None) -> Tensor | None:
    return None if array is None else torch.from_numpy(array)


def _pad(
    bucket_groups: Sequence[np.ndarray], starts: np.ndarray, lengths: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put the values of each group at the start of its slot in its bucket, zeros elsewhere.

    Returns:
        The padded values, and where in them the values of the groups are, in the order of the buckets.
    """
    slot_starts = np.zeros(len(lengths), dtype=np.int64)
    n_padded = 0
    for groups in bucket_groups:
        longest = int(lengths[groups].max())
        slot_starts[groups] = n_padded + longest * np.arange(len(groups))
        n_padded += longest * len(groups)
    present = np.concatenate(list(bucket_groups)) if bucket_groups else np.array([], dtype=np.int64)
    targets = expand_ranges(slot_starts[present], lengths[present])
    padded = np.zeros(n_padded, dtype=np.int64)
    padded[targets] = values[expand_ranges(starts[present], lengths[present])]
    return padded, targets


def _make_padding(
    bucket_groups: Sequence[np.ndarray],
    starts: np.ndarray,
    lengths: np.ndarray,
    packed_rows: np.ndarray,
) -> Padding:
    """Put the rows of each group at the start of its slot in its bucket."""
    rows, targets = _pad(bucket_groups, starts, lengths, packed_rows)
    sources, n_padded = rows[targets], len(rows)
    n_packed = int(packed_rows.max()) + 1 if len(packed_rows) else 0
    is_permutation = len(sources) == n_packed and len(np.unique(sources)) == n_packed
    if is_permutation and n_padded == n_packed and np.array_equal(rows, np.arange(n_packed)):
        return Padding(None, None)
    places = None
    if is_permutation:
        places = np.empty(n_packed, dtype=np.int64)
        places[sources] = targets
        places = torch.from_numpy(places)
    return Padding(torch.from_numpy(rows), places)
