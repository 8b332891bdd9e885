"""Attention on a CPU by blocks of queries: only the keys that a block may see are multiplied.

torch's fused kernel multiplies all keys of a masked batch and is slow in bfloat16 (docs/experiments/performance.md).

Shape letters: g groups of a bucket, H heads, q and k padded queries and keys, b queries of a block, s keys that it may
see, K head width.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

BLOCK_QUERIES = 128
"""Queries of a block where later queries see more keys, and …"""
WIDE_BLOCK_QUERIES = 256
"""… where all see the same."""
MAX_KEPT_WEIGHTS = 2**25
"""Attention weights of one call that are kept for the backward pass; of larger calls they are computed again there."""


class BlockAttention(torch.autograd.Function):
    """Softmax attention of one padded batch, [g, H, q, K].

    Row j sees at most the first `n_ahead` + j + 1 keys. `bias_gqk`, float32, says which of these (0 or −inf); without
    it, row j sees all of them.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias_gqk: Tensor | None, n_ahead: int) -> Tensor:
        output = torch.empty_like(query)
        kept: list[Tensor] = []
        is_kept = query.shape[:3].numel() * key.shape[2] <= MAX_KEPT_WEIGHTS
        for rows, n_seen in _blocks(query, key, n_ahead):
            weights = padded_weights(query, key, bias_gqk, rows, n_seen, n_ahead)
            output[:, :, rows] = torch.matmul(weights, value[:, :, :n_seen])
            if is_kept:
                kept.append(weights)
        ctx.save_for_backward(query, key, value, bias_gqk, output, *kept)
        ctx.n_ahead = n_ahead
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias_gqk, output, *kept = ctx.saved_tensors
        (gradient,) = grad_outputs
        scale = query.shape[-1] ** -0.5
        query_gradient = torch.empty_like(query)
        key_gradient, value_gradient = torch.zeros_like(key), torch.zeros_like(value)
        n_ahead = ctx.n_ahead
        for number, (rows, n_seen) in enumerate(_blocks(query, key, n_ahead)):
            weights = kept[number] if kept else padded_weights(query, key, bias_gqk, rows, n_seen, n_ahead)
            block = gradient[:, :, rows]
            value_gradient[:, :, :n_seen] += torch.matmul(weights.transpose(-1, -2), block)
            # The gradient of a softmax: weights ⊙ (gradient − its mean); the mean is that of gradient · output.
            mean = (block * output[:, :, rows]).sum(-1, keepdim=True)
            scores_gradient = torch.matmul(block, value[:, :, :n_seen].transpose(-1, -2)).sub_(mean).mul_(weights)
            query_gradient[:, :, rows] = torch.matmul(scores_gradient, key[:, :, :n_seen]).mul_(scale)
            key_gradient[:, :, :n_seen] += torch.matmul(scores_gradient.transpose(-1, -2), query[:, :, rows] * scale)
        return query_gradient, key_gradient, value_gradient, None, None


def _blocks(query: Tensor, key: Tensor, n_ahead: int) -> Iterator[tuple[slice, int]]:
    """The queries of each block and the number of keys that they may see."""
    n, m = query.shape[2], key.shape[2]
    size = WIDE_BLOCK_QUERIES if n_ahead >= m else BLOCK_QUERIES
    for start in range(0, n, size):
        end = min(start + size, n)
        yield slice(start, end), min(m, n_ahead + end)


def padded_weights(
    query: Tensor, key: Tensor, bias_gqk: Tensor | None, rows: slice, n_seen: int, n_ahead: int
) -> Tensor:
    """Attention weights of some queries of a padded batch and their first keys, [g, H, b, s]; see `BlockAttention`."""
    # Queries are scaled before the product: there are fewer of them than scores.
    scores = torch.matmul(query[:, :, rows] * query.shape[-1] ** -0.5, key[:, :, :n_seen].transpose(-1, -2))
    if bias_gqk is not None:
        scores += bias_gqk[:, None, rows, :n_seen]
    elif n_ahead == 0:
        n = scores.shape[2]
        future = torch.ones(n, n, dtype=torch.bool, device=scores.device).triu_(1)
        scores[..., n_seen - n :].masked_fill_(future, -torch.inf)
    return scores.softmax(-1)
