"""Plain versions of GPU kernels that the CPU build of torch lacks, with the requirements of the real kernels.

Shape letters: N packed queries, M packed keys, H heads, K head width, G groups. B batch, L queries, S keys.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import standin.device  # before torch

# isort: split

import torch
from plain_attention import PlainKernels
from torch import Tensor

from docmt.models.attention import varlen
from docmt.models.buffers import map_leaves
from standin.counting import note, uncounted

LIBRARY = torch.library.Library("aten", "IMPL")
NOTHING = slice(0, 0)


def _check_alignment(name: str, tensor: Tensor) -> None:
    """Flash attention reads heads in steps of 16 bytes. Rows may be apart, but must begin at multiples of 16 bytes."""
    places = (*tensor.stride()[:-1], tensor.storage_offset())
    assert tensor.stride(-1) == 1, f"{name}: strides {tensor.stride()}"
    assert all(offset * tensor.element_size() % 16 == 0 for offset in places), f"{name}: strides {tensor.stride()}"


def _kernel(
    name: str, *, aligned: slice = NOTHING
) -> Callable[[Callable[..., tuple[Any, ...]]], Callable[..., tuple[Any, ...]]]:
    """Register a function of CPU tensors as a kernel of the device. It counts as one launch.

    The arguments `aligned` must be aligned as flash attention requires.
    """

    def register(function: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
        def run(*arguments: Any, **options: Any) -> tuple[Any, ...]:
            note("launch", name, frame=sys._getframe().f_back)
            for tensor in arguments[aligned]:
                _check_alignment(name, tensor)
            with uncounted(), torch.autocast("cpu", enabled=False):
                tensors = (a for a in (*arguments, *options.values()) if isinstance(a, Tensor))
                assert all(t.is_cuda for t in tensors), f"{name}: every tensor must be on the device"
                cpu = [a.detach().cpu() if isinstance(a, Tensor) else a for a in arguments]
                results = function(*cpu, **options)
                return tuple(f.to("cuda") if isinstance(f, Tensor) else f for f in results)

        LIBRARY.impl(name, run, "CUDA")
        return function

    return register


def _short(name: str) -> Callable[..., tuple[Tensor, ...]]:
    """Plain version of a docmt kernel for short groups. It counts as one launch."""

    def run(*arguments: Any) -> tuple[Tensor, ...]:
        note("launch", f"short_groups_{name}", frame=sys._getframe().f_back)
        with uncounted():
            cpu = map_leaves(arguments, lambda tensor: tensor.detach().cpu())
            results = getattr(PlainKernels, name)(*cpu)
            if results is not None:
                return tuple(result.to("cuda") for result in results)
            for gradient, computed in zip(arguments[-1], cpu[-1], strict=True):
                gradient.copy_(computed)
            return ()

    return run


# A machine with a GPU has Triton.
SHORT_GROUPS = SimpleNamespace(forward=_short("forward"), backward=_short("backward"))
varlen.short_groups = lambda: SHORT_GROUPS


def _groups(offsets_q: Tensor, offsets_k: Tensor) -> Iterator[tuple[slice, slice]]:
    """Queries and keys of all groups with queries."""
    for (a, b), (c, d) in zip(pairwise(offsets_q.tolist()), pairwise(offsets_k.tolist()), strict=True):
        if a < b:
            yield slice(a, b), slice(c, d)


def _check_flash(query: Tensor, key: Tensor, value: Tensor, offsets_q: Tensor, offsets_k: Tensor, *max_qk: int) -> None:
    """Requirements of flash attention for packed tensors [N, H, K]."""
    assert standin.device.capability() >= (8, 0), "flash attention: the GPU is too old"
    assert query.dtype in (torch.float16, torch.bfloat16), f"flash attention: {query.dtype}"
    assert query.dtype == key.dtype == value.dtype
    assert query.dim() == key.dim() == value.dim() == 3
    assert query.shape[2] % 8 == 0, f"flash attention: heads of {query.shape[2]}"
    assert query.shape[2] <= 256, f"flash attention: heads of {query.shape[2]}"
    for rows, offsets, longest in ((query, offsets_q, max_qk[0]), (key, offsets_k, max_qk[1])):
        assert offsets.dtype == torch.int32
        assert offsets.is_contiguous()
        lengths = offsets.diff()
        assert int(offsets[0]) == 0
        assert int(offsets[-1]) == len(rows)
        assert int(lengths.min()) >= 0
        assert longest >= int(lengths.max())
    assert len(offsets_q) == len(offsets_k)


def _scores(query: Tensor, key: Tensor, *, is_causal: bool, scale: float | None) -> Tensor:
    """Scaled scores for the queries and keys of a group, float32 [H, n, m], with a mask that is aligned at the end."""
    scores = torch.einsum("nhk,mhk->hnm", query.float(), key.float()) * (scale or query.shape[-1] ** -0.5)
    if is_causal:
        n, m = scores.shape[1:]
        scores = scores.masked_fill(~torch.ones(n, m, dtype=torch.bool).tril(m - n), -torch.inf)
    return scores


@_kernel("_flash_attention_forward", aligned=slice(0, 3))
def _flash_forward(
    query, key, value, offsets_q, offsets_k, max_q, max_k, dropout, is_causal, _, *, scale=None, **options
):
    """Packed attention. Returns output [N, H, K], log-sums [H, N], and further outputs of the operator."""
    _check_flash(query, key, value, offsets_q, offsets_k, max_q, max_k)
    assert dropout == 0
    output, sums = torch.zeros_like(query), torch.zeros(query.shape[1], len(query))
    for queries, keys in _groups(offsets_q, offsets_k):
        scores = _scores(query[queries], key[keys], is_causal=is_causal, scale=scale)
        sums[:, queries] = scores.logsumexp(-1)
        output[queries] = torch.einsum("hnm,mhk->nhk", scores.softmax(-1), value[keys].float()).to(output.dtype)
    return output, sums, torch.zeros(2, dtype=torch.uint64), torch.zeros(0), torch.zeros(0)


@_kernel("_flash_attention_backward", aligned=slice(1, 4))
def _flash_backward(
    gradient, query, key, value, output, sums, offsets_q, offsets_k, max_q, max_k, *rest, scale=None, **_
):
    """Gradients of packed queries, keys and values."""
    _, is_causal, *_ = rest
    _check_flash(query, key, value, offsets_q, offsets_k, max_q, max_k)
    assert output.shape == gradient.shape == query.shape
    assert sums.shape == (query.shape[1], len(query))
    grads = [torch.zeros(t.shape) for t in (query, key, value)]
    for queries, keys in _groups(offsets_q, offsets_k):
        parts = (t.float().transpose(0, 1) for t in (gradient[queries], query[queries], key[keys], value[keys]))
        weights = _scores(query[queries], key[keys], is_causal=is_causal, scale=scale).softmax(-1)
        group_grads = _gradients(*parts, weights, scale or query.shape[-1] ** -0.5)
        for grad, rows, part in zip(grads, (queries, keys, keys), group_grads, strict=False):
            grad[rows] = part.transpose(0, 1)
    return tuple(grad.to(query.dtype) for grad in grads)


def _gradients(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, weights: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of queries, keys, values and bias for attention over [..., L, K] with weights [..., L, S]."""
    slopes = gradient @ value.mT
    scores = weights * (slopes - (slopes * weights).sum(-1, keepdim=True))
    return scores @ key * scale, scores.mT @ query * scale, weights.mT @ gradient, scores


