"""Attention that depends on the distance between query and key: parts of attention modules, named by patterns.

Shape letters: N packed queries, M packed keys, P keys in the order of the groups that see them, H heads, K head width,
T distances, W frequencies.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.attention.grouping import AnyGrouping
from docmt.models.attention.projections import HeadProjections
from docmt.models.attention.ragged import AttentionInputs, kernel_inputs_of

MAX_SENTENCES = 20
"""Sentences that are farther away count as this far."""


class Distances(nn.Module, ABC):
    """The parameters and computations that let one attention tell near keys from far ones.

    The distance of each key comes from the grouping of the pattern (`Grouping.distances`).
    """

    @abstractmethod
    def inputs(
        self, part: HeadProjections, query_ND: Tensor, memory_MD: Tensor | None, grouping: AnyGrouping
    ) -> AttentionInputs:
        """Queries, keys and values of the attention; see `MultiHeadAttention.inputs`."""

    def finish(self, output_NHE: Tensor) -> Tensor:
        """The output of the attention as its output projection reads it, [N, H, K]."""
        return output_NHE

    def cache_width(self, head_width: int) -> int:
        """The width of keys and values in caches of incremental decoding."""
        return head_width

    def extend_step(self, projected_N3HK: Tensor, position: Tensor) -> Tensor:
        """The queries, scaled by 1/√K, keys and values of one step of incremental decoding, as caches hold them.

        `position`, int64 [1]: the newest tokens of all hypotheses have the same position in their instances.
        """
        return projected_N3HK


class SentenceDistances(Distances):
    """A learned vector for each distance between sentences, added to keys and another one to values.

    (Shaw et al. 2018, with sentences in the place of words.) At first they are 0. With `heads` 1, all heads share them.
    """

    def __init__(self, n_distances: int, heads: int, head_width: int) -> None:
        super().__init__()
        self.keys, self.values = (nn.Parameter(torch.zeros(n_distances, heads, head_width)) for _ in range(2))

    @override
    def inputs(
        self, part: HeadProjections, query_ND: Tensor, memory_MD: Tensor | None, grouping: AnyGrouping
    ) -> AttentionInputs:
        return *part.project(query_ND, memory_MD), self.add

    def add(self, key_PHK: Tensor, value_PHK: Tensor, distances_P: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = (table.to(key_PHK.dtype)[distances_P] for table in (self.keys, self.values))
        return key_PHK + keys, value_PHK + values


class TokenDistances(Distances):
    """Attention by distances between tokens; sentences before the own one are a memory (Transformer-XL, §3.2–3.3).

    The score of query i and key j is (q_i·k_j + (q_i + b)·(R ρ(i − j))) / √K, where ρ(t) are K sinusoids, R is a matrix
    and b a vector of each head. (The other vector of Transformer-XL's score is the bias of the query projection.) Keys
    and values of earlier sentences come from states that no gradient goes through.

    Since sin(i − j) and cos(i − j) are sums of products of sines and cosines of i and of j, the second term is a scalar
    product, too: queries, keys and values are 2 K wide here, and any kernel computes them.
    """

    def __init__(self, heads: int, head_width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.empty(heads, head_width, head_width))
        self.bias = nn.Parameter(torch.zeros(heads, head_width))
        for head in self.matrix.data:
            nn.init.xavier_uniform_(head)

    @override
    def inputs(
        self, part: HeadProjections, query_ND: Tensor, memory_MD: Tensor | None, grouping: AnyGrouping
    ) -> AttentionInputs:
        """The second version of each key and value is the one that later sentences see."""
        # Cross-attention has no order of words between query and key.
        assert memory_MD is None, "of self-attention only"
        query, key, value = part.project(query_ND, None)
        positions_N = kernel_inputs_of(grouping, query).positions_N
        assert positions_N is not None, "the pattern says them"
        query, near, value = self.extend(query, key, value, positions_N)
        # As in Transformer-XL, the states of earlier sentences are constants; the projections still get gradients.
        far_key, far_value = part.project_memory(query_ND.detach())
        far = torch.cat((far_key, near[..., far_key.shape[-1] :]), dim=-1)
        # Kernels divide by the root of twice the width.
        query = query * math.sqrt(2)
        return query, torch.cat((near, far), -1), torch.cat((value, _widen(far_value)), -1), self._choose

    @staticmethod
    def _choose(key_PHE: Tensor, value_PHE: Tensor, distances_P: Tensor) -> tuple[Tensor, Tensor]:
        is_far = (distances_P > 0)[:, None, None]
        (near_key, far_key), (near_value, far_value) = (rows.chunk(2, -1) for rows in (key_PHE, value_PHE))
        return torch.where(is_far, far_key, near_key), torch.where(is_far, far_value, near_value)

    def extend(
        self, query_NHK: Tensor, key_NHK: Tensor, value_NHK: Tensor, positions_N: Tensor, *, scale: float = 1.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of twice the width, in self-attention.

        Queries come multiplied by `scale`. Positions are those in the instance; one entry may stand for all tokens.
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
        return query, torch.cat((key_NHK, waves.to(key_NHK.dtype)), -1), _widen(value_NHK)

    @override
    def extend_step(self, projected_N3HK: Tensor, position: Tensor) -> Tensor:
        query_NHK, key_NHK, value_NHK = projected_N3HK.unbind(1)
        # Decoding scales queries when it projects them, so the bias must be scaled before it is added.
        scale = key_NHK.shape[-1] ** -0.5
        return torch.stack(self.extend(query_NHK, key_NHK, value_NHK, position, scale=scale), dim=1)

    @override
    def cache_width(self, head_width: int) -> int:
        return 2 * head_width

    @override
    def finish(self, output_NHE: Tensor) -> Tensor:
        # The second half of the values was padding with zeros.
        return output_NHE[..., : self.bias.shape[1]]


def _widen(value_NHK: Tensor) -> Tensor:
    """Values of twice the width: zeros follow."""
    return nn.functional.pad(value_NHK, (0, value_NHK.shape[-1]))


DISTANCES: dict[str, Callable[[int, int], Distances]] = {
    # The own sentence, and any other (Flat-Transformer).
    "segments": partial(SentenceDistances, 2),
    # Up to `MAX_SENTENCES` either way, the same vectors for all heads (Hybrid Context).
    "distances": lambda heads, head_width: SentenceDistances(2 * MAX_SENTENCES + 1, 1, head_width),
    "memory": TokenDistances,
}
"""Pattern → constructor of its distances, whose arguments are the numbers of heads and of values per head."""
