"""Ragged attention: packed queries, keys and values, and a grouping. The one primitive of all models.

Three implementations that must agree: a dense mask (the oracle in tests), buckets of padded batches (any device), and
variable-length attention (CUDA, half precision; `varlen.py`).

Shape letters: N packed queries, M packed keys, H heads, K head width, P padded rows (or keys in the order of the groups
that see them), g groups of a bucket, q and k its padded queries and keys.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.models.attention.block_attention import BLOCK_QUERIES, BlockAttention, padded_weights
from docmt.models.attention.grouping import (
    AnyGrouping,
    Bucket,
    CompiledGrouping,
    Grouping,
    Kernel,
    PaddedInputs,
    Padding,
    VarlenInputs,
)
from docmt.models.attention.varlen import find_varlen
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16

EXPLICIT_MAX_KEYS = 512
"""Up to this many keys, products of whole groups are fastest on a CPU in bfloat16 (docs/experiments/performance.md)."""
Adjust = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Makes the keys and values that groups see, [P, H, K], of projected ones and their distances, int64 [P]."""
AttentionInputs = tuple[Tensor, Tensor, Tensor, Adjust | None]
"""Queries [N, H, K], keys and values [M, H, K] of one attention; None where keys do not depend on who sees them."""


def kernel_for(device: torch.device, dtype: torch.dtype, head_width: int) -> Kernel:
    """The implementation that `ragged_attention` uses for queries of this type and head width on this device."""
    # Flash attention reads 16 bytes at a time, and holds at most 256 entries of a head.
    fits = dtype in (torch.float16, torch.bfloat16) and head_width % 8 == 0 and head_width <= 256
    if device.type != "cuda" or not fits or torch.cuda.get_device_capability(device) < CAPABILITY_WITH_BFLOAT16:
        return "padded"
    return "varlen" if find_varlen() is not None else "padded"


def kernel_inputs_of(grouping: AnyGrouping, query_NHK: Tensor) -> VarlenInputs | PaddedInputs:
    """The index tensors that `ragged_attention` reads with these queries."""
    if isinstance(grouping, CompiledGrouping):
        return grouping.inputs
    return grouping.inputs_for(kernel_for(query_NHK.device, query_NHK.dtype, query_NHK.shape[2]), query_NHK.device)


def distances_of(inputs: VarlenInputs | PaddedInputs) -> Tensor:
    """int64 [P], of the keys that groups see."""
    assert inputs.distances_P is not None, "asked for only where the pattern says them"
    return inputs.distances_P


def ragged_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: AnyGrouping, adjust: Adjust | None = None
) -> Tensor:
    """Softmax attention in which each group of queries sees its own list of at least one key; [N, H, K]."""
    if isinstance(grouping, CompiledGrouping):
        return compiled_attention(query_NHK, key_MHK, value_MHK, grouping, adjust)
    kernel = kernel_for(query_NHK.device, query_NHK.dtype, query_NHK.shape[2])
    attend = varlen_attention if kernel == "varlen" else padded_attention
    return attend(query_NHK, key_MHK, value_MHK, grouping, adjust)


def dense_attention(query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: Grouping) -> Tensor:
    """The formula as the papers write it: softmax(QKᵀ/√K + M)V with a dense mask (G-Transformer, Eq. 6–7)."""
    mask_NM = grouping.dense_mask(len(key_MHK)).to(query_NHK.device)
    scores_HNM = torch.einsum("nhk,mhk->hnm", query_NHK, key_MHK) / math.sqrt(query_NHK.shape[-1])
    weights_HNM = scores_HNM.masked_fill(~mask_NM, -torch.inf).softmax(-1)
    return torch.einsum("hnm,mhk->nhk", weights_HNM, value_MHK)


