"""Ragged attention, compared with the dense formula for outputs and gradients."""

import doctest
import inspect
import math

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, model_settings
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_attention import (
    assert_equal_with_gradients,
    dense_attention,
    groupings_of,
    layout_of,
    random_inputs,
    randomize,
)
from plain_layers import join, read
from torch import Tensor

from docmt.models.attention import patterns, varlen
from docmt.models.attention.kernels import (
    PaddedIndexes,
    attention_entropy,
    padded_attention,
    ragged_attention,
)
from docmt.models.attention.multi_head import MultiHeadAttention, build_attention
from docmt.models.attention.patterns import Grouping
from docmt.models.attention.varlen import SWITCH, VarlenIndexes, find_flash
from docmt.models.buffers import map_leaves

HEADS, HEAD_WIDTH = 2, 4
SLOTS = [(slot, pattern) for slot in ("encoder", "decoder", "cross") for pattern in ("group", "window", "global")]

LENGTHS = st.integers(1, 12) | st.just(1) | st.integers(30, 60)
INSTANCES = st.lists(st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=6), min_size=1, max_size=4)


def make_layout(instances, window=2):
    return layout_of(instances, model_settings(window_sentences=window))


def rows(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, HEADS, HEAD_WIDTH, generator=generator).requires_grad_()


def make_inputs(layout, slot):
    n = int((layout.src_lengths_G if slot == "encoder" else layout.tgt_lengths_G).sum())
    m = int((layout.tgt_lengths_G if slot == "decoder" else layout.src_lengths_G).sum())
    return rows(n, 1), rows(m, 2), rows(m, 3)


def literal_mask(layout, slot, pattern):
    """Eq. 7 with tags. The tags of a window are a range. True where a query attends to a key."""
    src_tags = np.repeat(np.arange(len(layout.src_lengths_G)), layout.src_lengths_G)
    tgt_tags = np.repeat(np.arange(len(layout.tgt_lengths_G)), layout.tgt_lengths_G)
    query_tags = src_tags if slot == "encoder" else tgt_tags
    key_tags = tgt_tags if slot == "decoder" else src_tags
    instance_of = np.repeat(np.arange(len(layout.sentences_B)), layout.sentences_B)
    distance = query_tags[:, None] - key_tags[None]
    same_instance = instance_of[query_tags][:, None] == instance_of[key_tags][None]
    visible = {
        "group": distance == 0,
        "window": (distance >= 0) & (distance <= layout.settings.window_sentences) & same_instance,
        "global": same_instance,
    }[pattern]
    if slot == "decoder":
        visible = visible & np.tri(len(query_tags), dtype=bool)
    return torch.from_numpy(visible)


def literal_attention(query_NHK, key_MHK, value_MHK, layout, slot, pattern):
    """Eq. 6 in the paper: softmax(QKᵀ/√d + M)V, where M is 0 or γ = −1e8."""
    mask = torch.where(literal_mask(layout, slot, pattern), 0.0, -1e8)
    outputs = []
    for head in range(query_NHK.shape[1]):
        scores = query_NHK[:, head] @ key_MHK[:, head].T / math.sqrt(query_NHK.shape[2])
        outputs.append((scores + mask).softmax(-1) @ value_MHK[:, head])
    return torch.stack(outputs, 1)


@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
@settings(max_examples=25, deadline=None)
@given(instances=INSTANCES, window=st.integers(0, 3))
def test_padded_batches_equal_the_literal_formula(slot, pattern, instances, window):
    layout = make_layout(instances, window)
    inputs = make_inputs(layout, slot)
    grouping = layout.grouping(slot, pattern)
    literal = literal_attention(*inputs, layout, slot, pattern)
    assert_equal_with_gradients(padded_attention(*inputs, PaddedIndexes.of(grouping)), literal, inputs)
    assert_close(dense_attention(*inputs, grouping), literal)


UGLY = {
    "one token": [[(1, 1)]],
    "one sentence": [[(9, 7)]],
    "only one-token sentences": [[(1, 1)] * 5, [(1, 1)]],
    "no padding at all": [[(4, 4)] * 3],
    "very long among short": [[(1, 1), (300, 280), (2, 3)], [(1, 2)]],
    "many groups, several batches": [[(length, 80 - length) for length in range(1, 80, 3)]],
    "source and target far apart": [[(1, 40), (40, 1)], [(50, 1)]],
}


