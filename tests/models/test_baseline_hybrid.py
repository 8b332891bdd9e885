"""Hybrid Context: sentence distances, and the gate and memory of the decoder, compared with plain equations."""

from functools import partial

import numpy as np
import pytest
import torch
from core_fixtures import assert_close, decoder_states, make_batch, make_model, random_documents, random_sentence
from plain_attention import (
    UGLY,
    assert_equal_with_gradients,
    attend_plainly,
    groupings_of,
    layout_of,
    places,
    projected,
    random_inputs,
    randomize,
    root,
)

from docmt.models.attention.multi_head import build_attention
from docmt.models.layers import EncoderLayer, GatedEncoderLayer
from docmt.models.systems.transformer import sinusoids

WIDTH, HEADS = 8, 2
K = WIDTH // HEADS


def literal_distances(attention, hidden, tokens):
    """k_j + r_δ and v_j + r_δ, where δ = sentence(i) − sentence(j), between −20 and 20."""
    q, k, v = (projected(attention, hidden, n) for n in range(3))
    keys, values = attention.distances.keys[:, 0], attention.distances.values[:, 0]

    def sees(i, _):
        return [j for j, key in enumerate(tokens) if key[0] == tokens[i][0]]

    def row(i, j):
        return max(-20, min(20, tokens[i][1] - tokens[j][1])) + 20

    def score(i, j, h):
        return q[i, h] @ (k[j, h] + keys[row(i, j)]) / root(K)

    heads = attend_plainly(len(tokens), HEADS, sees, score, lambda i, j, h: v[j, h] + values[row(i, j)])
    return heads @ attention.out.weight.T + attention.out.bias


def literal_memory(attention, hidden, tokens):
    """Transformer-XL: keys and values of the previous sentence come from states without gradient."""
    q = projected(attention, hidden, 0)
    near, far = ([projected(attention, rows, n) for n in (1, 2)] for rows in (hidden, hidden.detach()))
    matrix, bias = attention.distances.matrix, attention.distances.bias

    def sees(i, _):
        return [j for j in range(i + 1) if tokens[j][0] == tokens[i][0] and tokens[i][1] - tokens[j][1] <= 1]

    def source(i, j):
        return near if tokens[i][1] == tokens[j][1] else far

    def wave(distance):
        return sinusoids(distance + 1, K)[distance]

    def score(i, j, h):
        content = q[i, h] @ source(i, j)[0][j, h]
        return (content + (q[i, h] + bias[h]) @ (matrix[h] @ wave(tokens[i][2] - tokens[j][2]))) / root(K)

    heads = attend_plainly(len(tokens), HEADS, sees, score, lambda i, j, h: source(i, j)[1][j, h])
    return heads @ attention.out.weight.T + attention.out.bias


PLAIN = {"distances": ("encoder", "src", literal_distances), "memory": ("decoder", "tgt", literal_memory)}


@pytest.mark.parametrize("pattern", PLAIN)
@pytest.mark.parametrize("name", UGLY)
def test_attentions_equal_their_equations(pattern, name):
    slot, side, literal = PLAIN[pattern]
    attention = randomize(build_attention(WIDTH, HEADS, pattern))
    layout = layout_of(UGLY[name], make_model("hybrid_context").settings)
    hidden, _ = random_inputs(layout, slot, WIDTH)
    output = attention(hidden, None, groupings_of(layout, slot))
    expected = literal(attention, hidden, places(layout, side))
    assert_equal_with_gradients(output, expected, [hidden, *attention.parameters()])


def test_top_layer_is_whole_with_a_gate():
    model = make_model("hybrid_context")
    lower, upper = model.encoder
    assert type(lower) is EncoderLayer
    assert isinstance(upper, GatedEncoderLayer)
    batch = make_batch(model.settings, random_documents((1, 4, 23)))
    groupings = partial(model.place(batch.layout).grouping, "encoder")
    local = lower(model._embed(batch.src_tokens_S, model.place(batch.layout), "src"), groupings)
    attended = local + upper.self_attention(upper.self_sublayer.norm(local), None, groupings)
    wide = attended + upper.feed_forward(upper.feed_forward_sublayer.norm(attended))
    gate = torch.sigmoid(torch.cat((local, wide), 1) @ upper.gate.weight.T + upper.gate.bias)
    expected = model.encoder_norm(gate * local + (1 - gate) * wide)
    assert_close(model.encode(batch.src_tokens_S, model.place(batch.layout)), expected)


def test_words_know_their_sentence_up_to_twenty():
    model = make_model("hybrid_context")
    sentence = np.array([1, 7, 2])
    batch = make_batch(model.settings, [([sentence] * 23, [sentence] * 23), ([sentence], [sentence])])
    embedded = model._embed(batch.src_tokens_S, model.place(batch.layout), "src").unflatten(0, (24, 3))
    vectors = model.src_inputs.sentences.weight
    plain = embedded[0] - vectors[0]
    for number in range(23):
        assert_close(embedded[number], plain + vectors[min(number, 19)])
    assert_close(embedded[23], embedded[0])
    # The target has none.
    targets = model._embed(batch.tgt_inputs_N, model.place(batch.layout), "tgt").unflatten(0, (24, 2))
    assert torch.equal(targets[0], targets[5])


def test_the_target_before_matters_but_gets_no_gradient():
    """Both decoder layers extend the reach by one sentence."""
    model = make_model("hybrid_context")
    generator = np.random.default_rng(3)
    src, tgt = ([random_sentence(generator, 3) for _ in range(5)] for _ in range(2))
    other = [sentence.copy() for sentence in tgt]
    other[1][1] = other[1][1] + 1 if other[1][1] < 20 else 10
    batches = [make_batch(model.settings, [(src, target)]) for target in (tgt, other)]
    states = [decoder_states(model, batch).unflatten(0, (5, 4)) for batch in batches]
    differs = (states[0] != states[1]).flatten(1).any(1)
    assert differs.tolist() == [False, True, True, True, False]