def _weights(query: Tensor, key: Tensor, bias: Tensor | None, *, is_causal: bool, scale: float | None) -> Tensor:
    """Attention weights for padded queries and keys, float32 [B, H, L, S]."""
    assert bias is None or bias.dtype == query.dtype, "the bias must have the type of the query"
    scores = query.float() @ key.float().mT * (scale or query.shape[-1] ** -0.5)
    if bias is not None:
        scores = scores + bias.float()
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1)


@_kernel("_scaled_dot_product_efficient_attention")
def _efficient_forward(query, key, value, bias, has_sums, dropout=0.0, is_causal=False, *, scale=None):
    """Padded attention. Returns output [B, H, L, K], and unused log-sums and random states."""
    assert dropout == 0
    output = (_weights(query, key, bias, is_causal=is_causal, scale=scale) @ value.float()).to(query.dtype)
    # In memory [B, L, H, K], as the real kernel leaves it.
    output = output.transpose(1, 2).contiguous().transpose(1, 2)
    nothing = torch.zeros((), dtype=torch.int64)
    return output, torch.zeros(*query.shape[:3]), nothing, nothing


@_kernel("_scaled_dot_product_cudnn_attention")
def _cudnn_forward(query, key, value, bias, has_sums, dropout=0.0, is_causal=False, *_, scale=None):
    """Padded attention. The real kernel plans every new shape, in 0.2 to 0.9 seconds."""
    output, sums, seed, offset = _efficient_forward(query, key, value, bias, has_sums, dropout, is_causal, scale=scale)
    nothing = torch.zeros(0)
    return output, sums, nothing, nothing, query.shape[2], key.shape[2], seed, offset, nothing


@_kernel("_scaled_dot_product_flash_attention")
def _padded_flash_forward(query, key, value, *options, scale=None):
    """Padded attention without a bias."""
    return _cudnn_forward(query, key, value, None, False, *options, scale=scale)


@_kernel("_scaled_dot_product_efficient_attention_backward")
def _efficient_backward(
    gradient, query, key, value, bias, output, sums, seed, offset, dropout, needs, *options, scale=None
):
    """Gradients of padded queries, keys, values and, if necessary, the bias."""
    weights = _weights(query, key, bias, is_causal=bool(options and options[0]), scale=scale)
    floats = (t.float() for t in (gradient, query, key, value))
    grads = [grad.to(query.dtype) for grad in _gradients(*floats, weights, scale or query.shape[-1] ** -0.5)]
    grads[3] = grads[3].sum_to_size(bias.shape) if bias is not None else grads[3]
    return tuple(grad if is_needed else None for grad, is_needed in zip(grads, needs, strict=True))


@_kernel("_scaled_dot_product_flash_attention_backward")
def _padded_flash_backward(gradient, query, key, value, output, *rest, scale=None):
    """Gradients of padded queries, keys and values, without a bias."""
    sums, _, _, _, _, dropout, is_causal, seed, offset = rest
    needs = [True, True, True, False]
    arguments = (gradient, query, key, value, None, output, sums, seed, offset, dropout, needs, is_causal)
    return _efficient_backward(*arguments, scale=scale)[:3]
