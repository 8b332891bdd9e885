"""Attention token by token as in equations, attention group by group, and random layouts."""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from core_fixtures import assert_close, decoder_states
from torch import Tensor

from docmt.models.attention import varlen
from docmt.models.attention.kernels import PaddedIndexes
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import Groupings, MultiHeadAttention
from docmt.models.attention.patterns import SIDES, Grouping, Slot
from docmt.models.batch import Batch
from docmt.models.settings import ModelSettings
from docmt.models.systems.transformer import Transformer

UGLY = {
    "one token": [[(1, 1)]],
    "one sentence": [[(9, 7)]],
    "empty sentences": [[(2, 1)] * 4, [(2, 1), (5, 3), (2, 1)], [(2, 1)]],
    "several documents": [[(3, 4), (1, 1), (6, 2)], [(2, 5), (7, 1)], [(4, 4)]],
    "more than 20 sentences": [[(2, 1), (3, 2)] * 12, [(1, 2)]],
}
"""Documents, as lists of (source, target) lengths with marks."""


def layout_of(documents: Sequence[Sequence[tuple[int, int]]], settings: ModelSettings) -> AttentionLayout:
    pairs = [pair for document in documents for pair in document]
    src, tgt = (np.array(side) for side in zip(*pairs, strict=True))
    return AttentionLayout(src, tgt, np.array([len(document) for document in documents]), settings=settings)


def groupings_of(layout: AttentionLayout, slot: Slot) -> Groupings:
    """Groupings for one attention on a CPU, whatever patterns the layout's model has."""
    return lambda pattern: PaddedIndexes.of(layout.grouping(slot, pattern))


def dense_attention(query_NHK: Tensor, key_MHK: Tensor, value_MHK: Tensor, grouping: Grouping) -> Tensor:
    """Attention as in the papers: softmax(QKᵀ/√K + M)V with a dense mask (G-Transformer, Eq. 6–7)."""
    mask_NM = torch.from_numpy(grouping.dense_mask(len(key_MHK))).to(query_NHK.device)
    scores_HNM = torch.einsum("nhk,mhk->hnm", query_NHK, key_MHK) / math.sqrt(query_NHK.shape[-1])
    weights_HNM = scores_HNM.masked_fill(~mask_NM, -torch.inf).softmax(-1)
    return torch.einsum("hnm,mhk->nhk", weights_HNM, value_MHK)


def places(layout: AttentionLayout, side: str) -> list[tuple[int, int, int]]:
    """Instance, sentence in the batch, and position in the instance for all tokens of a side."""
    tokens = []
    lengths = layout.src_lengths_G if side == "src" else layout.tgt_lengths_G
    sentence = 0
    for instance, count in enumerate(layout.sentences_B):
        position = 0
        for _ in range(count):
            for _ in range(lengths[sentence]):
                tokens.append((instance, sentence, position))
                position += 1
            sentence += 1
    return tokens


def random_inputs(layout: AttentionLayout, slot: Slot, width: int, *, seed: int = 1) -> tuple[Tensor, Tensor | None]:
    """Queries, and the source for cross-attention."""
    generator = torch.Generator().manual_seed(seed)
    n, m = (len(places(layout, side)) for side in SIDES[slot])
    query = torch.randn(n, width, generator=generator).requires_grad_()
    return query, torch.randn(m, width, generator=generator).requires_grad_() if slot == "cross" else None


def randomize(module: torch.nn.Module, *, seed: int = 5) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4, generator=generator)
    return module


def projected(part: MultiHeadAttention, rows: Tensor, which: int) -> Tensor:
    """Queries (0), keys (1) or values (2), [rows, heads, head width]."""
    weight, bias = part.in_weight.chunk(3)[which], part.in_bias.chunk(3)[which]
    return (rows @ weight.T + bias).unflatten(1, (part.heads, -1))


def attend_plainly(
    n_queries: int, n_heads: int, sees: Callable[[int, int], list[int]], score: Callable, value: Callable
) -> Tensor:
    """[queries, heads × width]: query i of head h attends to keys j, with a score and a value for (i, j, h)."""
    rows = []
    for i in range(n_queries):
        heads = []
        for h in range(n_heads):
            keys = sees(i, h)
            weights = torch.stack([score(i, j, h) for j in keys]).softmax(0)
            heads.append(sum(weight * value(i, j, h) for weight, j in zip(weights, keys, strict=True)))
        rows.append(torch.cat(heads))
    return torch.stack(rows)


def assert_equal_with_gradients(result: Tensor, expected: Tensor, inputs: Sequence[Tensor]) -> None:
    assert_close(result, expected)
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(4))
    gradients = [
        torch.autograd.grad((output * direction).sum(), inputs, allow_unused=True) for output in (result, expected)
    ]
    for gradient, wanted in zip(*gradients, strict=True):
        if wanted is None:  # no key that this tells apart is there
            assert gradient is None or not gradient.any()
        else:
            assert_close(gradient, wanted)


