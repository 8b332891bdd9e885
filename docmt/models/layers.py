"""Attention modules and layers over packed tokens.

Shape letters: N packed queries, M packed keys (of the other side in cross-attention), D width, H heads, K head width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.models.grouping import Grouping
from docmt.models.ragged import ragged_attention
from docmt.models.settings import Pattern

Groupings = Callable[[Pattern], Grouping]
"""Gives the grouping of a pattern for the attention at hand."""


class MultiHeadAttention(nn.Module):
    """Multi-head attention of one pattern (Eq. 5, and Eq. 8 when the pattern is `group`)."""

    def __init__(self, width: int, heads: int, pattern: Pattern) -> None:
        super().__init__()
        self.heads, self.pattern = heads, pattern
        self.in_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_bias = nn.Parameter(torch.zeros(3 * width))
        self.out = nn.Linear(width, width)
        for part in self.in_weight.data.split(width):
            nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """Attend from `query_ND` to `memory_MD`, or to itself when there is no memory; returns [N, D]."""
        query_NHK, key_MHK, value_MHK = self.project(query_ND, memory_MD)
        output_NHK = ragged_attention(query_NHK, key_MHK, value_MHK, groupings(self.pattern))
        return self.out(output_NHK.flatten(1))

    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [N, H, K], keys and values [M, H, K]."""
        if memory_MD is None:
            return F.linear(query_ND, self.in_weight, self.in_bias).unflatten(1, (3, self.heads, -1)).unbind(1)
        return (self.project_query(query_ND), *self.project_memory(memory_MD))

    def project_query(self, query_ND: Tensor) -> Tensor:
        """Queries [N, H, K]."""
        width = query_ND.shape[-1]
        return F.linear(query_ND, self.in_weight[:width], self.in_bias[:width]).unflatten(1, (self.heads, -1))

    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [M, H, K]."""
        width = memory_MD.shape[-1]
        projected = F.linear(memory_MD, self.in_weight[width:], self.in_bias[width:])
        return projected.unflatten(1, (2, self.heads, -1)).unbind(1)


class CombinedAttention(nn.Module):
    """Group and global attention, each with its own parameters, summed by a gate per dimension (Eq. 10)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.group = MultiHeadAttention(width, heads, "group")
        self.global_ = MultiHeadAttention(width, heads, "global")
        self.gate = nn.Linear(2 * width, width)

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """As `MultiHeadAttention.forward`."""
        group_ND = self.group(query_ND, memory_MD, groupings)
        global_ND = self.global_(query_ND, memory_MD, groupings)
        return self.combine(group_ND, global_ND)

    def combine(self, group_ND: Tensor, global_ND: Tensor) -> Tensor:
        """g ⊙ group + (1 − g) ⊙ global."""
        gate_ND = torch.sigmoid(self.gate(torch.cat((group_ND, global_ND), dim=-1)))
        return torch.lerp(global_ND, group_ND, gate_ND)


Attention = MultiHeadAttention | CombinedAttention


def build_attention(width: int, heads: int, pattern: Pattern) -> Attention:
    """The module of a pattern."""
    return CombinedAttention(width, heads) if pattern == "combined" else MultiHeadAttention(width, heads, pattern)


class Sublayer(nn.Module):
    """Dropout, residual, layer norm around a module: post-norm, as in the original Transformer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """norm(input + dropout(output))."""
        return self.norm(input_ND + F.dropout(output_ND, self.dropout, self.training))


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them."""

    def __init__(self, width: int, inner_width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner_width)
        self.outer = nn.Linear(inner_width, width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, D] → [N, D]."""
        return self.outer(torch.relu(self.inner(hidden_ND)))


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, width: int, heads: int, inner_width: int, dropout: float, *, pattern: Pattern) -> None:
        super().__init__()
        self.self_attention = build_attention(width, heads, pattern)
        self.self_sublayer = Sublayer(width, dropout)
        self.feed_forward = FeedForward(width, inner_width)
        self.feed_forward_sublayer = Sublayer(width, dropout)

    def forward(self, hidden_SD: Tensor, groupings: Groupings) -> Tensor:
        """[S, D] → [S, D]."""
        hidden_SD = self.self_sublayer(hidden_SD, self.self_attention(hidden_SD, None, groupings))
        return self.feed_forward_sublayer(hidden_SD, self.feed_forward(hidden_SD))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, and feed-forward."""

    def __init__(
        self, width: int, heads: int, inner_width: int, dropout: float, *, pattern: Pattern, cross_pattern: Pattern
    ) -> None:
        super().__init__()
        self.self_attention = build_attention(width, heads, pattern)
        self.self_sublayer = Sublayer(width, dropout)
        self.cross_attention = build_attention(width, heads, cross_pattern)
        self.cross_sublayer = Sublayer(width, dropout)
        self.feed_forward = FeedForward(width, inner_width)
        self.feed_forward_sublayer = Sublayer(width, dropout)

    def forward(self, hidden_ND: Tensor, memory_SD: Tensor, groupings: Groupings, cross_groupings: Groupings) -> Tensor:
        """[N, D] → [N, D]."""
        hidden_ND = self.self_sublayer(hidden_ND, self.self_attention(hidden_ND, None, groupings))
        cross_ND = self.cross_attention(hidden_ND, memory_SD, cross_groupings)
        hidden_ND = self.cross_sublayer(hidden_ND, cross_ND)
        return self.feed_forward_sublayer(hidden_ND, self.feed_forward(hidden_ND))