def padded_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: Grouping, adjust: Adjust | None = None
) -> Tensor:
    """Ragged attention through padded buckets of groups of similar size."""
    inputs = grouping.padded_inputs(query_NHK.device)
    query_PHK = pad_rows(query_NHK, inputs.query_padding)
    key_PHK = pad_rows(key_MHK, inputs.key_padding)
    value_PHK = pad_rows(value_MHK, inputs.key_padding)
    if adjust is not None:
        key_PHK, value_PHK = adjust(key_PHK, value_PHK, distances_of(inputs))
    outputs = []
    for bucket, query, key, value in _split_buckets(inputs, query_PHK, key_PHK, value_PHK):
        output_gHqK = _bucket_attention(query, key, value, bucket, grouping.is_causal)
        outputs.append(output_gHqK.transpose(1, 2).flatten(0, 1))
    output_PHK = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    return unpad_rows(output_PHK, inputs.query_padding)


def varlen_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: Grouping, adjust: Adjust | None = None
) -> Tensor:
    """Ragged attention through variable-length kernels (CUDA, float16 or bfloat16)."""
    varlen_attn = find_varlen()
    assert varlen_attn is not None, "asked for only where this torch has it"
    compiled = CompiledGrouping(grouping.varlen_inputs(query_NHK.device), grouping.is_causal, varlen_attn)
    n_seen = len(grouping.key_rows)
    if compiled.inputs.key_rows_M is None and n_seen < len(key_MHK):
        # Its backward pass leaves the gradients of rows beyond the last group as they are in memory.
        key_MHK, value_MHK = key_MHK[:n_seen], value_MHK[:n_seen]
    return compiled_attention(query_NHK, key_MHK, value_MHK, compiled, adjust)


def compiled_attention(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: CompiledGrouping, adjust: Adjust | None = None
) -> Tensor:
    """`varlen_attention` as a compiler sees it."""
    inputs = grouping.inputs
    if inputs.key_rows_M is not None:
        key_MHK, value_MHK = (rows.index_select(0, inputs.key_rows_M) for rows in (key_MHK, value_MHK))
    if adjust is not None:
        key_MHK, value_MHK = adjust(key_MHK, value_MHK, distances_of(inputs))
    return grouping.kernel(
        query_NHK,
        key_MHK,
        value_MHK,
        inputs.query_offsets,
        inputs.key_offsets,
        inputs.max_queries,
        inputs.max_keys,
        # −1 is no limit, so (−1, 0) is causal; queries are aligned with the last keys, as in `Grouping`.
        window_size=(-1, 0) if grouping.is_causal else (-1, -1),
    )


@torch.no_grad()
def attention_entropy(query_NHK: Tensor, key_MHK: Tensor, grouping: Grouping, adjust: Adjust | None = None) -> Tensor:
    """Entropy in bits of each query's attention weights averaged over the heads (G-Transformer §3.2); float32 [N]."""
    inputs = grouping.padded_inputs(query_NHK.device)
    # Entropies are sums of many small terms, so they are computed in float32 also where the model has half precision.
    query_PHK = pad_rows(query_NHK.float(), inputs.query_padding)
    key_PHK = pad_rows(key_MHK.float(), inputs.key_padding)
    if adjust is not None:
        key_PHK, _ = adjust(key_PHK, key_PHK, distances_of(inputs))
    entropies = []
    for bucket, query, key, _ in _split_buckets(inputs, query_PHK, key_PHK, key_PHK):
        # The paper averages the weights over heads before the entropy, which differs from the mean of entropies.
        with torch.autocast(query.device.type, enabled=False):
            weights_gqk = _whole_weights(query, key, bucket).mean(1)
        # `entr` gives 0 for weight 0, where −w · log w would be NaN; it is in nats.
        entropies.append(torch.special.entr(weights_gqk).sum(-1).flatten() / math.log(2))
    return unpad_rows(torch.cat(entropies), inputs.query_padding)


