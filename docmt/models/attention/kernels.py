"""Ragged attention: each group of packed queries attends to its own list of packed keys. All models compute with it.

There are two implementations, with equal results: padded batches with groups of similar size (any device), and
variable-length attention (CUDA, half precision: `varlen.py`, `short_groups.py`). Both read index tensors. Tests compare
them with a dense mask.

Shape letters: N packed queries, M packed keys, H heads, K head width, G groups, P padded rows (or keys in group order).
In a padded batch: g groups, q and k padded queries and keys, b queries in a block, s keys that the block may see.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.models.attention.patterns import Grouping
from docmt.models.attention.varlen import Adjust, VarlenIndexes, attend_packed, find_flash, optional_tensor
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16
from docmt.ranges import starts_of

Kernel = Literal["varlen", "padded"]
"""Implementation of ragged attention."""
Projections = tuple[Tensor, Tensor, Tensor, Adjust | None]
"""Queries [N, H, K], keys and values [M, H, K], and an adjustment, or None where keys do not depend on the query group.
"""

BATCH_MIN_FILL = 0.8
"""A padded batch is closed if the next group would fill less than this share of its length …"""
BATCH_MIN_GROUPS = 16
"""… and it already has this many groups, because every batch costs some kernel launches."""
BATCH_WORST_FILL = 0.5
"""A group shorter than this share of the batch's length always opens a new batch."""
EXPLICIT_MAX_KEYS = 512
"""Maximum keys for which whole-group products were fastest on a CPU in bfloat16."""
BLOCK_QUERIES = 128
"""Queries per block where later queries see more keys."""
WIDE_BLOCK_QUERIES = 256
"""Queries per block where all queries see the same keys."""
MAX_KEPT_WEIGHTS = 2**25
"""Maximum attention weights per call that are kept for the backward pass. More are computed again there."""


@dataclass(frozen=True)
class PaddedBatch:
    """Groups that are computed side by side.

    Attributes:
        n_queries, n_keys: q and k, the lengths of the longest group.
        n_ahead: query j (from 0) in any group sees at most the first `n_ahead` + j + 1 keys. Equals k if not causal.
        mask_gqk: bool, true where a query may see a key. None if nothing is padded and causality (if any) is the plain
            lower triangle. A padded query sees one key, so that its softmax is finite.
    """

    n_groups: int
    n_queries: int
    n_keys: int
    n_ahead: int
    mask_gqk: Tensor | None

    @classmethod
    def of(cls, query_lengths: np.ndarray, key_lengths: np.ndarray, is_causal: bool) -> "PaddedBatch":
        """Return the batch for groups with these lengths, int64 [g]."""
        n, m = int(query_lengths.max()), int(key_lengths.max())
        is_full = bool((query_lengths == n).all() and (key_lengths == m).all())
        n_ahead = m
        if is_causal:
            n_ahead = int((key_lengths - query_lengths).max())
        if is_full and (not is_causal or n == m):
            return cls(len(query_lengths), n, m, n_ahead, None)
        # The number of keys that each query sees: always the first ones, so a comparison with the column is the mask.
        seen = np.broadcast_to(key_lengths[:, None], (len(key_lengths), n))
        if is_causal:
            # A padded query would see more keys than there are: cap it.
            seen = np.minimum(seen, (key_lengths - query_lengths)[:, None] + np.arange(n) + 1)
        return cls(len(query_lengths), n, m, n_ahead, torch.from_numpy(np.arange(m) < seen[:, :, None]))

    @cached_property
    def bias_gqk(self) -> Tensor | None:
        """float32 [g, q, k], 0 where the mask is true and −inf elsewhere."""
        if self.mask_gqk is None:
            return None
        return torch.zeros(self.mask_gqk.shape, device=self.mask_gqk.device).masked_fill_(~self.mask_gqk, -torch.inf)


