"""Groupings: which list of keys each group of queries sees, and the index tensors that kernels read of them.

Every attention pattern is such a grouping. Queries are packed (no padding), group after group; a group's keys are any
rows of the packed keys. For computing, groups of similar size are combined in buckets, so that little of a padded batch
is padding.

Shape letters: N packed queries (or packed rows of either side), M keys in group order, G groups, U units, P pairs of a
group and a unit (or padded rows of all buckets), g groups of one bucket, q and k its padded queries and keys.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from docmt.instances.storage import expand_ranges, offsets_of
from docmt.models.buffers import map_leaves

Kernel = Literal["varlen", "padded"]
"""An implementation of ragged attention: variable-length kernels, or padded buckets."""


@dataclass(frozen=True)
class VarlenInputs:
    """Inputs of variable-length attention kernels.

    Attributes:
        query_offsets, key_offsets: int32 [G + 1].
        key_rows_M: int64 index of the keys in group order; None when they are already in that order.
        distances_P, positions_N: int64, of each key in group order and of each query; None where the pattern has none.
    """

    query_offsets: Tensor
    key_offsets: Tensor
    key_rows_M: Tensor | None
    max_queries: int
    max_keys: int
    distances_P: Tensor | None = None
    positions_N: Tensor | None = None

    def is_on(self, device: torch.device) -> bool:
        return self.query_offsets.device == device


@dataclass(frozen=True)
class CompiledGrouping:
    """A grouping as a compiler sees it: its index tensors, and the variable-length kernel that reads it."""

    inputs: VarlenInputs
    is_causal: bool
    kernel: Callable[..., Any]


@dataclass(frozen=True)
class Bucket:
    """Groups that are computed side by side as one padded batch.

    Attributes:
        n_queries, n_keys: of the longest group, q and k.
        n_ahead: query j (from 0) of no group sees more than the first `n_ahead` + j + 1 keys; k if not causal.
        mask_gqk: bool, true where a query may see a key; None when the batch has no padding, and causality (if any) is
            the plain lower triangle. A padded query sees one key, so that its softmax is finite.
    """

    n_groups: int
    n_queries: int
    n_keys: int
    n_ahead: int
    mask_gqk: Tensor | None

    @cached_property
    def bias_gqk(self) -> Tensor | None:
        """float32 [g, q, k], 0 where the mask is true and −inf elsewhere."""
        if self.mask_gqk is None:
            return None
        return torch.zeros(self.mask_gqk.shape, device=self.mask_gqk.device).masked_fill_(~self.mask_gqk, -torch.inf)


@dataclass(frozen=True)
class Padding:
    """Indexes that turn packed rows into the padded rows of the buckets.

    Attributes:
        rows_P: int64, the packed row in each padded row; padding repeats row 0. None when packed = padded.
        places_N: int64, the padded row of each packed row, to restore them; None when packed = padded, or when a packed
            row has no single place (keys that several groups see).
    """

    rows_P: Tensor | None
    places_N: Tensor | None


@dataclass(frozen=True)
class PaddedInputs:
    """Inputs of padded attention: the places of packed rows in the buckets, and masks.

    `distances_P` and `positions_N` are as in `VarlenInputs`, the first of padded keys.
    """

    buckets: tuple[Bucket, ...]
    query_padding: Padding
    key_padding: Padding
    distances_P: Tensor | None = None
    positions_N: Tensor | None = None

    def is_on(self, device: torch.device) -> bool:
        """Whether its tensors, if it has any, are on this device."""
        masks = (bucket.mask_gqk for bucket in self.buckets)
        tensors = (self.query_padding.rows_P, self.key_padding.rows_P, *masks, self.distances_P)
        first = next((tensor for tensor in tensors if tensor is not None), None)
        return first is None or first.device == device


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
        positions_N: int64 array, the position of each query in its instance; None where it is not needed.
        kernel_inputs: made when they are first asked for on a device; those of the last device are kept.
    """

    query_lengths_G: np.ndarray
    key_lengths_G: np.ndarray
    key_rows: np.ndarray
    is_causal: bool
    distances: np.ndarray | None = None
    positions_N: np.ndarray | None = None
    kernel_inputs: dict[Kernel, VarlenInputs | PaddedInputs] = field(default_factory=dict, repr=False, compare=False)

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

        `groups_P` and `units_P` are the pairs of a group and a unit that it sees, in any order; each group sees at
        least one. If causal, the own unit of a group must be the last one that it sees.
        """
        n_units = len(key_lengths_U)
        # One number per pair: `unique` sorts the pairs by group, then unit, and drops pairs that are given twice.
        groups_P, units_P = np.divmod(np.unique(groups_P * n_units + units_P), n_units)
        key_starts_U = np.cumsum(key_lengths_U) - key_lengths_U
        lengths_P = key_lengths_U[units_P]
        return cls(
            query_lengths_G,
            # `reduceat` sums from each start to the next; a group starts where the number of the group changes.
            np.add.reduceat(lengths_P, np.flatnonzero(np.diff(groups_P, prepend=-1))),
            expand_ranges(key_starts_U[units_P], lengths_P),
            is_causal,
        )

    @property
    def n_queries(self) -> int:
        return int(self.query_lengths_G.sum())

    def varlen_inputs(self, device: torch.device) -> VarlenInputs:
        return cast(VarlenInputs, self.inputs_for("varlen", device))

    def padded_inputs(self, device: torch.device) -> PaddedInputs:
        return cast(PaddedInputs, self.inputs_for("padded", device))

    def inputs_for(self, kernel: Kernel, device: torch.device) -> VarlenInputs | PaddedInputs:
        found = self.kernel_inputs.get(kernel)
        if found is None or not found.is_on(device):
            made = self._varlen_inputs() if kernel == "varlen" else self._padded_inputs()
            found = self.kernel_inputs[kernel] = map_leaves(made, lambda tensor: tensor.to(device))
        return found

    def _varlen_inputs(self) -> VarlenInputs:
        # Flash attention takes int32 offsets only.
        queries, keys = (offsets_of(n).astype(np.int32) for n in (self.query_lengths_G, self.key_lengths_G))
        # Keys that are in order already need no gather, which would copy all of them in every layer.
        is_in_order = np.array_equal(self.key_rows, np.arange(len(self.key_rows)))
        return VarlenInputs(
            query_offsets=torch.from_numpy(queries),
            key_offsets=torch.from_numpy(keys),
            key_rows_M=None if is_in_order else torch.from_numpy(self.key_rows),
            max_queries=int(self.query_lengths_G.max()),
            max_keys=int(self.key_lengths_G.max()),
            distances_P=_to_tensor(self.distances),
            positions_N=_to_tensor(self.positions_N),
        )

    def _padded_inputs(self) -> PaddedInputs:
        groups = _bucket_groups(self.query_lengths_G, self.key_lengths_G)
        query_starts, key_starts = (np.cumsum(n) - n for n in (self.query_lengths_G, self.key_lengths_G))
        return PaddedInputs(
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
                # The last query sees all m keys: the triangle is aligned at its lower right corner.
                visible = visible.tril(m - n)
            mask[first_query : first_query + n].index_copy_(1, keys, visible)
            first_query, first_key = first_query + n, first_key + m
        return mask


AnyGrouping = Grouping | CompiledGrouping
"""A grouping as a model computes with it, or as a compiler sees it."""


def _bucket_groups(query_lengths: np.ndarray, key_lengths: np.ndarray) -> list[np.ndarray]:
    """Sort groups by length and split them where padding would become wasteful; groups without queries are left out."""
    sizes = np.maximum(query_lengths, key_lengths)
    # Stable: groups of equal length keep their packed order.
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
    # Buckets of one group each in packed order are the packed rows themselves, which need no gather.
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
    # The number of keys that each query sees: always the first ones, so a comparison with the column makes the mask.
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
    """The values of each group at the start of its slot in its bucket, zeros elsewhere; and their places."""
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
    bucket_groups: Sequence[np.ndarray], starts: np.ndarray, lengths: np.ndarray, packed_rows: np.ndarray
) -> Padding:
    """Put the rows of each group at the start of its slot in its bucket."""
    rows, targets = _pad(bucket_groups, starts, lengths, packed_rows)
    sources, n_padded = rows[targets], len(rows)
    n_packed = int(packed_rows.max()) + 1 if len(packed_rows) else 0
    # Only where each packed row is used exactly once can padded rows be put back.
    is_permutation = len(sources) == n_packed and len(np.unique(sources)) == n_packed
    if is_permutation and n_padded == n_packed and np.array_equal(rows, np.arange(n_packed)):
        return Padding(None, None)
    places = None
    if is_permutation:
        places = np.empty(n_packed, dtype=np.int64)
        places[sources] = targets
        places = torch.from_numpy(places)
    return Padding(torch.from_numpy(rows), places)
