"""Attention modules: multi-head attention with one pattern, relative distances, and fusions of several patterns.

Shape letters: N packed queries, M packed keys (from the other side in cross-attention), P keys in group order, D width,
H heads, K head width, E extended head width, W frequencies.
"""

import keyword
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from docmt.errors import UserError
from docmt.models.attention.kernels import KernelIndexes, Projections, ragged_attention
from docmt.models.attention.patterns import MAX_SENTENCES, NO_GATE, PATTERNS, Fusion
from docmt.models.attention.varlen import VarlenIndexes, attend_packed, unpack
from docmt.models.numerics import product_dtype

Groupings = Callable[[str], KernelIndexes]
"""Returns the grouping for a pattern in one attention slot, as index tensors."""
Attend = Callable[["MultiHeadAttention", Tensor], Tensor]
"""Runs one multi-head attention on queries [N, D]. Keys and values are known to the function. Returns [N, D]."""
INHERITED = "group"
"""The part in a fused attention that corresponds to an attention with one pattern."""


class MultiHeadAttention(nn.Module):
    """Multi-head attention with one pattern (G-Transformer, Eq. 5, and Eq. 8 for the pattern `group`).

    Scores depend on key distances if `distances` is set or the pattern has distances. All heads together are `inner`
    wide.
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
        distances: "Distances | None" = None,
    ) -> None:
        super().__init__()
        self.heads, self.pattern = heads, pattern
        inner = width if inner is None else inner
        self.in_weight = nn.Parameter(torch.empty((3 if memory_width is None else 1) * inner, width))
        self.memory_weight = None if memory_width is None else nn.Parameter(torch.empty(2 * inner, memory_width))
        self.in_bias = nn.Parameter(torch.zeros(3 * inner))
        self.out = nn.Linear(inner, width)
        if distances is None and pattern in DISTANCES:
            distances = DISTANCES[pattern](heads, inner // heads)
        self.distances = distances
        # After the distances, which draw random numbers first.
        for weight in (self.in_weight, self.memory_weight):
            # As fairseq: queries, keys and values each as a separate matrix, smaller than Xavier by √2.
            for part in () if weight is None else weight.data.split(inner):
                nn.init.xavier_uniform_(part, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """Attend from `query_ND` to `memory_MD`, or to itself without a memory. Returns [N, D]."""
        indexes = groupings(self.pattern)
        if self.distances is None and isinstance(indexes, VarlenIndexes):
            return self.out(attend_packed(self.project_packed(query_ND, memory_MD), indexes).flatten(1))
        query_NHK, key_MHK, value_MHK, adjust = self.projections(query_ND, memory_MD, indexes)
        output_NHK = ragged_attention(query_NHK, key_MHK, value_MHK, indexes, adjust)
        if self.distances is not None:
            output_NHK = self.distances.finish(output_NHK)
        return self.out(output_NHK.flatten(1))

    def projections(self, query_ND: Tensor, memory_MD: Tensor | None, indexes: KernelIndexes) -> Projections:
        """Return queries, keys and values, with distances where the pattern has them."""
        if self.distances is None:
            return *self.project(query_ND, memory_MD), None
        return self.distances.projections(self, query_ND, memory_MD, indexes)

    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries [N, H, K], and keys and values [M, H, K]. Without a memory, all come from the queries."""
        return unpack(self.project_packed(query_ND, memory_MD))  # pyright: ignore[reportReturnType]

    def project_packed(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, ...]:
        """Return queries, keys and values as [N, 3, H, K], or with a memory as [N, 1, H, K] and [M, 2, H, K]."""
        if memory_MD is None:
            return (F.linear(query_ND, self.in_weight, self.in_bias).unflatten(1, (3, self.heads, -1)),)
        # Split once: the gradients of two slices would each be a whole matrix.
        weights, biases = self._in_parts()
        query_N1HK = F.linear(query_ND, weights[0], biases[0]).unflatten(1, (1, self.heads, -1))
        return query_N1HK, F.linear(memory_MD, weights[1], biases[1]).unflatten(1, (2, self.heads, -1))

    def project_query(self, query_ND: Tensor) -> Tensor:
        """Return queries [N, H, K]."""
        (weight, _), (bias, _) = self._in_parts()
        return F.linear(query_ND, weight, bias).unflatten(1, (self.heads, -1))

    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [M, H, K]."""
        (_, weight), (_, bias) = self._in_parts()
        key_MHK, value_MHK = F.linear(memory_MD, weight, bias).unflatten(1, (2, self.heads, -1)).unbind(1)
        return key_MHK, value_MHK

    def _in_parts(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return weights and biases, both split into queries, and keys with values."""
        inner = self.out.in_features
        biases = self.in_bias.split((inner, 2 * inner))
        if self.memory_weight is not None:
            return (self.in_weight, self.memory_weight), biases
        return self.in_weight.split((inner, 2 * inner)), biases

    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        """`FusedAttention.fuse` with one part."""
        return attend(self, query_ND)

    @property
    def key_width(self) -> int:
        """The width of keys and values in a head, with distances."""
        factor = 1 if self.distances is None else self.distances.key_factor
        return self.out.in_features // self.heads * factor

    @staticmethod
    def counterpart(name: str) -> str | None:
        """Return the corresponding parameter in a model with a fused attention in this place, or None."""
        return None if name.startswith("distances.") else f"{INHERITED}.{name}"