@dataclass(frozen=True)
class PaddedRows:
    """Indexes that gather packed rows into the padded rows of all batches, and back.

    Attributes:
        packed_P: int64, the packed row in every padded row. Padding repeats row 0. None if packed = padded.
        padded_N: int64, the padded row for every packed row. None if packed = padded, or if groups share packed rows
            (as keys).
    """

    packed_P: Tensor | None
    padded_N: Tensor | None

    @classmethod
    def of(cls, items_P: np.ndarray, packed_rows: np.ndarray) -> "PaddedRows":
        """Return the indexes for padded rows with the given items (−1: padding).

        `packed_rows` are the packed rows by item.
        """
        padded = np.flatnonzero(items_P >= 0)
        packed = packed_rows[items_P[padded]]
        packed_P = np.zeros_like(items_P)
        packed_P[padded] = packed
        n_packed = 0
        if len(packed_rows):
            n_packed = int(packed_rows.max()) + 1
        # Only where each packed row is used exactly once can padded rows be put back.
        is_permutation = len(packed) == n_packed and bool(np.bincount(packed, minlength=n_packed).all())
        if is_permutation and np.array_equal(packed_P, np.arange(n_packed)):
            return cls(None, None)
        padded_N = None
        if is_permutation:
            padded_N = np.empty(n_packed, dtype=np.int64)
            padded_N[packed] = padded
        return cls(torch.from_numpy(packed_P), optional_tensor(padded_N))


@dataclass(frozen=True)
class PaddedIndexes:
    """A grouping as index tensors for padded attention.

    Distances are per padded key, positions as in `VarlenIndexes`.
    """

    batches: tuple[PaddedBatch, ...]
    queries: PaddedRows
    keys: PaddedRows
    distances_P: Tensor | None
    positions_N: Tensor | None
    is_causal: bool

    @classmethod
    def of(cls, grouping: Grouping) -> "PaddedIndexes":
        """Return the index tensors for a grouping, on the CPU."""
        lengths = grouping.query_lengths_G, grouping.key_lengths_G
        batches = _batch_groups(*lengths)
        queries_P, keys_P = (_pad_items(batches, lengths_G) for lengths_G in lengths)
        distances_P = None
        if grouping.distances is not None:
            distances_P = np.where(keys_P < 0, 0, grouping.distances[keys_P])
        return cls(
            tuple(PaddedBatch.of(lengths[0][i], lengths[1][i], grouping.is_causal) for i in batches),
            PaddedRows.of(queries_P, np.arange(grouping.n_queries)),
            PaddedRows.of(keys_P, grouping.key_rows),
            optional_tensor(distances_P),
            optional_tensor(grouping.positions_N),
            grouping.is_causal,
        )


KernelIndexes = VarlenIndexes | PaddedIndexes
"""A grouping as an attention kernel reads it."""


def indexes_for(grouping: Grouping, kernel: Kernel) -> KernelIndexes:
    """Return the index tensors for a grouping, on the CPU."""
    return VarlenIndexes.of(grouping) if kernel == "varlen" else PaddedIndexes.of(grouping)


def _batch_groups(query_lengths: np.ndarray, key_lengths: np.ndarray) -> list[np.ndarray]:
    """Sort groups by length and split them where padding becomes wasteful. Groups without queries are excluded."""
    sizes = np.maximum(query_lengths, key_lengths)
    # Stable: groups of equal length keep their packed order.
    order = np.argsort(-sizes, kind="stable")
    batches: list[list[int]] = []
    for group in order[query_lengths[order] > 0].tolist():
        if batches:
            longest, count = sizes[batches[-1][0]], len(batches[-1])
            fill = sizes[group] / longest
            wasteful = fill < BATCH_MIN_FILL and (count >= BATCH_MIN_GROUPS or longest > 256)
            if not wasteful and fill >= BATCH_WORST_FILL:
                batches[-1].append(group)
                continue
        batches.append([group])
    # Batches of one group each in packed order are the packed rows themselves, which need no gather.
    if all(len(batch) == 1 for batch in batches):
        batches.sort()
    return [np.array(sorted(batch)) for batch in batches]


