"""Attention by blocks of queries, compared with the formula."""

import numpy as np
import pytest
import torch
from core_fixtures import assert_close
from plain_attention import dense_attention

from docmt.models.attention import kernels
from docmt.models.attention.kernels import PaddedIndexes, padded_attention
from docmt.models.attention.patterns import Grouping

LENGTHS = {"full": ([9, 9], [9, 9]), "ragged": ([9, 5, 7], [9, 5, 7]), "window": ([4, 5, 1], [4, 9, 10])}


def attend_padded(query, key, value, grouping):
    return padded_attention(query, key, value, PaddedIndexes.of(grouping))


def attend(attention, grouping, *, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    n, m = grouping.n_queries, int(grouping.key_rows.max()) + 1
    inputs = [torch.randn(size, 2, 8).to(dtype).requires_grad_() for size in (n, m, m)]
    output = attention(*inputs, grouping)
    weight = torch.randn(output.shape)
    return output, *torch.autograd.grad((output.float() * weight).sum(), inputs)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("max_weights", [0, 2**25])
@pytest.mark.parametrize("size", [1, 2, 4, 64])
def test_blocks_equal_the_dense_formula(lengths, is_causal, max_weights, size, monkeypatch):
    for name, value in (("BLOCK_QUERIES", size), ("WIDE_BLOCK_QUERIES", size), ("MAX_KEPT_WEIGHTS", max_weights)):
        monkeypatch.setattr(kernels, name, value)
    monkeypatch.setattr(kernels, "_pays_in_blocks", lambda *_: True)
    queries, keys = (np.array(n) for n in LENGTHS[lengths])
    starts = np.cumsum(queries) - keys if lengths == "window" else np.cumsum(keys) - keys
    grouping = Grouping.of_ranges(queries, starts, keys, is_causal=is_causal)
    for result, expected in zip(attend(attend_padded, grouping), attend(dense_attention, grouping), strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_long_groups_equal_the_dense_formula(is_causal, dtype):
    lengths = np.array([700, 1, 610])
    grouping = Grouping.of_ranges(lengths, np.cumsum(lengths) - lengths, lengths, is_causal=is_causal)
    results, expected = attend(attend_padded, grouping, dtype=dtype), attend(dense_attention, grouping)
    for a, b in zip(results, expected, strict=True):
        assert_close(a.float(), b, 1e-5 if dtype == torch.float32 else 3e-2)