class Distances(nn.Module, ABC):
    """Parameters and computations that make attention depend on the key distances in the pattern's grouping."""

    key_factor: ClassVar[int] = 1  # keys and values are wider by this factor

    def projections(
        self, part: MultiHeadAttention, query_ND: Tensor, memory_MD: Tensor | None, indexes: KernelIndexes
    ) -> Projections:
        """Return queries, keys and values, see `MultiHeadAttention.projections`."""
        return *part.project(query_ND, memory_MD), self.add

    @abstractmethod
    def add(self, key_PHK: Tensor, value_PHK: Tensor, distances_P: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values that depend on the distances, int64 [P]. All are in group order."""

    def finish(self, output_NHE: Tensor) -> Tensor:
        """Return the attention output as the output projection reads it, [N, H, K]."""
        return output_NHE

    def extend_step(self, projected_N3HK: Tensor, position: Tensor) -> Tensor:
        """Return queries (scaled by 1/√K), keys and values for one step in incremental decoding, as caches hold them.

        `position`, int64 [1]: the newest tokens of all hypotheses have the same position in their instances.
        """
        return projected_N3HK


class SentenceDistances(Distances):
    """Learned vectors per sentence distance, added to keys and values (Shaw et al. 2018, between sentences).

    They are initialized to 0. With `heads` 1, all heads share them.
    """

    def __init__(self, n_distances: int, heads: int, head_width: int) -> None:
        super().__init__()
        self.keys, self.values = (nn.Parameter(torch.zeros(n_distances, heads, head_width)) for _ in range(2))

    @override
    def add(self, key_PHK: Tensor, value_PHK: Tensor, distances_P: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = (table.to(key_PHK.dtype)[distances_P] for table in (self.keys, self.values))
        return key_PHK + keys, value_PHK + values


class TokenDistances(Distances):
    """Attention by token distance. Previous sentences are a memory (Transformer-XL, §3.2–3.3).

    The score for query i and key j is (q_i·k_j + (q_i + b)·(R ρ(i − j))) / √K, where ρ(t) are K sinusoids, and heads
    have their own matrix R and vector b. (Transformer-XL's other vector is the bias in the query projection.) Keys and
    values from earlier sentences come from states without gradients.

    Since sin(i − j) and cos(i − j) are sums of products of sines and cosines for i and for j, the second term is also a
    scalar product. Queries, keys and values are therefore 2 K wide here, and any kernel can compute them.
    """

    key_factor = 2

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(heads, head_width, head_width))
        self.bias = nn.Parameter(torch.zeros(heads, head_width))
        for head in self.matrix.data:
            nn.init.xavier_uniform_(head)

    @override
    def projections(
        self, part: MultiHeadAttention, query_ND: Tensor, memory_MD: Tensor | None, indexes: KernelIndexes
    ) -> Projections:
        """Return near and far versions of keys and values. Later sentences see the far version."""
        # Cross-attention has no order of words between query and key.
        assert memory_MD is None, "of self-attention only"
        query, key, value = part.project(query_ND, None)
        assert indexes.positions_N is not None, "this pattern gives positions"
        query, near, value = self.extend(query, key, value, indexes.positions_N)
        # As in Transformer-XL, the states of earlier sentences are constants. The projections still get gradients.
        far_key, far_value = part.project_memory(query_ND.detach())
        far = torch.cat((far_key, near[..., far_key.shape[-1] :]), dim=-1)
        # Kernels divide by the root of twice the width.
        query = query * math.sqrt(2)
        values = torch.cat((value, F.pad(far_value, (0, far_value.shape[-1]))), dim=-1)
        return query, torch.cat((near, far), -1), values, self.add

    @override
    def add(self, key_PHK: Tensor, value_PHK: Tensor, distances_P: Tensor) -> tuple[Tensor, Tensor]:
        is_far = (distances_P > 0)[:, None, None]
        (near_key, far_key), (near_value, far_value) = (rows.chunk(2, -1) for rows in (key_PHK, value_PHK))
        return torch.where(is_far, far_key, near_key), torch.where(is_far, far_value, near_value)

    def extend(
        self, query_NHK: Tensor, key_NHK: Tensor, value_NHK: Tensor, positions_N: Tensor, *, scale: float = 1.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values with twice the width, for self-attention.

        Queries come multiplied by `scale`. Positions are in the instance. A single entry can serve all tokens.
        """
        half = key_NHK.shape[-1] // 2  # frequencies as in `transformer.sinusoids`
        rates_W = torch.exp(torch.arange(half, device=positions_N.device) * (-math.log(10000) / max(half - 1, 1)))
        angles_N1W = positions_N[:, None, None] * rates_W
        sin_N1W, cos_N1W = angles_N1W.sin(), angles_N1W.cos()
        matrix, bias = self.matrix.to(query_NHK.dtype), self.bias.to(query_NHK.dtype)
        sines, cosines = torch.einsum("nhl,hlk->nhk", query_NHK + scale * bias, matrix).chunk(2, -1)
        # The addition theorems of sine and cosine: the factors of sin j, then of cos j, in the order of `waves`.
        turned = torch.cat((cosines * sin_N1W - sines * cos_N1W, sines * sin_N1W + cosines * cos_N1W), -1)
        waves = torch.cat((sin_N1W, cos_N1W), -1).expand_as(key_NHK)
        query = torch.cat((query_NHK, turned.to(query_NHK.dtype)), -1)
        return query, torch.cat((key_NHK, waves.to(key_NHK.dtype)), -1), F.pad(value_NHK, (0, value_NHK.shape[-1]))

    @override
    def extend_step(self, projected_N3HK: Tensor, position: Tensor) -> Tensor:
        query_NHK, key_NHK, value_NHK = projected_N3HK.unbind(1)
        # Decoding scales queries when it projects them, so the bias must be scaled before it is added.
        scale = key_NHK.shape[-1] ** -0.5
        return torch.stack(self.extend(query_NHK, key_NHK, value_NHK, position, scale=scale), dim=1)

    @override
    def finish(self, output_NHE: Tensor) -> Tensor:
        # The second half of the values was padding with zeros.
        return output_NHE[..., : self.bias.shape[1]]


DISTANCES: dict[str, Callable[[int, int], Distances]] = {
    # The own sentence, and any other (Flat-Transformer).
    "segments": partial(SentenceDistances, 2),
    # Up to `MAX_SENTENCES` either way, the same vectors for all heads (Hybrid Context).
    "distances": lambda heads, head_width: SentenceDistances(2 * MAX_SENTENCES + 1, 1, head_width),
    "memory": TokenDistances,
}
"""Constructors by pattern. Their arguments are the number of heads and the head width."""


class Gate(nn.Linear):
    """Sum of two outputs with a gate per dimension.

    Sources: G-Transformer, Eq. 10; RST-Transformer, Eq. 12–13; cross-task pre-training, Eq. 6–7 (without bias). It
    starts as in G-Transformer's code, with Xavier weights and zero biases, like all other linear maps.
    """

    def __init__(self, width: int, *, bias: bool = True) -> None:
        super().__init__(2 * width, width, bias=bias)
        nn.init.xavier_uniform_(self.weight)
        if bias:
            nn.init.zeros_(self.bias)

    # A linear map with two inputs. Inheriting from `Linear` gives its parameters the usual names.
    def forward(self, local_ND: Tensor, wide_ND: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return gate ⊙ local + (1 − gate) ⊙ wide, where the gate is the sigmoid of a linear map of both."""
        gate_ND = torch.sigmoid(self.weigh(torch.cat((local_ND, wide_ND), dim=-1)))
        # In mixed precision, linear maps give half precision, but layer norms, which may be an input, do not.
        dtype = torch.promote_types(local_ND.dtype, wide_ND.dtype)
        return torch.lerp(wide_ND.to(dtype), local_ND.to(dtype), gate_ND.to(dtype))

    def weigh(self, both_NE: Tensor) -> Tensor:
        """Return the gate before the sigmoid, [N, D], from both inputs side by side, [N, 2 D]."""
        return super().forward(both_NE)


class FusedAttention(nn.Module, ABC):
    """Several attentions in one place, with separate parameters, named after their patterns.

    Subclasses define in `fuse` how parts are connected. The same definition serves packed computation here and cached
    computation in decoding. Parts are in the order in which `fuse` runs them.
    """

    has_gate: ClassVar[bool] = True
    """True if a gate combines the outputs."""
    shares_queries: ClassVar[bool] = False
    """True if all parts read the same queries, so that decoding can project them in one product."""

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
        """Return the output [N, D] for queries [N, D]. `attend` is called once per part, in order."""

    def forward(self, query_ND: Tensor, memory_MD: Tensor | None, groupings: Groupings) -> Tensor:
        """As `MultiHeadAttention.forward`. Without a memory, a part's keys and values come from its own queries."""
        query_ND = query_ND.to(product_dtype(query_ND))  # once for all parts
        return self.fuse(query_ND, lambda part, part_query_ND: part(part_query_ND, memory_MD, groupings))

    def zero_init_outputs(self) -> None:
        """Initialize the new parts so that the output equals the first part's output before this call, bit by bit.

        Requires a gate. It starts half open and constant, the first part's output is doubled (an exact operation), and
        the other outputs are zero. Unlike with a closed gate, gradients reach all parts.
        """
        if not self.has_gate:
            raise UserError(NO_GATE)
        first, *others = parts(self)
        with torch.no_grad():
            for parameter in (*self.gate.parameters(), *(p for part in others for p in part.out.parameters())):
                parameter.zero_()
            # A gate of zeros is open to sigmoid(0) = ½. Doubling is exact in binary floats, so ½ · 2x + ½ · 0 = x.
            for parameter in first.out.parameters():
                parameter.mul_(2)

    @staticmethod
    def counterpart(name: str) -> str | None:
        """Return the sentence model's name for a parameter of the group attention. None for other parameters."""
        part, _, rest = name.partition(".")
        return rest if part == INHERITED else None


class ParallelAttention(FusedAttention):
    """Two attentions side by side, combined by a gate (G-Transformer, Eq. 10; RST-Transformer, Eq. 11–13)."""

    shares_queries = True

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        return self.gate(attend(first, query_ND), attend(second, query_ND))


class SerialAttention(FusedAttention):
    """One attention after another (RST-Transformer, Eq. 8–10).

    The second attention projects the first one's output to queries and, in self-attention, to keys and values. In
    cross-attention, keys and values for both come from the source.
    """

    has_gate = False

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        return attend(second, attend(first, query_ND))


class MixedAttention(FusedAttention):
    """Two attentions in series as in `SerialAttention`, whose outputs are combined by a gate (Eq. 12–13)."""

    @override
    def fuse(self, query_ND: Tensor, attend: Attend) -> Tensor:
        first, second = parts(self)
        first_ND = attend(first, query_ND)
        return self.gate(first_ND, attend(second, first_ND))


def parts(attention: "MultiHeadAttention | FusedAttention") -> list[MultiHeadAttention]:
    """Return the multi-head attentions in an attention module, in the order in which `fuse` runs them."""
    modules = attention.children() if isinstance(attention, FusedAttention) else [attention]
    return [module for module in modules if isinstance(module, MultiHeadAttention)]


class SplitAttention(FusedAttention):
    """One multi-head attention whose heads are divided equally between patterns.

    A part has some heads, so some rows of the input projections and some columns of the output projection. Outputs are
    summed. This equals one output projection for all heads. The first part has its bias.
    """

    has_gate: ClassVar[bool] = False
    WHOLE: ClassVar[tuple[str, ...]] = ("in_weight", "in_bias", "out.weight", "out.bias")
    """Parameters in a `MultiHeadAttention` with all heads."""
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

    def split(self, whole: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return parameters for the parts, cut from an attention with all heads."""
        names = [name for name, module in self.named_children() if isinstance(module, MultiHeadAttention)]
        n, weights = len(names), {}
        for number, name in enumerate(names):
            for parameter in ("in_weight", "in_bias"):
                # One matrix has blocks of rows for queries, keys and values: a part takes its share of each.
                weights[f"{name}.{parameter}"] = torch.cat(
                    [rows.chunk(n)[number] for rows in whole[parameter].chunk(3)]
                )
            weights[f"{name}.out.weight"] = whole["out.weight"].chunk(n, 1)[number]
        return weights | {f"{names[0]}.out.bias": whole["out.bias"]}

    @staticmethod
    @override
    def counterpart(name: str) -> str | None:
        """Return the name itself, because an attention with one pattern is split beforehand."""
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
    """Return a new module for a pattern or fusion."""
    row = PATTERNS[pattern]
    if isinstance(row, Fusion):
        return FUSIONS[pattern](width, heads, row.parts)
    return MultiHeadAttention(width, heads, pattern)