def _pad_items(batches: Sequence[np.ndarray], lengths_G: np.ndarray) -> np.ndarray:
    """Return the item in every padded row, numbered group after group, with −1 for padding, int64 [P]."""
    starts_G = starts_of(lengths_G)
    items = [np.empty(0, dtype=np.int64)]
    for groups in batches:
        lengths, columns = lengths_G[groups][:, None], np.arange(lengths_G[groups].max())
        items.append(np.where(columns < lengths, starts_G[groups][:, None] + columns, -1).ravel())
    return np.concatenate(items)


def kernel_for(device: torch.device, dtype: torch.dtype, head_width: int) -> Kernel:
    """Return the fastest implementation for a device, dtype and head width."""
    # Flash attention reads 16 bytes at a time, and holds at most 256 entries of a head.
    fits = dtype in (torch.float16, torch.bfloat16) and head_width % 8 == 0 and head_width <= 256
    if device.type != "cuda" or not fits or torch.cuda.get_device_capability(device) < CAPABILITY_WITH_BFLOAT16:
        return "padded"
    if find_flash() is not None:
        return "varlen"
    return "padded"


def ragged_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, indexes: KernelIndexes, adjust: Adjust | None = None
) -> Tensor:
    """Softmax attention from query groups to their own lists of at least one key. [N, H, K]."""
    if isinstance(indexes, PaddedIndexes):
        return padded_attention(query_NHK, key_MHK, value_MHK, indexes, adjust)
    return attend_packed((query_NHK[:, None], key_MHK[:, None], value_MHK[:, None]), indexes, adjust)


def distances_of(indexes: KernelIndexes) -> Tensor:
    """Return the key distances, int64 [P]. Only for patterns with distances."""
    assert indexes.distances_P is not None, "asked for only where the pattern says them"
    return indexes.distances_P


def padded_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, indexes: PaddedIndexes, adjust: Adjust | None = None
) -> Tensor:
    """Ragged attention with padded batches of groups that have similar sizes."""
    query_PHK = _pad_rows(query_NHK, indexes.queries)
    key_PHK, value_PHK = _pad_rows(key_MHK, indexes.keys), _pad_rows(value_MHK, indexes.keys)
    if adjust is not None:
        key_PHK, value_PHK = adjust(key_PHK, value_PHK, distances_of(indexes))
    outputs = []
    for batch, query, key, value in _split_batches(indexes, query_PHK, key_PHK, value_PHK):
        output_gHqK = _batch_attention(query, key, value, batch, indexes.is_causal)
        outputs.append(output_gHqK.transpose(1, 2).flatten(0, 1))
    return _unpad_rows(outputs[0] if len(outputs) == 1 else torch.cat(outputs), indexes.queries)


@torch.no_grad()
def attention_entropy(
    query_NHK: Tensor, key_MHK: Tensor, indexes: PaddedIndexes, adjust: Adjust | None = None
) -> Tensor:
    """Return the entropy in bits of attention weights averaged over heads (G-Transformer, §3.2), float32 [N]."""
    # Entropies are sums of many small terms, so they are computed in float32 also where the model has half precision.
    query_PHK, key_PHK = _pad_rows(query_NHK.float(), indexes.queries), _pad_rows(key_MHK.float(), indexes.keys)
    if adjust is not None:
        key_PHK, _ = adjust(key_PHK, key_PHK, distances_of(indexes))
    entropies = []
    for batch, query, key, _ in _split_batches(indexes, query_PHK, key_PHK, key_PHK):
        # The paper averages the weights over heads before the entropy, which differs from the mean of entropies.
        with torch.autocast(query.device.type, enabled=False):
            weights_gqk = _weights(query, key, batch.bias_gqk, batch.n_ahead).mean(1)
        # `entr` gives 0 for weight 0, where −w · log w would be NaN. It is in nats.
        entropies.append(torch.special.entr(weights_gqk).sum(-1).flatten() / math.log(2))
    return _unpad_rows(torch.cat(entropies), indexes.queries)