@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
@pytest.mark.parametrize("name", UGLY)
def test_padded_batches_equal_the_formula(slot, pattern, name):
    layout = make_layout(UGLY[name])
    inputs = make_inputs(layout, slot)
    literal = literal_attention(*inputs, layout, slot, pattern)
    assert_equal_with_gradients(
        ragged_attention(*inputs, PaddedIndexes.of(layout.grouping(slot, pattern))), literal, inputs
    )


GROUPS = st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 14), min_size=1, max_size=9)), min_size=1)


@settings(max_examples=60, deadline=None)
@given(GROUPS.filter(lambda groups: any(n for n, _ in groups)), st.booleans())
def test_any_list_of_keys_equals_the_dense_mask(groups, is_causal):
    """Keys in any order, for several groups or none, and groups without queries."""
    groups = [(min(n, len(set(keys))) if is_causal else n, sorted(set(keys))) for n, keys in groups]
    grouping = Grouping(
        np.array([n for n, _ in groups]),
        np.array([len(keys) for _, keys in groups]),
        np.concatenate([keys for _, keys in groups]),
        is_causal,
    )
    inputs = rows(grouping.n_queries, 1), rows(15, 2), rows(15, 3)
    assert_equal_with_gradients(
        padded_attention(*inputs, PaddedIndexes.of(grouping)), dense_attention(*inputs, grouping), inputs
    )


@pytest.mark.parametrize("slot", ["encoder", "decoder", "cross"])
def test_combined_attention_is_equation_10(slot):
    attention = randomize(build_attention(8, HEADS, "combined"))
    layout = make_layout([[(3, 4), (1, 1), (6, 2)], [(2, 5)]])
    query, memory = random_inputs(layout, slot, 8)
    group, wide = (
        read(part, query, query if memory is None else memory, literal_mask(layout, slot, pattern))
        for part, pattern in ((attention.group, "group"), (attention.global_, "global"))
    )
    output = attention(query, memory, groupings_of(layout, slot))
    assert_equal_with_gradients(output, join(attention.gate, group, wide), list(attention.parameters()))


@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
def test_bfloat16_is_finite_and_close(slot, pattern):
    layout = make_layout([*UGLY["many groups, several batches"], *UGLY["one token"], [(700, 650), (1, 1)]])
    inputs = [tensor.detach() for tensor in make_inputs(layout, slot)]
    halves = [tensor.bfloat16().requires_grad_() for tensor in inputs]
    indexes = PaddedIndexes.of(layout.grouping(slot, pattern))
    output = ragged_attention(*halves, indexes)
    output.float().square().sum().backward()
    assert output.dtype == torch.bfloat16
    assert all(tensor.grad.isfinite().all() for tensor in halves)
    torch.testing.assert_close(output.float(), ragged_attention(*inputs, indexes), atol=0.1, rtol=0)


def test_huge_scores_stay_finite():
    layout = make_layout([[(5, 5), (1, 1)]])
    inputs = [tensor.detach() * 1e4 for tensor in make_inputs(layout, "decoder")]
    for pattern in ("group", "global"):
        assert ragged_attention(*inputs, PaddedIndexes.of(layout.grouping("decoder", pattern))).isfinite().all()


# Entropy


@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
def test_entropy_averages_over_heads(slot, pattern):
    layout = make_layout([[(3, 4), (1, 1), (6, 2)], [(2, 5)]])
    query, key, _ = make_inputs(layout, slot)
    grouping = layout.grouping(slot, pattern)
    mask = torch.from_numpy(grouping.dense_mask(len(key)))
    scores = torch.einsum("nhk,mhk->hnm", query, key) / math.sqrt(HEAD_WIDTH)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).mean(0)
    expected = -(weights * weights.clamp_min(1e-30).log2()).sum(-1)
    entropy = attention_entropy(query, key, PaddedIndexes.of(grouping))
    torch.testing.assert_close(entropy, expected.detach(), atol=1e-5, rtol=1e-5)


# Variable-length flash attention


def test_torch_offers_what_the_varlen_path_calls():
    varlen_attn = find_flash()
    if varlen_attn is None:
        pytest.skip("this torch has no variable-length attention")
    parameters = inspect.signature(varlen_attn).parameters
    assert list(parameters)[:7] == ["query", "key", "value", "cu_seq_q", "cu_seq_k", "max_q", "max_k"]
    assert "window_size" in parameters


