"""Multi-head attention of one pattern, and fusions: several attentions in the place of one.

Shape letters: N packed queries, M packed keys (of the other side in cross-attention), D width, H heads, K head width.
"""

import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.errors import UserError
from docmt.models.attention.distances import DISTANCES, Distances
from docmt.models.attention.grouping import AnyGrouping
from docmt.models.attention.patterns import NO_GATE, PATTERNS, Fusion
from docmt.models.attention.projections import HeadProjections
from docmt.models.attention.ragged import AttentionInputs, ragged_attention
from docmt.models.numerics import product_dtype

Groupings = Callable[[str], AnyGrouping]
"""Gives the grouping of a pattern for the attention at hand."""

Attend = Callable[["MultiHeadAttention", Tensor], Tensor]
"""Runs one multi-head attention on queries [N, D] with keys and values that it knows; gives [N, D]."""

INHERITED = "group"
"""The part of a fused attention that corresponds to an attention with one pattern."""
DISTANCES_PREFIX = "distances."
"""Name prefix of parameters that exist only with distances."""


class MultiHeadAttention(HeadProjections):
    """Multi-head attention of one pattern (G-Transformer, Eq. 5, and Eq. 8 if the pattern is `group`).

    Scores depend on the distances of keys where `distances` are given or the pattern has them.
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
        super().__init__(width, heads, inner=inner, memory_width=memory_width)
        self.pattern = pattern
        if distances is None and pattern in DISTANCES:
            distances = DISTANCES[pattern](heads, self.out.in_features // heads)
        self.distances = distances
        self.initialize()  # after the distances, which draw random numbers first

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """Attend from `query_ND` to `memory_MD`, or to itself when there is no memory; returns [N, D]."""
        grouping = groupings(self.pattern)
        query_NHK, key_MHK, value_MHK, adjust = self.inputs(query_ND, memory_MD, grouping)
        output_NHK = ragged_attention(query_NHK, key_MHK, value_MHK, grouping, adjust)
        if self.distances is not None:
            output_NHK = self.distances.finish(output_NHK)
        return self.out(output_NHK.flatten(1))

    def inputs(self, query_ND: Tensor, memory_MD: Tensor | None, grouping: AnyGrouping) -> AttentionInputs:
        """Queries, keys and values, with their distances where the pattern has them."""
        if self.distances is None:
            return *self.project(query_ND, memory_MD), None
        return self.distances.inputs(self, query_ND, memory_MD, grouping)

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """`FusedAttention.fuse` with one part."""
        return attend(self, query_ND)

    @staticmethod
    def counterpart(name: str) -> str | None:
        """The parameter that corresponds to `name` in a model that has an attention of the other kind in this place."""
        return None if name.startswith(DISTANCES_PREFIX) else f"{INHERITED}.{name}"


class Gate(nn.Linear):
    """Sums two outputs by a gate per dimension.

    (G-Transformer, Eq. 10; RST-Transformer, Eq. 12–13; cross-task pre-training, Eq. 6–7, without bias.) It starts as in
    G-Transformer's code, with Xavier weights and biases of 0, like all other linear maps.
    """

    def __init__(self, width: int, *, bias: bool = True) -> None:
        super().__init__(2 * width, width, bias=bias)
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)

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
    """Several attentions in the place of one, each with its own parameters, named after its pattern.

    Subclasses say in `fuse` which attention reads what; parts are in the order in which it runs them. It serves every
    way of computing the parts: packed here, step by step with caches in decoding.
    """

    has_gate: ClassVar[bool] = True
    """Whether a gate joins the outputs."""
    shares_queries: ClassVar[bool] = False
    """Whether all parts read the same queries, so that decoding can project them in one product."""

    def __init__(self, width: int, heads: int, patterns: Sequence[str], *, inner: int | None = None) -> None:
        super().__init__()
        for pattern in patterns:
            # `global` is a keyword, so `attention.global` would be no valid Python.
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
        lets gradients reach all of them.
        """
        if not self.has_gate:
            raise UserError(NO_GATE)
        first, *others = parts(self)
        with torch.no_grad():
            for parameter in (*self.gate.parameters(), *(p for part in others for p in part.out.parameters())):
                parameter.zero_()
            # A gate of zeros is open to sigmoid(0) = ½; doubling is exact in binary floats, so ½ · 2x + ½ · 0 = x.
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

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        return self.gate(attend(first, query_ND), attend(second, query_ND))