def _split_batches(
    indexes: PaddedIndexes, query_PHK: Tensor, key_PHK: Tensor, value_PHK: Tensor
) -> Iterator[tuple[PaddedBatch, Tensor, Tensor, Tensor]]:
    """Yield padded batches with their [g, H, q or k, K] views."""
    first_query = first_key = 0
    for batch in indexes.batches:
        g, n, m = batch.n_groups, batch.n_queries, batch.n_keys
        query = query_PHK[first_query : first_query + g * n].unflatten(0, (g, n)).transpose(1, 2)
        key = key_PHK[first_key : first_key + g * m].unflatten(0, (g, m)).transpose(1, 2)
        value = value_PHK[first_key : first_key + g * m].unflatten(0, (g, m)).transpose(1, 2)
        yield batch, query, key, value
        first_query, first_key = first_query + g * n, first_key + g * m


def _batch_attention(query: Tensor, key: Tensor, value: Tensor, batch: PaddedBatch, is_causal: bool) -> Tensor:
    """Attention in one padded batch, [g, H, q, K]."""
    if query.device.type == "cpu" and _pays_in_blocks(query, batch, is_causal):
        return BlockAttention.apply(query, key, value, batch.bias_gqk, batch.n_ahead)  # pyright: ignore[reportReturnType]
    if query.device.type == "cpu" and query.dtype == torch.bfloat16:
        return torch.matmul(_weights(query, key, batch.bias_gqk, batch.n_ahead), value)
    # A causal batch without a mask has as many queries as keys, so the lower triangle of the kernel is right.
    if batch.bias_gqk is None:
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=batch.bias_gqk[:, None].to(query.dtype))


def _pays_in_blocks(query: Tensor, batch: PaddedBatch, is_causal: bool) -> bool:
    """True if blocks were fastest on a CPU, by measurement."""
    if query.dtype == torch.bfloat16:
        return batch.n_keys > (BLOCK_QUERIES if is_causal else EXPLICIT_MAX_KEYS)
    return is_causal and batch.mask_gqk is not None and batch.n_keys > 2 * BLOCK_QUERIES