def influence(
    outputs_ND: Tensor, inputs_MD: Tensor, output_tags: np.ndarray | None = None, input_tags: np.ndarray | None = None
) -> np.ndarray:
    """Bool [outputs, inputs], true for dependence. Rows with the same tag, for example of a sentence, count as one."""
    pairs = (outputs_ND, output_tags), (inputs_MD, input_tags)
    tags = [np.arange(len(rows)) if row_tags is None else row_tags for rows, row_tags in pairs]
    seen = np.zeros([part.max() + 1 for part in tags], dtype=bool)
    weighted_ND = outputs_ND * torch.randn(outputs_ND.shape, generator=torch.Generator().manual_seed(1))
    for tag in range(len(seen)):
        output = weighted_ND[torch.from_numpy(tags[0] == tag)].sum()
        (gradient,) = torch.autograd.grad(output, inputs_MD, retain_graph=True)
        np.logical_or.at(seen[tag], tags[1], gradient.any(1).numpy())
    return seen


def sees_back(n_sentences: int, n_back: int) -> np.ndarray:
    """Bool window mask. A sentence attends to itself and the previous `n_back` sentences."""
    return np.tri(n_sentences, dtype=bool) & ~np.tri(n_sentences, k=-n_back - 1, dtype=bool)


def states_from_leaves(model: Transformer, batch: Batch) -> tuple[Tensor, list[Tensor]]:
    """Decoder states of a batch, and their inputs: the embedded source and target."""
    leaves, embed = [], model._embed

    def embed_as_leaf(*arguments: Any, **options: Any) -> Tensor:
        leaves.append(embed(*arguments, **options).detach().requires_grad_())
        return leaves[-1]

    with mock.patch.object(model, "_embed", embed_as_leaf):
        return decoder_states(model, batch), leaves


def root(width: int) -> float:
    return math.sqrt(width)


def group_weights(
    query: Tensor, key: Tensor, offsets: Sequence[Tensor], is_causal: bool
) -> Iterator[tuple[slice, slice, Tensor, Tensor]]:
    """Queries, keys, weights [heads, queries, keys] and log-sums of scores for all groups."""
    for (a, b), (c, d) in zip(*(pairwise(part.tolist()) for part in offsets), strict=True):
        scores = torch.einsum("nhk,mhk->hnm", query[a:b].float(), key[c:d].float()) / root(query.shape[2])
        if is_causal:
            scores = scores.masked_fill(~torch.ones(b - a, d - c).bool().tril(d - c - b + a), -torch.inf)
        yield slice(a, b), slice(c, d), scores.softmax(-1), scores.logsumexp(-1)


class PlainKernels:
    """Variable-length attention with the functions of docmt.models.attention.short_groups, on CPUs."""

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def forward(query: Tensor, key: Tensor, value: Tensor, offsets: Any, is_causal: bool) -> tuple[Tensor, Tensor]:
        output, sums = query.new_empty(query.shape), torch.empty(query.shape[1], len(query))
        for queries, keys, weights, log_sums in group_weights(query, key, offsets, is_causal):
            output[queries] = torch.einsum("hnm,mhk->nhk", weights, value[keys].float()).to(query.dtype)
            sums[:, queries] = log_sums
        return output, sums

    @staticmethod
    @torch.autocast("cpu", enabled=False)
    def backward(
        gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, results: Any, offsets: Any, is_causal: bool,
        gradients: Sequence[Tensor],
    ) -> None:  # fmt: skip
        assert results[0].shape == gradient.shape == query.shape
        for rows in gradients:
            rows.zero_()
        for queries, keys, weights, _ in group_weights(query, key, offsets, is_causal):
            grad = gradient[queries].float()
            scores = torch.einsum("nhk,mhk->hnm", grad, value[keys].float())
            scores = weights * (scores - (weights * scores).sum(-1, keepdim=True)) / root(query.shape[2])
            gradients[0][queries] = torch.einsum("hnm,mhk->nhk", scores, key[keys].float()).to(query.dtype)
            gradients[1][keys] = torch.einsum("hnm,nhk->mhk", scores, query[queries].float()).to(query.dtype)
            gradients[2][keys] = torch.einsum("hnm,nhk->mhk", weights, grad).to(query.dtype)


def take_plain_kernels(monkeypatch: Any, taken: list[str]) -> None:
    """Run docmt's operator for variable-length attention on this machine. `taken` gets the names of the kernels."""

    def noting(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: (taken.append(name), kernel(*arguments))[1]

    def flash(*arguments: Any) -> tuple[Tensor, Tensor]:
        *inputs, query_offsets, key_offsets, _, _, is_causal = arguments
        return PlainKernels.forward(*inputs, (query_offsets, key_offsets), is_causal)

    def flash_backward(*arguments: Any) -> tuple[Tensor, ...]:
        *inputs, output, sums, query_offsets, key_offsets, _, _, is_causal = arguments
        gradients = [torch.empty_like(rows) for rows in inputs[1:]]
        PlainKernels.backward(*inputs, (output, sums), (query_offsets, key_offsets), is_causal, gradients)
        return tuple(gradients)

    kernels = SimpleNamespace(
        forward=noting("short", PlainKernels.forward), backward=noting("short backward", PlainKernels.backward)
    )
    monkeypatch.setattr(varlen, "short_groups", lambda: kernels)
    monkeypatch.setattr(varlen, "tried_short_groups", functools.cache(varlen.tried_short_groups.__wrapped__))
    monkeypatch.setattr(varlen, "_flash_forward", noting("flash", flash))
    monkeypatch.setattr(varlen, "_flash_backward", noting("flash backward", flash_backward))
