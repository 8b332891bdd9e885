"""Flat-Transformer: a window that marks the current sentence, compared with its equations token by token."""

import numpy as np
import pytest
import torch
from core_fixtures import decoder_states, make_batch, make_model, random_documents
from plain_attention import (
    UGLY,
    assert_equal_with_gradients,
    attend_plainly,
    groupings_of,
    influence,
    layout_of,
    places,
    projected,
    random_inputs,
    randomize,
    root,
    sees_back,
)

from docmt.models.attention.multi_head import build_attention
from docmt.training.entropy import EntropyMeter

WIDTH, HEADS = 8, 2


def literal(attention, hidden, tokens, window):
    """Keys and values get different vectors in the current sentence and in other sentences."""
    q, k, v = (projected(attention, hidden, n) for n in range(3))
    keys, values = attention.distances.keys, attention.distances.values

    def sees(i, _):
        return [j for j, key in enumerate(tokens) if key[0] == tokens[i][0] and 0 <= tokens[i][1] - key[1] <= window]

    def segment(i, j):
        return int(tokens[i][1] != tokens[j][1])

    def score(i, j, h):
        return q[i, h] @ (k[j, h] + keys[segment(i, j), h]) / root(WIDTH // HEADS)

    heads = attend_plainly(len(tokens), HEADS, sees, score, lambda i, j, h: v[j, h] + values[segment(i, j), h])
    return heads @ attention.out.weight.T + attention.out.bias


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("name", UGLY)
def test_segments_are_added_to_keys_and_values(name, window):
    attention = randomize(build_attention(WIDTH, HEADS, "segments"))
    settings = make_model("flat_transformer", window_sentences=window).settings
    layout = layout_of(UGLY[name], settings)
    hidden, _ = random_inputs(layout, "encoder", WIDTH)
    output = attention(hidden, None, groupings_of(layout, "encoder"))
    expected = literal(attention, hidden, places(layout, "src"), window)
    assert_equal_with_gradients(output, expected, [hidden, *attention.parameters()])


def test_layers_reach_one_window_back():
    """Four layers: three with a window of one sentence, then one for the current sentence."""
    model = make_model("flat_transformer", encoder_layers=4)
    documents = random_documents((7,), seed=2)
    batch = make_batch(model.settings, documents)
    leaf = model._embed(batch.src_tokens_S, model.place(batch.layout), "src").detach().requires_grad_()
    model._embed = lambda *_, **__: leaf
    tags = np.array([sentence for _, sentence, _ in places(batch.layout, "src")])
    states = model.encode(batch.src_tokens_S, model.place(batch.layout))
    assert np.array_equal(influence(states, leaf, tags, tags), sees_back(7, 3))


def test_segments_count_in_entropies():
    """A vector that is similar to all queries attracts all attention to the current sentence, with one token."""
    model = make_model("flat_transformer")
    attention = model.encoder[0].self_attention
    with torch.no_grad():
        attention.in_weight[: attention.out.in_features] = 0
        attention.in_bias[: attention.out.in_features] = 1
        attention.distances.keys[0], attention.distances.keys[1] = 100, -100
    empty = np.array([1])
    batch = make_batch(model.settings, [([empty] * 4, [np.array([1, 2])] * 4)])
    with EntropyMeter(model) as meter, torch.no_grad():
        decoder_states(model, batch)
    assert meter.entropies()["entropy_encoder_segments"] == pytest.approx(0, abs=1e-6)
