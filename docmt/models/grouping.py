"""Groupings: which list of keys each group of queries sees.

Every attention pattern of the three papers is such a grouping. Queries are packed (no padding), group after group;
a group's keys are any rows of the packed keys. For computing, groups of similar size are combined in buckets, so that
little of a padded batch is padding.

Shape letters: N packed queries, M packed keys, G groups, U units, P padded rows of all buckets (or pairs of a group and
a unit), g groups of one bucket, q and k padded queries and keys of one bucket.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges, offsets_of

BUCKET_MIN_FILL = 0.8
"""A bucket is closed when the next group would fill less than this share of its length …"""
BUCKET_MIN_GROUPS = 16
"""… and it already has this many groups: each bucket costs some kernel launches."""
BUCKET_WORST_FILL = 0.5
"""A group shorter than this share of the bucket's length always opens a new bucket."""


@dataclass(frozen=True)
class Bucket:
    """Groups that are computed side by side as one padded batch.

    Attributes:
        n_groups: g.
        n_queries: q, queries of the longest group.
        n_keys: k, keys of the longest group.
        mask_gqk: bool, true where a query may see a key; None when the batch has no padding, and causality (if any) is
            the plain lower triangle. A padded query sees one key, so that its softmax is finite.
    """

    n_groups: int
    n_queries: int
    n_keys: int
    mask_gqk: Tensor | None

    @cached_property
    def bias_gqk(self) -> Tensor | None:
        """float32 [g, q, k], 0 where the mask is true and −inf elsewhere."""
        if self.mask_gqk is None:
            return None
        return torch.zeros(self.mask_gqk.shape, device=self.mask_gqk.device).masked_fill_(~self.mask_gqk, -torch.inf)


@dataclass(frozen=True)
class Padding:
    """How packed rows become the padded rows of the buckets.

    Attributes:
        rows_P: int64, the packed row in each padded row; padding repeats row 0. None when packed = padded.
        places_N: int64, the padded row of each packed row, to restore them; None when packed = padded, or when a packed
            row has no single place (keys that several groups see).
    """

    rows_P: Tensor | None
    places_N: Tensor | None