class BlockAttention(torch.autograd.Function):
    """Softmax attention for one padded batch on a CPU, [g, H, q, K], that multiplies only keys that a block may see.

    torch's fused kernel multiplies all keys in a masked batch and is slow in bfloat16. Row j sees at most the first
    `n_ahead` + j + 1 keys. `bias_gqk`, float32, is 0 for visible keys and −inf otherwise. Without it, row j sees all of
    these keys.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias_gqk: Tensor | None, n_ahead: int) -> Tensor:
        output = torch.empty_like(query)
        saved_weights: list[Tensor] = []
        is_kept = query.shape[:3].numel() * key.shape[2] <= MAX_KEPT_WEIGHTS
        for rows, n_seen in _blocks(query, key, n_ahead):
            weights = _weights(query, key, bias_gqk, n_ahead, rows, n_seen)
            output[:, :, rows] = torch.matmul(weights, value[:, :, :n_seen])
            if is_kept:
                saved_weights.append(weights)
        ctx.save_for_backward(query, key, value, bias_gqk, output, *saved_weights)
        ctx.n_ahead = n_ahead
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias_gqk, output, *saved_weights = ctx.saved_tensors
        (gradient,), n_ahead, scale = grad_outputs, ctx.n_ahead, query.shape[-1] ** -0.5
        query_gradient = torch.empty_like(query)
        key_gradient, value_gradient = torch.zeros_like(key), torch.zeros_like(value)
        for number, (rows, n_seen) in enumerate(_blocks(query, key, n_ahead)):
            weights = saved_weights[number] if saved_weights else _weights(query, key, bias_gqk, n_ahead, rows, n_seen)
            block = gradient[:, :, rows]
            value_gradient[:, :, :n_seen] += torch.matmul(weights.transpose(-1, -2), block)
            # The gradient of a softmax: weights ⊙ (gradient − mean of gradient · output).
            mean = (block * output[:, :, rows]).sum(-1, keepdim=True)
            scores_gradient = torch.matmul(block, value[:, :, :n_seen].transpose(-1, -2)).sub_(mean).mul_(weights)
            query_gradient[:, :, rows] = torch.matmul(scores_gradient, key[:, :, :n_seen]).mul_(scale)
            key_gradient[:, :, :n_seen] += torch.matmul(scores_gradient.transpose(-1, -2), query[:, :, rows] * scale)
        return query_gradient, key_gradient, value_gradient, None, None


def _blocks(query: Tensor, key: Tensor, n_ahead: int) -> Iterator[tuple[slice, int]]:
    """Yield the queries in every block, with the number of keys that they may see."""
    n, m = query.shape[2], key.shape[2]
    size = BLOCK_QUERIES
    if n_ahead >= m:
        size = WIDE_BLOCK_QUERIES
    for start in range(0, n, size):
        end = min(start + size, n)
        yield slice(start, end), min(m, n_ahead + end)


def _weights(
    query: Tensor, key: Tensor, bias_gqk: Tensor | None, n_ahead: int, rows: slice = slice(None),
    n_seen: int | None = None,
) -> Tensor:  # fmt: skip
    """Return attention weights for some queries in a padded batch, [g, H, b, s]. See `BlockAttention`."""
    key = key[:, :, :n_seen]
    # Queries are scaled before the product: there are fewer of them than scores.
    scores = torch.matmul(query[:, :, rows] * query.shape[-1] ** -0.5, key.transpose(-1, -2))
    n, m = scores.shape[2:]
    if bias_gqk is not None:
        scores += bias_gqk[:, None, rows, :m]
    elif n_ahead == 0:
        future = torch.ones(n, n, dtype=torch.bool, device=scores.device).triu_(1)
        scores[..., m - n :].masked_fill_(future, -torch.inf)
    return scores.softmax(-1)


def _pad_rows(rows: Tensor, index: PaddedRows) -> Tensor:
    """Gather packed rows [N, …] into padded rows [P, …]."""
    if index.packed_P is None:
        return rows
    # Gradients of keys that several groups see must be added up, as `index_select` does.
    if index.padded_N is not None and len(index.padded_N) == len(rows):
        return _Pad.apply(rows, index.packed_P, index.padded_N)
    return rows.index_select(0, index.packed_P)


def _unpad_rows(rows: Tensor, index: PaddedRows) -> Tensor:
    """Gather padded rows [P, …] into packed rows [N, …]."""
    if index.packed_P is None:
        return rows
    return _Unpad.apply(rows, index.padded_N)


class _Pad(torch.autograd.Function):
    """A gather whose backward pass also gathers. This is cheaper than the scatter-add in `index_select`.

    The gradient for padding rows is dropped. Masks keep it at zero.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, packed_P: Tensor, padded_N: Tensor) -> Tensor:
        ctx.save_for_backward(padded_N)
        return rows.index_select(0, packed_P)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (gradient,), (padded_N,) = grad_outputs, ctx.saved_tensors
        return gradient.index_select(0, padded_N), None, None


class _Unpad(torch.autograd.Function):
    """The inverse gather. Padding rows get a zero gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, padded_N: Tensor) -> Tensor:
        ctx.save_for_backward(padded_N)
        ctx.n_padded = len(rows)
        return rows.index_select(0, padded_N)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (gradient,), (padded_N,) = grad_outputs, ctx.saved_tensors
        # Padding rows are read by nobody, and packed rows are in one padded row: a copy without addition is enough.
        padded = gradient.new_zeros(ctx.n_padded, *gradient.shape[1:])
        return padded.index_copy_(0, padded_N, gradient), None
