"""Linear maps of multi-head attention.

Shape letters: N packed queries, M packed keys (of the other side in cross-attention), D width, H heads, K head width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class HeadProjections(nn.Module):
    """Maps to queries, keys and values of all heads (`inner` wide together, by default `width`), and from outputs."""

    def __init__(self, width: int, heads: int, *, inner: int | None = None, memory_width: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        inner = width if inner is None else inner
        self.in_weight = nn.Parameter(torch.empty((3 if memory_width is None else 1) * inner, width))
        self.memory_weight = None if memory_width is None else nn.Parameter(torch.empty(2 * inner, memory_width))
        self.in_bias = nn.Parameter(torch.zeros(3 * inner))
        self.out = nn.Linear(inner, width)

    def initialize(self) -> None:
        for weight in (self.in_weight, self.memory_weight):
            # As fairseq: queries, keys and values each as a separate matrix, smaller than Xavier by √2.
            for part in () if weight is None else weight.data.split(self.out.in_features):
                nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [N, H, K], keys and values [M, H, K]; without a memory, all from the queries."""
        if memory_MD is None:
            projected = F.linear(query_ND, self.in_weight, self.in_bias)
            query_NHK, key_NHK, value_NHK = projected.unflatten(1, (3, self.heads, -1)).unbind(1)
            return query_NHK, key_NHK, value_NHK
        # Split once: the gradients of two slices would each be a whole matrix.
        weights, biases = self._in_parts()
        query_NHK = F.linear(query_ND, weights[0], biases[0]).unflatten(1, (self.heads, -1))
        key_MHK, value_MHK = F.linear(memory_MD, weights[1], biases[1]).unflatten(1, (2, self.heads, -1)).unbind(1)
        return query_NHK, key_MHK, value_MHK

    def project_query(self, query_ND: Tensor) -> Tensor:
        """Queries [N, H, K]."""
        (weight, _), (bias, _) = self._in_parts()
        return F.linear(query_ND, weight, bias).unflatten(1, (self.heads, -1))

    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [M, H, K]."""
        (_, weight), (_, bias) = self._in_parts()
        key_MHK, value_MHK = F.linear(memory_MD, weight, bias).unflatten(1, (2, self.heads, -1)).unbind(1)
        return key_MHK, value_MHK

    def _in_parts(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Weights and biases, each for queries and for keys and values."""
        inner = self.out.in_features
        biases = self.in_bias.split((inner, 2 * inner))
        if self.memory_weight is not None:
            return (self.in_weight, self.memory_weight), biases
        return self.in_weight.split((inner, 2 * inner)), biases