@dataclass(frozen=True)
class Grouping:
    """Which keys each group of queries sees.

    Attributes:
        query_lengths_G: int64 array, queries of each group; groups follow one another in the packed queries.
        key_lengths_G: int64 array, keys of each group, at least 1.
        key_rows: int64 array [sum of key_lengths], the packed key rows that each group sees, group after group.
        is_causal: whether query j of a group of n queries and m keys sees only its first m − n + j + 1 keys.
        device: where the index tensors go.
    """

    query_lengths_G: np.ndarray
    key_lengths_G: np.ndarray
    key_rows: np.ndarray
    is_causal: bool
    device: torch.device

    @classmethod
    def of_ranges(
        cls,
        query_lengths_G: np.ndarray,
        key_starts_G: np.ndarray,
        key_lengths_G: np.ndarray,
        *,
        is_causal: bool = False,
        device: torch.device | str = "cpu",
    ) -> "Grouping":
        """Groups with one contiguous range of the packed keys each."""
        key_rows = expand_ranges(key_starts_G, key_lengths_G)
        return cls(query_lengths_G, key_lengths_G, key_rows, is_causal, torch.device(device))

    @classmethod
    def of_units(
        cls,
        groups_P: np.ndarray,
        units_P: np.ndarray,
        *,
        query_lengths_G: np.ndarray,
        key_lengths_U: np.ndarray,
        is_causal: bool = False,
        device: torch.device | str = "cpu",
    ) -> "Grouping":
        """Groups whose keys are whole units, such as sentences or EDUs, in packed order.

        Args:
            groups_P: int64, with `units_P` the pairs of a group and a unit that it sees, in any order; each group sees
                at least one.
            units_P: int64.
            query_lengths_G: int64, queries of each group.
            key_lengths_U: int64, keys of each unit.
            is_causal: see `Grouping`; then the own unit of a group must be the last one that it sees.
            device: where the index tensors go.
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
            torch.device(device),
        )

    @property
    def n_queries(self) -> int:
        """N, packed queries."""
        return int(self.query_lengths_G.sum())

    @cached_property
    def cumulative_lengths(self) -> tuple[Tensor, Tensor]:
        """int32 [G + 1] query and key offsets, as variable-length kernels take them."""
        queries, keys = (offsets_of(n).astype(np.int32) for n in (self.query_lengths_G, self.key_lengths_G))
        return torch.from_numpy(queries).to(self.device), torch.from_numpy(keys).to(self.device)

    @cached_property
    def key_rows_index(self) -> Tensor | None:
        """int64 index of the keys in group order; None when they are already in that order."""
        if np.array_equal(self.key_rows, np.arange(len(self.key_rows))):
            return None
        return torch.from_numpy(self.key_rows).to(self.device)

    @cached_property
    def bucket_groups(self) -> list[np.ndarray]:
        """The groups of each bucket."""
        return _bucket_groups(self.query_lengths_G, self.key_lengths_G)

    @cached_property
    def buckets(self) -> list[Bucket]:
        """The padded batches."""
        return [
            _make_bucket(self.query_lengths_G[ids], self.key_lengths_G[ids], self.is_causal, self.device)
            for ids in self.bucket_groups
        ]

    @cached_property
    def query_padding(self) -> Padding:
        """How queries go into the buckets and outputs come back."""
        starts = np.cumsum(self.query_lengths_G) - self.query_lengths_G
        rows = np.arange(self.n_queries)
        return _make_padding(self.bucket_groups, starts, self.query_lengths_G, rows, self.device)

    @cached_property
    def key_padding(self) -> Padding:
        """How keys and values go into the buckets."""
        starts = np.cumsum(self.key_lengths_G) - self.key_lengths_G
        return _make_padding(self.bucket_groups, starts, self.key_lengths_G, self.key_rows, self.device)

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
        return mask.to(self.device)


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


def _make_bucket(query_lengths: np.ndarray, key_lengths: np.ndarray, is_causal: bool, device: torch.device) -> Bucket:
    n, m = int(query_lengths.max()), int(key_lengths.max())
    is_full = bool((query_lengths == n).all() and (key_lengths == m).all())
    if is_full and (not is_causal or n == m):
        return Bucket(len(query_lengths), n, m, None)
    column, row = np.arange(m), np.arange(n)
    seen = np.broadcast_to(key_lengths[:, None], (len(key_lengths), n))
    if is_causal:
        # A padded query would see more keys than there are: cap it.
        seen = np.minimum(seen, (key_lengths - query_lengths)[:, None] + row + 1)
    mask = column < seen[:, :, None]
    return Bucket(len(query_lengths), n, m, torch.from_numpy(mask).to(device))


def _make_padding(
    bucket_groups: Sequence[np.ndarray],
    starts: np.ndarray,
    lengths: np.ndarray,
    packed_rows: np.ndarray,
    device: torch.device,
) -> Padding:
    """Put the rows of each group at the start of its slot in its bucket."""
    slot_starts = np.zeros(len(lengths), dtype=np.int64)
    n_padded = 0
    for groups in bucket_groups:
        longest = int(lengths[groups].max())
        slot_starts[groups] = n_padded + longest * np.arange(len(groups))
        n_padded += longest * len(groups)
    present = np.concatenate(list(bucket_groups)) if bucket_groups else np.array([], dtype=np.int64)
    sources = packed_rows[expand_ranges(starts[present], lengths[present])]
    targets = expand_ranges(slot_starts[present], lengths[present])
    rows = np.zeros(n_padded, dtype=np.int64)
    rows[targets] = sources
    n_packed = int(packed_rows.max()) + 1 if len(packed_rows) else 0
    is_permutation = len(sources) == n_packed and len(np.unique(sources)) == n_packed
    if is_permutation and n_padded == n_packed and np.array_equal(rows, np.arange(n_packed)):
        return Padding(None, None)
    places = None
    if is_permutation:
        places = np.empty(n_packed, dtype=np.int64)
        places[sources] = targets
        places = torch.from_numpy(places).to(device)
    return Padding(torch.from_numpy(rows).to(device), places)