def on_gpu(grouping):
    return map_leaves(VarlenIndexes.of(grouping), Tensor.cuda)


@pytest.mark.gpu
@pytest.mark.parametrize("switch", ["", "flash"])
@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
def test_gpu_varlen_path_equals_the_formula(slot, pattern, switch, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    monkeypatch.setenv(SWITCH, switch)
    instances = [[(3, 4), (1, 1), (60, 20), (2, 2)], [(200, 150)]]
    layout = make_layout(instances)
    grouping = layout.grouping(slot, pattern)
    n = grouping.n_queries
    m = int((layout.tgt_lengths_G if slot == "decoder" else layout.src_lengths_G).sum())
    inputs = [torch.randn(size, 4, 32, device="cuda", dtype=torch.bfloat16) for size in (n, m, m)]
    inputs = [tensor.requires_grad_() for tensor in inputs]
    floats = [tensor.detach().float().requires_grad_() for tensor in inputs]
    indexes = on_gpu(grouping)
    output, expected = ragged_attention(*inputs, indexes), dense_attention(*floats, grouping)
    torch.testing.assert_close(output.float(), expected, atol=2e-2, rtol=2e-2)
    output.float().square().sum().backward()
    expected.square().sum().backward()
    for half, single in zip(inputs, floats, strict=True):
        torch.testing.assert_close(half.grad.float(), single.grad, atol=5e-2, rtol=5e-2)


@pytest.mark.gpu
def test_unseen_keys_have_no_gradient():
    """Their rows come after all groups. Flash attention would not initialize their gradients."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    grouping = Grouping.of_ranges(np.array([2, 3]), np.array([0, 4]), np.array([4, 2]))
    inputs = [torch.randn(n, 4, 32, device="cuda", dtype=torch.bfloat16, requires_grad=True) for n in (5, 9, 9)]
    ragged_attention(*inputs, on_gpu(grouping)).float().square().sum().backward()
    for rows in inputs[1:]:
        assert rows.grad[:6].any()
        assert not rows.grad[6:].any()


def test_initial_weights_follow_the_paper_code():
    torch.manual_seed(0)
    attention = MultiHeadAttention(64, 4, "group")
    bound = 2**-0.5 * math.sqrt(6 / 128)  # Xavier with gain 1/√2, for each of the three maps
    for part in attention.in_weight.split(64):
        assert 0.95 * bound < part.abs().max() <= bound
    assert not attention.in_bias.any()
    assert not attention.out.bias.any()


def test_example_in_patterns_is_right():
    failed, tried = doctest.testmod(patterns)
    assert (failed, tried > 3) == (0, True)


@pytest.mark.parametrize(("slot", "pattern"), SLOTS)
def test_varlen_path_hands_over_the_right_ranges(monkeypatch, slot, pattern):
    """A loop replaces the operator. It is causal at the end of groups."""

    def loop(parts, query_offsets, key_offsets, max_q, max_k, is_causal):
        query, key, value = varlen.unpack(parts)
        assert query_offsets.dtype == key_offsets.dtype == torch.int32
        assert query.is_contiguous()
        assert key.is_contiguous()
        assert value.is_contiguous()
        spans = [list(zip(o[:-1].tolist(), o[1:].tolist(), strict=True)) for o in (query_offsets, key_offsets)]
        assert (max_q, max_k) == tuple(max(b - a for a, b in span) for span in spans)
        outputs = []
        for (a, b), (c, d) in zip(*spans, strict=True):
            scores = torch.einsum("nhk,mhk->hnm", query[a:b], key[c:d]) / math.sqrt(query.shape[2])
            if is_causal:
                hidden = ~torch.ones(b - a, d - c, dtype=torch.bool).tril(d - c - (b - a))
                scores = scores.masked_fill(hidden, -torch.inf)
            outputs.append(torch.einsum("hnm,mhk->nhk", scores.softmax(-1), value[c:d]))
        return torch.cat(outputs), None

    monkeypatch.setattr(varlen, "_attend", loop)
    layout = make_layout([[(3, 4), (1, 1), (6, 2), (2, 2)], [(2, 5)]])
    inputs = make_inputs(layout, slot)
    output = ragged_attention(*inputs, VarlenIndexes.of(layout.grouping(slot, pattern)))
    assert_equal_with_gradients(output, literal_attention(*inputs, layout, slot, pattern), inputs)
