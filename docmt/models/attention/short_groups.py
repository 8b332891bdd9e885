"""Attention in short groups as Triton kernels: one program computes one head in one group.

Flash attention has tiles with 128 queries and adds their gradients in a float32 table of whole tiles. For sentences of
28 tokens, that is three times the memory traffic of everything else. Here, tiles are small and a program owns all rows
in its group. No two programs write to the same place, so gradients are the same in every run. Longer groups take
several tiles.

The module needs Triton and is imported by `varlen.py`. Sums are in float32. Products of float32 are not rounded to
TF32.

Shape letters: N packed queries, M packed keys, H heads, K head width, G groups, B rows in a tile, P head width padded
to a power of two.
"""

import functools
from collections.abc import Sequence
from typing import Any

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor

SHORTEST, MIDDLE, LARGE = (16, 2), (32, 4), (64, 4)
"""Rows of a tile, and warps of its program."""
HOPPER = 9
"""First number in the compute capability of H100 and H200."""


@triton.jit
def _own_group(query_offsets, key_offsets, heads: tl.constexpr):
    """Return the head of this program, and the first row and number of queries and keys in its group."""
    group, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    first_query, first_key = tl.load(query_offsets + group), tl.load(key_offsets + group)
    n, m = tl.load(query_offsets + group + 1) - first_query, tl.load(key_offsets + group + 1) - first_key
    return head, first_query, first_key, n, m


@triton.jit
def _place(first, stride, head, head_stride):
    """Return the offset where a head begins in the first row of a group. int64: packed rows can exceed 2³¹ entries."""
    return first.to(tl.int64) * stride + head * head_stride


@triton.jit
def _tile(start, n, stride, width: tl.constexpr, B: tl.constexpr, P: tl.constexpr):
    """Return offsets for rows from `start` in a group of n rows, [B, P], and whether they are in the group."""
    rows, columns = start + tl.arange(0, B), tl.arange(0, P)
    places = rows[:, None].to(tl.int64) * stride + columns[None, :]
    return places, (rows < n)[:, None] & (columns < width)[None, :]


@triton.jit
def _load(pointer, start, n, stride, width: tl.constexpr, B: tl.constexpr, P: tl.constexpr):
    """Load rows of a group, [B, P], with zeros beyond its end."""
    places, seen = _tile(start, n, stride, width, B, P)
    return tl.load(pointer + places, mask=seen, other=0.0)


@triton.jit
def _store(pointer, tile, start, n, stride, width: tl.constexpr, B: tl.constexpr, P: tl.constexpr):
    """Store rows of a group, [B, P]."""
    places, seen = _tile(start, n, stride, width, B, P)
    tl.store(pointer + places, tile.to(pointer.dtype.element_ty), mask=seen)


@triton.jit
def _scores(query, key, i, j, n, m, scale, is_causal: tl.constexpr, B: tl.constexpr):
    """Return scaled scores for queries from i and keys from j, [B, B], −inf where a query sees no key."""
    rows, columns = i + tl.arange(0, B), j + tl.arange(0, B)
    seen = (columns < m)[None, :]
    if is_causal:
        # The last query sees all keys, as in `Grouping`.
        seen = seen & (columns[None, :] <= rows[:, None] + (m - n))
    return tl.where(seen, tl.dot(query, tl.trans(key), input_precision="ieee") * scale, float("-inf"))


@triton.jit
def _queries(query, gradient, output, sums, i, n, query_stride, gradient_stride, stride, width: tl.constexpr,
             B: tl.constexpr, P: tl.constexpr):  # fmt: skip
    """Load queries and gradients [B, P], log-sums and products of output and gradient [B], from query i."""
    rows = i + tl.arange(0, B)
    gradient_BP = _load(gradient, i, n, gradient_stride, width, B, P)
    products = gradient_BP.to(tl.float32) * _load(output, i, n, stride, width, B, P).to(tl.float32)
    # Beyond the group, log-sums of ∞ make weights of 0.
    sums_B = tl.load(sums + rows, mask=rows < n, other=float("inf"))
    return _load(query, i, n, query_stride, width, B, P), gradient_BP, sums_B, tl.sum(products, 1)


@triton.jit
def _slopes(query, key, value, gradient, sums, inner, i, j, n, m, scale, is_causal: tl.constexpr, B: tl.constexpr):
    """Return attention weights and gradients of scaled scores, [B, B], zero beyond the group."""
    weights = tl.exp(_scores(query, key, i, j, n, m, scale, is_causal, B) - sums[:, None])
    products = tl.dot(gradient, tl.trans(value), input_precision="ieee")
    return weights, weights * (products - inner[:, None]) * scale


