"""Encoder and decoder layers over packed tokens.

Shape letters: S packed source tokens, N packed target tokens, D width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.multi_head import Gate, Groupings, build_attention
from docmt.models.numerics import dropout
from docmt.models.settings import ModelSettings

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}
"""Functions by their names in the settings; `gelu` is the exact one."""


class Sublayer(nn.Module):
    """Dropout, residual, layer norm around a module: post-norm, as in the original Transformer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def enter(self, input_ND: Tensor) -> Tensor:
        """The input of the module inside this sub-layer."""
        return input_ND

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """norm(input + dropout(output))."""
        return self.norm(input_ND + dropout(output_ND, self.dropout, self.training))


class PreNormSublayer(Sublayer):
    """Layer norm before a module, then dropout and residual."""

    @override
    def enter(self, input_ND: Tensor) -> Tensor:
        return self.norm(input_ND)

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """Input + dropout(output)."""
        return input_ND + dropout(output_ND, self.dropout, self.training)


SUBLAYERS = {"post": Sublayer, "pre": PreNormSublayer}
"""Sub-layers by the place of the norm (`form.norm`)."""


class FeedForward(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[settings.form.activation]
        self.inner = nn.Linear(settings.width, settings.feed_forward_width)
        self.outer = nn.Linear(settings.feed_forward_width, settings.width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, D] → [N, D]."""
        return self.outer(self.activation(self.inner(hidden_ND)))


def build_sublayer(settings: ModelSettings) -> Sublayer:
    """Dropout, residual and layer norm as the settings place them."""
    return SUBLAYERS[settings.form.norm](settings.width, settings.dropout)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, settings: ModelSettings, *, pattern: str) -> None:
        super().__init__()
        self.self_attention = build_attention(settings.width, settings.heads, pattern)
        self.self_sublayer = build_sublayer(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_sublayer = build_sublayer(settings)

    def forward(
        self, hidden_SD: Tensor, groupings: Groupings, between: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """[S, D] → [S, D]; `between` is another sub-layer, between self-attention and feed-forward."""
        outer = self.self_sublayer
        hidden_SD = outer(hidden_SD, self.self_attention(outer.enter(hidden_SD), None, groupings))
        if between is not None:
            hidden_SD = between(hidden_SD)
        outer = self.feed_forward_sublayer
        return outer(hidden_SD, self.feed_forward(outer.enter(hidden_SD)))


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the source, and feed-forward."""

    def __init__(self, settings: ModelSettings, *, pattern: str, cross_pattern: str) -> None:
        super().__init__()
        self.self_attention = build_attention(settings.width, settings.heads, pattern)
        self.self_sublayer = build_sublayer(settings)
        self.cross_attention = build_attention(settings.width, settings.heads, cross_pattern)
        self.cross_sublayer = build_sublayer(settings)
        self.feed_forward = FeedForward(settings)
        self.feed_forward_sublayer = build_sublayer(settings)

    def forward(
        self,
        hidden_ND: Tensor,
        memory_SD: Tensor,
        groupings: Groupings,
        cross_groupings: Groupings,
        between: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """[N, D] → [N, D]; `between` is another sub-layer, between self-attention and cross-attention."""
        outer = self.self_sublayer
        hidden_ND = outer(hidden_ND, self.self_attention(outer.enter(hidden_ND), None, groupings))
        if between is not None:
            hidden_ND = between(hidden_ND)
        outer = self.cross_sublayer
        hidden_ND = outer(hidden_ND, self.cross_attention(outer.enter(hidden_ND), memory_SD, cross_groupings))
        outer = self.feed_forward_sublayer
        return outer(hidden_ND, self.feed_forward(outer.enter(hidden_ND)))


class GatedEncoderLayer(EncoderLayer):
    """A whole layer, and a gate that weighs its output, the global context, against its input, the local one."""

    def __init__(self, settings: ModelSettings, *, pattern: str) -> None:
        super().__init__(settings, pattern=pattern)
        self.gate = Gate(settings.width)

    @override
    def forward(
        self, hidden_SD: Tensor, groupings: Groupings, between: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Gate ⊙ input + (1 − gate) ⊙ output."""
        return self.gate(hidden_SD, super().forward(hidden_SD, groupings, between))


ENCODER_LAYERS: dict[str, type[EncoderLayer]] = {"distances": GatedEncoderLayer}
"""Classes of encoder layers of patterns that have their own."""
