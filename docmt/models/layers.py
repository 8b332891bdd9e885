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
"""Activation functions by name. `gelu` is exact, not the tanh approximation."""


class Sublayer(nn.Module):
    """Dropout, residual and layer norm around a module. Post-norm, as in the original Transformer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def enter(self, input_ND: Tensor) -> Tensor:
        """Return the input for the module inside this sub-layer."""
        return input_ND

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """Return norm(input + dropout(output))."""
        return self.norm(input_ND + dropout(output_ND, self.dropout, self.training))


class PreNormSublayer(Sublayer):
    """Layer norm before a module, dropout and residual after it."""

    @override
    def enter(self, input_ND: Tensor) -> Tensor:
        return self.norm(input_ND)

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """Return input + dropout(output)."""
        return input_ND + dropout(output_ND, self.dropout, self.training)


SUBLAYERS = {"post": Sublayer, "pre": PreNormSublayer}
"""Sub-layer classes by norm placement (`form.norm`)."""


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
    """Return a sub-layer with the norm placement of the settings."""
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
        """[S, D] → [S, D]. `between` is applied between self-attention and feed-forward."""
        sublayer = self.self_sublayer
        hidden_SD = sublayer(hidden_SD, self.self_attention(sublayer.enter(hidden_SD), None, groupings))
        if between is not None:
            hidden_SD = between(hidden_SD)
        sublayer = self.feed_forward_sublayer
        return sublayer(hidden_SD, self.feed_forward(sublayer.enter(hidden_SD)))


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention and feed-forward."""

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
        """[N, D] → [N, D]. `between` is applied between self-attention and cross-attention."""
        sublayer = self.self_sublayer
        hidden_ND = sublayer(hidden_ND, self.self_attention(sublayer.enter(hidden_ND), None, groupings))
        if between is not None:
            hidden_ND = between(hidden_ND)
        sublayer = self.cross_sublayer
        hidden_ND = sublayer(hidden_ND, self.cross_attention(sublayer.enter(hidden_ND), memory_SD, cross_groupings))
        sublayer = self.feed_forward_sublayer
        return sublayer(hidden_ND, self.feed_forward(sublayer.enter(hidden_ND)))


class GatedEncoderLayer(EncoderLayer):
    """An encoder layer with a gate between its output (global context) and its input (local context)."""

    def __init__(self, settings: ModelSettings, *, pattern: str) -> None:
        super().__init__(settings, pattern=pattern)
        self.gate = Gate(settings.width)

    @override
    def forward(
        self, hidden_SD: Tensor, groupings: Groupings, between: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Return gate ⊙ input + (1 − gate) ⊙ output."""
        return self.gate(hidden_SD, super().forward(hidden_SD, groupings, between))


ENCODER_LAYERS: dict[str, type[EncoderLayer]] = {"distances": GatedEncoderLayer}
"""Encoder layer classes for patterns that need their own."""
