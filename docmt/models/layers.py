"""Attention modules and layers over packed tokens.

Shape letters: N packed queries, M packed keys (of the other side in cross-attention), D width, H heads, K head width.
"""

import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from docmt.errors import UserError
from docmt.models.distances import Distances
from docmt.models.dropout import dropout
from docmt.models.grouping import AnyGrouping
from docmt.models.patterns import Fusion, find_part, find_pattern
from docmt.models.precision import product_dtype
from docmt.models.ragged import AttentionInputs, ragged_attention
from docmt.models.settings import ModelSettings

Groupings = Callable[[str], AnyGrouping]
"""Gives the grouping of a pattern for the attention at hand."""

Attend = Callable[["MultiHeadAttention", Tensor], Tensor]
"""Runs one multi-head attention on queries [N, D] with keys and values that it knows; gives [N, D]."""

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "gelu": F.gelu, "swish": F.silu}
"""By the names of the settings; `gelu` is the exact one."""
INHERITED = "group"
"""The part of a fused attention that corresponds to an attention with one pattern."""
DISTANCES = "distances."
"""How the names of parameters begin that only attentions with distances have."""


class MultiHeadAttention(nn.Module):
    """Multi-head attention of one pattern (G-Transformer, Eq. 5, and Eq. 8 if the pattern is `group`).

    Args:
        width: of what it reads and gives.
        heads: number of heads.
        pattern: what each query sees.
        inner: width of all heads together; None means `width`.
        memory_width: of the memory that it reads, where that is another width.
        distances: what it knows of distances; None means what the pattern says.
    """

    shares_queries: ClassVar[bool] = False

    def __init__(
        self,
        width: int,
        heads: int,
        pattern: str,
        *,
        inner: int | None = None,
        memory_width: int | None = None,
        distances: Distances | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.pattern = heads, pattern
        inner = width if inner is None else inner
        self.in_weight = nn.Parameter(torch.empty((3 if memory_width is None else 1) * inner, width))
        self.memory_weight = None if memory_width is None else nn.Parameter(torch.empty(2 * inner, memory_width))
        self.in_bias = nn.Parameter(torch.zeros(3 * inner))
        self.out = nn.Linear(inner, width)
        self.distances = distances or find_part(pattern).build_distances(heads, inner // heads)
        for weight in (self.in_weight, self.memory_weight):
            for part in () if weight is None else weight.data.split(inner):
                nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """Attend from `query_ND` to `memory_MD`, or to itself when there is no memory; returns [N, D]."""
        grouping = groupings(self.pattern)
        query_NHK, key_MHK, value_MHK, adjust = self.inputs(query_ND, memory_MD, grouping)
        output_NHK = ragged_attention(query_NHK, key_MHK, value_MHK, grouping, adjust)
        if self.distances is not None:
            output_NHK = self.distances.finish(output_NHK)
        return self.out(output_NHK.flatten(1))

    def inputs(self, query_ND: Tensor, memory_MD: Tensor | None, grouping: AnyGrouping) -> AttentionInputs:
        """What the attention computes with: `project`, and what distances make of it."""
        if self.distances is None:
            return AttentionInputs(*self.project(query_ND, memory_MD), None)
        return self.distances.inputs(self, query_ND, memory_MD, grouping)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """As `FusedAttention.fuse`, with one part."""
        return attend(self, query_ND)

    @staticmethod
    def counterpart(name: str) -> str | None:
        """The parameter that corresponds to `name` in a model that has an attention of the other kind in this place."""
        return None if name.startswith(DISTANCES) else f"{INHERITED}.{name}"

    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [N, H, K], keys and values [M, H, K]."""
        if memory_MD is None:
            projected = F.linear(query_ND, self.in_weight, self.in_bias)
            query_NHK, key_NHK, value_NHK = projected.unflatten(1, (3, self.heads, -1)).unbind(1)
            return query_NHK, key_NHK, value_NHK
        # Split once: the gradients of two slices would each be a whole matrix.
        weights, biases = self._in_parts()
        query_NHK = F.linear(query_ND, weights[0], biases[0]).unflatten(1, (self.heads, -1))
        key_MHK, value_MHK = F.linear(memory_MD, weights[1], biases[1]).unflatten(1, (2, self.heads, -1)).unbind(1)
        return query_NHK, key_MHK, value_MHK

    def _in_parts(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Weights and biases, each for queries and for keys and values."""
        inner = self.out.in_features
        biases = self.in_bias.split((inner, 2 * inner))
        if self.memory_weight is not None:
            return (self.in_weight, self.memory_weight), biases
        return self.in_weight.split((inner, 2 * inner)), biases

    def project_query(self, query_ND: Tensor) -> Tensor:
        """Queries [N, H, K]."""
        (weight, _), (bias, _) = self._in_parts()
        return F.linear(query_ND, weight, bias).unflatten(1, (self.heads, -1))

    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [M, H, K]."""
        (_, weight), (_, bias) = self._in_parts()
        key_MHK, value_MHK = F.linear(memory_MD, weight, bias).unflatten(1, (2, self.heads, -1)).unbind(1)
        return key_MHK, value_MHK


class Gate(nn.Linear):
    """Sums two outputs by a gate per dimension.

    (G-Transformer, Eq. 10; RST-Transformer, Eq. 12–13; cross-task pre-training, Eq. 6–7, without bias.)
    """

    def __init__(self, width: int, *, bias: bool = True) -> None:
        super().__init__(2 * width, width, bias=bias)

    # It is a linear map with two inputs; as a child of `Linear` its parameters are named as one's.
    def forward(self, local_ND: Tensor, wide_ND: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Sum the inputs, gate ⊙ local + (1 − gate) ⊙ wide, where the gate is the sigmoid of a linear map of both."""
        gate_ND = torch.sigmoid(self.weigh(torch.cat((local_ND, wide_ND), dim=-1)))
        # In mixed precision, linear maps give half precision, but layer norms, which may be an input, do not.
        dtype = torch.promote_types(local_ND.dtype, wide_ND.dtype)
        return torch.lerp(wide_ND.to(dtype), local_ND.to(dtype), gate_ND.to(dtype))

    def weigh(self, both_NE: Tensor) -> Tensor:
        """The gate before the sigmoid, [N, D], for both inputs side by side, [N, E = 2 D]."""
        return super().forward(both_NE)


class FusedAttention(nn.Module, ABC):
    """Several attentions in the place of one, each with its own parameters and output projection.

    Subclasses say in `fuse` which attention reads what. It serves every way of computing the parts: packed here, step
    by step with caches in decoding.

    Args:
        width, heads, inner: of each part, see `MultiHeadAttention`.
        patterns: of the parts, in the order in which `fuse` runs them. The part of each is named after it.
    """

    has_gate: ClassVar[bool] = True
    """Whether a gate joins the outputs."""
    shares_queries: ClassVar[bool] = False
    """Whether all parts read the same queries, so that decoding can project them in one product."""

    def __init__(self, width: int, heads: int, patterns: Sequence[str], *, inner: int | None = None) -> None:
        super().__init__()
        for pattern in patterns:
            name = f"{pattern}_" if keyword.iskeyword(pattern) else pattern
            self.add_module(name, MultiHeadAttention(width, heads, pattern, inner=inner))
        if self.has_gate:
            self.gate = Gate(width)

    @abstractmethod
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """The output [N, D] for queries [N, D]; `attend` is called once for each part, in their order."""

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """As `MultiHeadAttention.forward`. Without a memory, a part's keys and values come from its own queries."""
        query_ND = query_ND.to(product_dtype(query_ND))  # once for all parts
        return self.fuse(query_ND, lambda part, part_query_ND: part(part_query_ND, memory_MD, groupings))

    def silence(self) -> None:
        """Start the new parts so that the output is that of the first part before this call, bit by bit.

        Only where a gate joins the first part with others. The gate is half open and depends on nothing yet, the first
        part's output counts double, which rounds nothing, and the others give zero. Unlike a gate that is closed, this
        lets gradients reach all of them. Raises UserError where no gate does.
        """
        if not self.has_gate:
            raise UserError(
                "new_parts 'silent': this model has several attentions in one place with no gate between them, so it "
                "cannot start as the sentence model that it is initialized from; use an architecture with gates"
            )
        first, *others = parts(self)
        with torch.no_grad():
            for parameter in (*self.gate.parameters(), *(p for part in others for p in part.out.parameters())):
                parameter.zero_()
            for parameter in first.out.parameters():
                parameter.mul_(2)

    @staticmethod
    def counterpart(name: str) -> str | None:
        """As `MultiHeadAttention.counterpart`: only the group part has one, the others and the gate are new."""
        part, _, rest = name.partition(".")
        return rest if part == INHERITED else None


class ParallelAttention(FusedAttention):
    """Two attentions side by side, summed by a gate (G-Transformer, Eq. 10; RST-Transformer, Eq. 11–13)."""

    shares_queries = True

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        first, second = parts(self)
        return self.gate(attend(first, query_ND), attend(second, query_ND))


class SerialAttention(FusedAttention):
    """One attention after another (RST-Transformer, Eq. 8–10).

    The output of the first, after its output projection, is what the second projects: to queries and, in
    self-attention, keys and values. In cross-attention, keys and values of both come from the source.
    """

    has_gate = False

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        first, second = parts(self)
        return attend(second, attend(first, query_ND))


class MixedAttention(FusedAttention):
    """One attention and another one after it, as in `SerialAttention`, summed by a gate."""

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """See `FusedAttention.fuse`."""
        first, second = parts(self)
        first_ND = attend(first, query_ND)
        return self.gate(first_ND, attend(second, first_ND))


Attention = MultiHeadAttention | FusedAttention


def build_attention(width: int, heads: int, pattern: str) -> Attention:
    """The module of a pattern."""
    found = find_pattern(pattern)
    return found.build(width, heads) if isinstance(found, Fusion) else MultiHeadAttention(width, heads, pattern)


def parts(attention: Attention) -> list[MultiHeadAttention]:
    """The multi-head attentions of an attention module, in the order in which `fuse` runs them."""
    modules = attention.children() if isinstance(attention, FusedAttention) else [attention]
    return [module for module in modules if isinstance(module, MultiHeadAttention)]


class Sublayer(nn.Module):
    """Dropout, residual, layer norm around a module: post-norm, as in the original Transformer."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.norm = nn.LayerNorm(width)

    def enter(self, input_ND: Tensor) -> Tensor:
        """What the module reads of the input."""
        return input_ND

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """norm(input + dropout(output))."""
        return self.norm(input_ND + dropout(output_ND, self.dropout, self.training))


class PreNormSublayer(Sublayer):
    """Layer norm before a module, then dropout and residual."""

    def enter(self, input_ND: Tensor) -> Tensor:
        """See `Sublayer.enter`."""
        return self.norm(input_ND)

    def forward(self, input_ND: Tensor, output_ND: Tensor) -> Tensor:
        """Input + dropout(output)."""
        return input_ND + dropout(output_ND, self.dropout, self.training)


SUBLAYERS = {"post": Sublayer, "pre": PreNormSublayer}
"""By the place of the norm in the settings."""


class FeedForward(nn.Module):
    """Two linear maps with an activation between them."""

    def __init__(self, width: int, inner_width: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.inner = nn.Linear(width, inner_width)
        self.outer = nn.Linear(inner_width, width)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, hidden_ND: Tensor) -> Tensor:
        """[N, D] → [N, D]."""
        return self.outer(self.activation(self.inner(hidden_ND)))


def build_sublayer(settings: ModelSettings) -> Sublayer:
    """Dropout, residual and layer norm as the settings place them."""
    return SUBLAYERS[settings.form.norm](settings.width, settings.dropout)


def build_encoder_layer(settings: ModelSettings, pattern: str) -> "EncoderLayer":
    """The layer of a pattern."""
    name = getattr(find_pattern(pattern), "layer", None)
    return (EncoderLayer if name is None else resolve_name(name))(settings, pattern=pattern)


def build_feed_forward(settings: ModelSettings) -> FeedForward:
    """A feed-forward module with fresh parameters."""
    return FeedForward(settings.width, settings.feed_forward_width, settings.form.activation)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward."""

    def __init__(self, settings: ModelSettings, *, pattern: str) -> None:
        super().__init__()
        self.self_attention = build_attention(settings.width, settings.heads, pattern)
        self.self_sublayer = build_sublayer(settings)
        self.feed_forward = build_feed_forward(settings)
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
        self.feed_forward = build_feed_forward(settings)
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