def _split_buckets(
    inputs: PaddedInputs, query_PHK: Tensor, key_PHK: Tensor, value_PHK: Tensor
) -> list[tuple[Bucket, Tensor, Tensor, Tensor]]:
    """Each bucket with its [g, H, q or k, K] views."""
    parts = []
    first_query = first_key = 0
    for bucket in inputs.buckets:
        g, n, m = bucket.n_groups, bucket.n_queries, bucket.n_keys
        query = query_PHK[first_query : first_query + g * n].unflatten(0, (g, n)).transpose(1, 2)
        key = key_PHK[first_key : first_key + g * m].unflatten(0, (g, m)).transpose(1, 2)
        value = value_PHK[first_key : first_key + g * m].unflatten(0, (g, m)).transpose(1, 2)
        parts.append((bucket, query, key, value))
        first_query, first_key = first_query + g * n, first_key + g * m
    return parts


def _bucket_attention(query: Tensor, key: Tensor, value: Tensor, bucket: Bucket, is_causal: bool) -> Tensor:
    """Attention of one padded batch; [g, H, q, K]."""
    if query.device.type == "cpu" and _pays_in_blocks(query, bucket, is_causal):
        return BlockAttention.apply(query, key, value, bucket.bias_gqk, bucket.n_ahead)  # pyright: ignore[reportReturnType]
    if query.device.type == "cpu" and query.dtype == torch.bfloat16:
        return torch.matmul(_whole_weights(query, key, bucket), value)
    # A causal bucket without a mask has as many queries as keys, so the lower triangle of the kernel is right.
    if bucket.bias_gqk is None:
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bucket.bias_gqk[:, None].to(query.dtype))


def _pays_in_blocks(query: Tensor, bucket: Bucket, is_causal: bool) -> bool:
    """Whether, on a CPU, blocks are the fastest way; measured, see docs/experiments/performance.md."""
    if query.dtype == torch.bfloat16:
        return bucket.n_keys > (BLOCK_QUERIES if is_causal else EXPLICIT_MAX_KEYS)
    return is_causal and bucket.mask_gqk is not None and bucket.n_keys > 2 * BLOCK_QUERIES


def _whole_weights(query: Tensor, key: Tensor, bucket: Bucket) -> Tensor:
    """Attention weights of one padded batch; [g, H, q, k]."""
    return padded_weights(query, key, bucket.bias_gqk, slice(None), bucket.n_keys, bucket.n_ahead)


def pad_rows(rows: Tensor, padding: Padding) -> Tensor:
    """Packed rows [N, …] → padded rows [P, …]."""
    if padding.rows_P is None:
        return rows
    # Keys that several groups see have no single place: their gradients must be added up, as `index_select` does.
    if padding.places_N is not None and len(padding.places_N) == len(rows):
        return _Pad.apply(rows, padding.rows_P, padding.places_N)
    return rows.index_select(0, padding.rows_P)


def unpad_rows(rows: Tensor, padding: Padding) -> Tensor:
    """Padded rows [P, …] → packed rows [N, …]."""
    return rows if padding.rows_P is None else _Unpad.apply(rows, padding.places_N)


class _Pad(torch.autograd.Function):
    """Gather whose backward is a gather too: cheaper than the scatter-add of `index_select`.

    The gradient of padding rows is dropped: masks keep them from having any.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, rows_P: Tensor, places_N: Tensor) -> Tensor:
        ctx.save_for_backward(places_N)
        return rows.index_select(0, rows_P)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        (gradient,), (places_N,) = grad_outputs, ctx.saved_tensors
        return gradient.index_select(0, places_N), None, None


class _Unpad(torch.autograd.Function):
    """The inverse gather; padding rows get a zero gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places_N: Tensor) -> Tensor:
        ctx.save_for_backward(places_N)
        ctx.n_padded = len(rows)
        return rows.index_select(0, places_N)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (gradient,), (places_N,) = grad_outputs, ctx.saved_tensors
        # Padding rows are read by nobody, and each packed row has one place: a copy, without any addition, is enough.
        padded = gradient.new_zeros(ctx.n_padded, *gradient.shape[1:])
        return padded.index_copy_(0, places_N, gradient), None
