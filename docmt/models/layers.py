"""Attention modules and layers over packed tokens.

Shape letters: N packed queries, M packed keys (of the other side in cross-attention), D width, H heads, K head width.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.models.grouping import Grouping
from docmt.models.ragged import ragged_attention
from docmt.models.settings import Pattern

Groupings = Callable[[Pattern], Grouping]
"""Gives the grouping of a pattern for the attention at hand."""

Attend = Callable[["MultiHeadAttention", Tensor], Tensor]
"""Runs one multi-head attention on queries [N, D] (keys and values are the caller's business); gives [N, D]."""


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

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """As `FusedAttention.fuse`, with one part."""
        return attend(self, query_ND)

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


class Gate(nn.Linear):
    """Sums two outputs by a gate per dimension.

    (G-Transformer, Eq. 10; RST-Transformer, Eq. 12–13; cross-task pre-training, Eq. 6–7, without bias.)
    """

    def __init__(self, width: int, *, bias: bool = True) -> None:
        super().__init__(2 * width, width, bias=bias)

    def forward(self, local_ND: Tensor, wide_ND: Tensor) -> Tensor:
        """G ⊙ local + (1 − g) ⊙ wide, where g = sigmoid of a linear map of both."""
        gate_ND = torch.sigmoid(super().forward(torch.cat((local_ND, wide_ND), dim=-1)))
        # In mixed precision a linear map gives half precision, but layer norms, which may come in, do not.
        return torch.lerp(wide_ND, local_ND, gate_ND.to(wide_ND.dtype))


class FusedAttention(nn.Module, ABC):
    """Group attention with a wider one, each with parameters and output projection of its own.

    Subclasses say in `fuse` which attention reads what. It is written once for every way of computing the parts:
    packed here, step by step with caches in decoding.
    """

    @abstractmethod
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """The output [N, D] for queries [N, D]; `attend` is called once for each part, in the order of `parts`."""

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """As `MultiHeadAttention.forward`. Without a memory a part's keys and values come from its own queries."""
        return self.fuse(query_ND, lambda part, part_query_ND: part(part_query_ND, memory_MD, groupings))


class CombinedAttention(FusedAttention):
    """Group and global attention side by side, summed by a gate (G-Transformer, Eq. 10)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.group = MultiHeadAttention(width, heads, "group")
        self.global_ = MultiHeadAttention(width, heads, "global")
        self.gate = Gate(width)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        return self.gate(attend(self.group, query_ND), attend(self.global_, query_ND))


class RstSerialAttention(FusedAttention):
    """RST attention after group attention (RST-Transformer, Eq. 8–10).

    What group attention gives, its output projection included, is projected anew: to queries and, in self-attention,
    keys and values. In cross-attention keys and values of both come from the source.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.group = MultiHeadAttention(width, heads, "group")
        self.rst = MultiHeadAttention(width, heads, "rst")

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        return attend(self.rst, attend(self.group, query_ND))


class RstParallelAttention(FusedAttention):
    """Group and RST attention side by side, summed by a gate (RST-Transformer, Eq. 11–13)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.group = MultiHeadAttention(width, heads, "group")
        self.rst = MultiHeadAttention(width, heads, "rst")
        self.gate = Gate(width)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        return self.gate(attend(self.group, query_ND), attend(self.rst, query_ND))


class RstMixAttention(FusedAttention):
    """Group attention and the RST attention after it, as in `RstSerialAttention`, summed by a gate."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.group = MultiHeadAttention(width, heads, "group")
        self.rst = MultiHeadAttention(width, heads, "rst")
        self.gate = Gate(width)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        group_ND = attend(self.group, query_ND)
        return self.gate(group_ND, attend(self.rst, group_ND))


Attention = MultiHeadAttention | FusedAttention

FUSIONS: dict[Pattern, type[FusedAttention]] = {
    "combined": CombinedAttention,
    "rst_serial": RstSerialAttention,
    "rst_parallel": RstParallelAttention,
    "rst_mix": RstMixAttention,
}


def build_attention(width: int, heads: int, pattern: Pattern) -> Attention:
    """The module of a pattern."""
    return FUSIONS[pattern](width, heads) if pattern in FUSIONS else MultiHeadAttention(width, heads, pattern)


def parts(attention: Attention) -> list[MultiHeadAttention]:
    """The multi-head attentions of an attention module, in the order in which `fuse` runs them."""
    return [module for module in attention.modules() if isinstance(module, MultiHeadAttention)]


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
        return self.transform(self.attend(hidden_SD, groupings))

    def attend(self, hidden_SD: Tensor, groupings: Groupings) -> Tensor:
        """The self-attention sub-layer, [S, D] → [S, D]."""
        return self.self_sublayer(hidden_SD, self.self_attention(hidden_SD, None, groupings))

    def transform(self, hidden_SD: Tensor) -> Tensor:
        """The feed-forward sub-layer, [S, D] → [S, D]."""
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