@triton.jit(do_not_specialize=["n_rows"])
def short_groups_forward(
    query, key, value, output, sums, query_offsets, key_offsets,
    query_stride, query_head, key_stride, key_head, value_stride, value_head, n_rows, scale,
    heads: tl.constexpr, width: tl.constexpr, is_causal: tl.constexpr, B: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Compute the output, and log-sums of exponentiated scores with the natural logarithm, as in flash attention."""
    head, first_query, first_key, n, m = _own_group(query_offsets, key_offsets, heads)
    query += _place(first_query, query_stride, head, query_head)
    key += _place(first_key, key_stride, head, key_head)
    value += _place(first_key, value_stride, head, value_head)
    output += _place(first_query, heads * width, head, width)
    sums += _place(head, n_rows, first_query, 1)
    for i in range(0, n, B):
        query_BP = _load(query, i, n, query_stride, width, B, P)
        highest = tl.full([B], float("-inf"), tl.float32)
        total = tl.zeros([B], tl.float32)
        mean = tl.zeros([B, P], tl.float32)
        end = m
        if is_causal:
            end = tl.minimum(m, i + B + m - n)
        for j in range(0, end, B):
            key_BP = _load(key, j, m, key_stride, width, B, P)
            value_BP = _load(value, j, m, value_stride, width, B, P)
            scores = _scores(query_BP, key_BP, i, j, n, m, scale, is_causal, B)
            now = tl.maximum(highest, tl.max(scores, 1))
            shift = tl.where(now == float("-inf"), 0.0, now)  # −inf − (−inf) would be NaN
            weights = tl.exp(scores - shift[:, None])
            fade = tl.exp(highest - shift)
            total = total * fade + tl.sum(weights, 1)
            mean = mean * fade[:, None] + tl.dot(weights.to(value_BP.dtype), value_BP, input_precision="ieee")
            highest = now
        has_keys = total > 0
        divisor = tl.where(has_keys, total, 1.0)
        _store(output, mean / divisor[:, None], i, n, heads * width, width, B, P)
        rows = i + tl.arange(0, B)
        tl.store(sums + rows, tl.where(has_keys, highest + tl.log(divisor), float("inf")), mask=rows < n)


@triton.jit(do_not_specialize=["n_rows"])
def short_groups_backward(
    gradient, query, key, value, output, sums, query_gradient, key_gradient, value_gradient,
    query_offsets, key_offsets, gradient_stride, gradient_head,
    query_stride, query_head, key_stride, key_head, value_stride, value_head, n_rows, scale,
    query_row, key_row, value_row,
    heads: tl.constexpr, width: tl.constexpr, is_causal: tl.constexpr, B: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of queries, keys and values, which have row strides, for one head in one group."""
    head, first_query, first_key, n, m = _own_group(query_offsets, key_offsets, heads)
    stride = heads * width  # of tensors that were made here
    gradient += _place(first_query, gradient_stride, head, gradient_head)
    query += _place(first_query, query_stride, head, query_head)
    key += _place(first_key, key_stride, head, key_head)
    value += _place(first_key, value_stride, head, value_head)
    output += _place(first_query, stride, head, width)
    query_gradient += _place(first_query, query_row, head, width)
    key_gradient += _place(first_key, key_row, head, width)
    value_gradient += _place(first_key, value_row, head, width)
    sums += _place(head, n_rows, first_query, 1)
    for j in range(0, m, B):
        key_BP = _load(key, j, m, key_stride, width, B, P)
        value_BP = _load(value, j, m, value_stride, width, B, P)
        key_sum = tl.zeros([B, P], tl.float32)
        value_sum = tl.zeros([B, P], tl.float32)
        for i in range(0, n, B):
            query_BP, gradient_BP, sums_B, inner = _queries(
                query, gradient, output, sums, i, n, query_stride, gradient_stride, stride, width, B, P
            )
            weights, slopes = _slopes(
                query_BP, key_BP, value_BP, gradient_BP, sums_B, inner, i, j, n, m, scale, is_causal, B
            )
            slopes = slopes.to(query_BP.dtype)
            value_sum += tl.dot(tl.trans(weights.to(query_BP.dtype)), gradient_BP, input_precision="ieee")
            key_sum += tl.dot(tl.trans(slopes), query_BP, input_precision="ieee")
            if m <= B:  # one tile has all keys, so that the gradient of its queries is complete
                products = tl.dot(slopes, key_BP, input_precision="ieee")
                _store(query_gradient, products, i, n, query_row, width, B, P)
        _store(key_gradient, key_sum, j, m, key_row, width, B, P)
        _store(value_gradient, value_sum, j, m, value_row, width, B, P)
    if m > B:
        for i in range(0, n, B):
            query_BP, gradient_BP, sums_B, inner = _queries(
                query, gradient, output, sums, i, n, query_stride, gradient_stride, stride, width, B, P
            )
            query_sum = tl.zeros([B, P], tl.float32)
            end = m
            if is_causal:
                end = tl.minimum(m, i + B + m - n)
            for j in range(0, end, B):
                key_BP = _load(key, j, m, key_stride, width, B, P)
                value_BP = _load(value, j, m, value_stride, width, B, P)
                _, slopes = _slopes(
                    query_BP, key_BP, value_BP, gradient_BP, sums_B, inner, i, j, n, m, scale, is_causal, B
                )
                query_sum += tl.dot(slopes.to(key_BP.dtype), key_BP, input_precision="ieee")
            _store(query_gradient, query_sum, i, n, query_row, width, B, P)


def forward(
    query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, offsets: Sequence[Tensor], is_causal: bool
) -> tuple[Tensor, Tensor]:
    """Return the output [N, H, K] and log-sums, float32 [H, N]. `offsets` of queries and keys are int32 [G + 1]."""
    output_NHK = query_NHK.new_empty(query_NHK.shape)
    sums_HN = query_NHK.new_empty((query_NHK.shape[1], len(query_NHK)), dtype=torch.float32)
    _launch(short_groups_forward, (query_NHK, key_MHK, value_MHK), (output_NHK, sums_HN), offsets, is_causal)
    return output_NHK, sums_HN


def backward(
    gradient_NHK: Tensor, query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, results: Sequence[Tensor],
    offsets: Sequence[Tensor], is_causal: bool, gradients: Sequence[Tensor],
) -> None:  # fmt: skip
    """Write the gradients of queries, keys and values. `results` come from `forward`.

    The gradients may be parts of one tensor, for example [N, 3, H, K].
    """
    inputs = gradient_NHK, query_NHK, key_MHK, value_MHK
    row_strides = [rows.stride(0) for rows in gradients]
    _launch(short_groups_backward, inputs, (*results, *gradients), offsets, is_causal, row_strides)


def tile(n_rows: int, n_groups: int, width: int, capability: tuple[int, int]) -> tuple[int, int]:
    """Return rows and warps of the fastest tile for groups with a mean of n_rows / n_groups rows.

    See docs/experiments/gpu.md.

    On GPUs other than Hopper, the backward pass with a large tile needs more than the 255 registers per thread.
    """
    if n_rows <= SHORTEST[0] * n_groups:
        return SHORTEST
    if capability[0] == HOPPER and width <= 64:
        return LARGE
    return MIDDLE


@functools.cache
def _capability(device: torch.device) -> tuple[int, int]:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device)
    return (0, 0)


def _launch(
    kernel: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor], offsets: Sequence[Tensor], is_causal: bool,
    row_strides: Sequence[int] = (),
) -> None:  # fmt: skip
    """Run a kernel for every group and head. Strides of inputs and rows of gradients are arguments."""
    inputs = [rows if rows.stride(2) == 1 else rows.contiguous() for rows in inputs]
    n_rows, heads, width = inputs[-3].shape
    strides = [stride for rows in inputs for stride in rows.stride()[:2]]
    padded = max(16, triton.next_power_of_2(width))  # the least that tensor cores multiply
    n_groups = len(offsets[0]) - 1
    rows, warps = tile(max(n_rows, len(inputs[-1])), n_groups, width, _capability(inputs[-1].device))
    with torch.cuda.device_of(inputs[-3]):
        kernel[(n_groups * heads,)](
            *inputs, *outputs, *offsets, *strides, n_rows, width**-0.5, *row_strides,
            heads=heads, width=width, is_causal=is_causal, B=rows, P=padded,
            # Several stages would hold several tiles of a loop in shared memory, and most loops have one turn.
            num_warps=warps, num_stages=1,
        )  # fmt: skip