class SerialAttention(FusedAttention):
    """One attention after another (RST-Transformer, Eq. 8–10).

    The output of the first, after its output projection, is what the second projects: to queries and, in
    self-attention, keys and values. In cross-attention, keys and values of both come from the source.
    """

    has_gate = False

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        return attend(second, attend(first, query_ND))


class MixedAttention(FusedAttention):
    """One attention and another one after it, as in `SerialAttention`, summed by a gate."""

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        first_ND = attend(first, query_ND)
        return self.gate(first_ND, attend(second, first_ND))


def parts(attention: "MultiHeadAttention | FusedAttention") -> list[MultiHeadAttention]:
    """The multi-head attentions of an attention module, in the order in which `fuse` runs them."""
    modules = attention.children() if isinstance(attention, FusedAttention) else [attention]
    return [module for module in modules if isinstance(module, MultiHeadAttention)]


class SplitAttention(FusedAttention):
    """One multi-head attention, in which each pattern has an equal share of the heads, in order.

    Its parts have some heads each, and so some rows of the projections and some columns of the output projection. Their
    outputs are summed, which is what one output projection of all heads does; the first part has its bias.
    """

    has_gate: ClassVar[bool] = False
    shares_queries: ClassVar[bool] = True

    def __init__(self, width: int, heads: int, patterns: Sequence[str]) -> None:
        n = len(patterns)
        if heads % n:
            raise UserError(f"{' and '.join(patterns)} share heads: model.heads {heads} must be a multiple of {n}")
        super().__init__(width, heads // n, patterns, inner=width // n)
        for part in parts(self)[1:]:
            # Outputs are summed, and the bias must count once.
            part.out.register_parameter("bias", None)
        # The widths of the parts are smaller, but they start as one attention.
        whole = MultiHeadAttention(width, heads, patterns[0]).state_dict()
        self.load_state_dict(self.split({name: whole[name] for name in self.WHOLE}), strict=False)

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, *others = (attend(part, query_ND) for part in parts(self))
        return sum(others, first)

    WHOLE: ClassVar[tuple[str, ...]] = ("in_weight", "in_bias", "out.weight", "out.bias")
    """The parameters of a `MultiHeadAttention` with all heads."""

    def split(self, whole: dict[str, Tensor]) -> dict[str, Tensor]:
        """The parameters of the parts, cut from the parameters of one attention with all heads."""
        names = [name for name, module in self.named_children() if isinstance(module, MultiHeadAttention)]
        n, found = len(names), {}
        for number, name in enumerate(names):
            for parameter in ("in_weight", "in_bias"):
                # One matrix has blocks of rows for queries, keys and values: a part takes its share of each.
                found[f"{name}.{parameter}"] = torch.cat([rows.chunk(n)[number] for rows in whole[parameter].chunk(3)])
            found[f"{name}.out.weight"] = whole["out.weight"].chunk(n, 1)[number]
        return found | {f"{names[0]}.out.bias": whole["out.bias"]}

    @staticmethod
    @override
    def counterpart(name: str) -> str | None:
        """An attention with one pattern is split, so that every name is there."""
        return name


Attention = MultiHeadAttention | FusedAttention

FUSIONS: dict[str, type[FusedAttention]] = {
    "long_short": SplitAttention,
    "combined": ParallelAttention,
    "rst_serial": SerialAttention,
    "rst_parallel": ParallelAttention,
    "rst_mix": MixedAttention,
}


def build_attention(width: int, heads: int, pattern: str) -> Attention:
    """The module of a pattern or fusion, with fresh parameters."""
    row = PATTERNS[pattern]
    if isinstance(row, Fusion):
        return FUSIONS[pattern](width, heads, row.parts)
    return MultiHeadAttention(width, heads, pattern)
