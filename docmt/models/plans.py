"""Plans: the index tensors that an attention kernel reads of a grouping, made ahead on the CPU and moved as one.

Shape letters: G groups, M keys in group order, N packed rows, P padded rows of all buckets (or M, where there is no
padding), g groups of one bucket, q
and k padded queries and keys of one bucket.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

Kernel = Literal["varlen", "padded"]
"""An implementation of ragged attention: variable-length flash attention, or padded buckets."""


@dataclass(frozen=True)
class VarlenPlan:
    """What variable-length kernels read.

    Attributes:
        query_offsets, key_offsets: int32 [G + 1].
        key_rows_M: int64 index of the keys in group order; None when they are already in that order.
        max_queries, max_keys: of the longest groups.
        distances_P: int64, of each key in group order; None where the pattern has none.
        positions_N: int64, of each query; None where the pattern has none.
    """

    query_offsets: Tensor
    key_offsets: Tensor
    key_rows_M: Tensor | None
    max_queries: int
    max_keys: int
    distances_P: Tensor | None = None
    positions_N: Tensor | None = None

    def is_on(self, device: torch.device) -> bool:
        """Whether its tensors are on this device."""
        return self.query_offsets.device == device


@dataclass(frozen=True)
class PlannedGrouping:
    """A grouping as a compiler sees it: its plan, and the variable-length kernel that reads it."""

    plan: VarlenPlan
    is_causal: bool
    kernel: Callable[..., Any]


@dataclass(frozen=True)
class Bucket:
    """Groups that are computed side by side as one padded batch.

    Attributes:
        n_groups: g.
        n_queries: q, queries of the longest group.
        n_keys: k, keys of the longest group.
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
    """How packed rows become the padded rows of the buckets.

    Attributes:
        rows_P: int64, the packed row in each padded row; padding repeats row 0. None when packed = padded.
        places_N: int64, the padded row of each packed row, to restore them; None when packed = padded, or when a packed
            row has no single place (keys that several groups see).
    """

    rows_P: Tensor | None
    places_N: Tensor | None


@dataclass(frozen=True)
class PaddedPlan:
    """What padded attention reads: how packed rows go into the buckets, and their masks.

    `distances_P` and `positions_N` are as in `VarlenPlan`, the first of padded keys.
    """

    buckets: tuple[Bucket, ...]
    query_padding: Padding
    key_padding: Padding
    distances_P: Tensor | None = None
    positions_N: Tensor | None = None

    def is_on(self, device: torch.device) -> bool:
        """Whether its tensors, if it has any, are on this device."""
        tensors = (self.query_padding.rows_P, self.key_padding.rows_P, *(bucket.mask_gqk for bucket in self.buckets))
        tensors += (self.distances_P,)
        first = next((tensor for tensor in tensors if tensor is not None), None)
        return first is None or first.device == device
