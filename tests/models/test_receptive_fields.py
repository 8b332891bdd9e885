"""Influence of tokens, measured by gradients: sentences are isolated, and ablations behave as in the papers."""

from functools import partial

import numpy as np
import pytest
import torch
from core_fixtures import decoder_states, make_batch, make_model, random_sentence
from plain_attention import influence, sees_back, states_from_leaves

N = 5
"""Number of sentences in the test document."""
GENERATOR = np.random.default_rng(3)
LENGTHS = ((3, 1, 0, 4, 2), (2, 0, 3, 1, 4))
DOCUMENT = tuple([random_sentence(GENERATOR, length) for length in lengths] for lengths in LENGTHS)

OWN = np.eye(N, dtype=bool)
ALL = np.ones((N, N), dtype=bool)
PAST = np.tri(N, dtype=bool)


def tags(lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


def sides(model):
    """Sentence numbers of source tokens and decoder inputs."""
    src = tags([len(sentence) for sentence in DOCUMENT[0]])
    drop = 0 if model.settings.target_stream == "free" else 1
    return src, tags([len(sentence) - drop for sentence in DOCUMENT[1]])


def model_influence(model):
    """Influence of source and target sentences on the decoder states of target sentences."""
    states, leaves = states_from_leaves(model, make_batch(model.settings, [DOCUMENT]))
    return [influence(states, leaf, sides(model)[1], tags) for leaf, tags in zip(leaves, sides(model), strict=True)]


WHOLE = {
    # architecture: (source sentences seen, target sentences seen)
    "sentence_transformer": (OWN, OWN),
    "global_context": (ALL, OWN),
    "document_transformer": (ALL, PAST),
    "document_transformer_aligned": (ALL, PAST),
    "lstm_transformer": (ALL, PAST),
    # Of its two encoder layers the lower one sees a window of one sentence.
    "flat_transformer": (sees_back(N, 1), OWN),
    # The target before is seen without gradient.
    "hybrid_context": (ALL, OWN),
    "g_transformer": (ALL, PAST),
    "g_transformer_no_target_context": (ALL, OWN),
    # Earlier source sentences reach it through the earlier target sentences, which read them.
    "g_transformer_no_source_context": (PAST, PAST),
    "g_transformer_no_context": (OWN, OWN),
    "g_transformer_no_language_locality": (ALL, PAST),
    "g_transformer_no_locality": (ALL, PAST),
    "g_transformer_only_group": (OWN, OWN),
    "g_transformer_only_global": (ALL, PAST),
}


@pytest.mark.parametrize("architecture", WHOLE)
def test_which_sentences_a_model_sees(architecture):
    for matrix, expected in zip(model_influence(make_model(architecture)), WHOLE[architecture], strict=True):
        assert np.array_equal(matrix, expected)


@pytest.mark.parametrize(("window", "layers", "reach"), [(0, 1, 0), (1, 1, 1), (2, 1, 2), (1, 2, 2), (4, 1, 4)])
def test_concatenation_reaches_back_one_window_per_layer(window, layers, reach):
    values = {"encoder_layers": 1, "decoder_layers": layers, "window_sentences": window}
    values |= {"encoder_attention": {"lower": "group", "upper": "group", "upper_layers": 0}}
    _, tgt = model_influence(make_model("concatenation", **values))
    assert np.array_equal(tgt, sees_back(N, reach))


# Each attention of each layer

COMBINED = "combined"
LAYERS = {
    # architecture: pattern of (encoder, decoder, cross) in lower and upper layers. What others see, equations say
    "g_transformer": (("group",) * 3, (COMBINED,) * 3),
    "g_transformer_no_target_context": (("group",) * 3, (COMBINED, "group", COMBINED)),
    "g_transformer_no_source_context": (("group",) * 3, ("group", COMBINED, "group")),
    "g_transformer_no_context": (("group",) * 3, ("group",) * 3),
    "g_transformer_no_language_locality": (("global", "global", "group"), ("global", "global", COMBINED)),
    "g_transformer_no_locality": (("global",) * 3, ("global",) * 3),
    "g_transformer_only_group": (("group",) * 3, ("group",) * 3),
    "g_transformer_only_global": (("group",) * 3, ("global",) * 3),
}
VISIBLE = {"group": OWN, "global": ALL, COMBINED: ALL}


def attention_influence(model, slot, layer):
    """Influence of key sentences on an attention's output."""
    batch = make_batch(model.settings, [DOCUMENT])
    src_tags, tgt_tags = sides(model)
    query_tags = src_tags if slot == "encoder" else tgt_tags
    key_tags = tgt_tags if slot == "decoder" else src_tags
    module = model.encoder[layer].self_attention if slot == "encoder" else model.decoder[layer].self_attention
    if slot == "cross":
        module = model.decoder[layer].cross_attention
    generator = torch.Generator().manual_seed(2)
    query = torch.randn(len(query_tags), 16, generator=generator).requires_grad_()
    memory = torch.randn(len(key_tags), 16, generator=generator).requires_grad_() if slot == "cross" else None
    output = module(query, memory, partial(model.place(batch.layout).grouping, slot))
    return influence(output, query if memory is None else memory, query_tags, key_tags)


@pytest.mark.parametrize("upper_layers", [0, 1, 2, 3])
@pytest.mark.parametrize("architecture", LAYERS)
def test_each_attention_sees_what_its_preset_says(architecture, upper_layers):
    """Including the study of combined layers, with `upper_layers` K = 1, 2, 3."""
    model = make_model(architecture, encoder_layers=3, decoder_layers=3, upper_layers=upper_layers, window_sentences=1)
    for layer in range(3):
        patterns = LAYERS[architecture][layer >= 3 - upper_layers]
        for slot, pattern in zip(("encoder", "decoder", "cross"), patterns, strict=True):
            expected = VISIBLE[pattern] & PAST if slot == "decoder" else VISIBLE[pattern]
            matrix = attention_influence(model, slot, layer)
            assert np.array_equal(matrix, expected), (layer, slot)


# Isolation: another token in one sentence


def change(document, side, sentence, position):
    changed = tuple([array.copy() for array in sentences] for sentences in document)
    token = changed[side][sentence][position]
    changed[side][sentence][position] = token + 1 if token < 20 else token - 1
    return changed


def encode(model, document):
    batch = make_batch(model.settings, [document])
    return model.encode(batch.src_tokens_S, model.place(batch.layout))


def changed_sentences(one, other, token_tags):
    return {int(tag) for tag in token_tags[(one != other).any(1).numpy()]}


@pytest.mark.parametrize(
    ("architecture", "expected"), [("g_transformer_only_group", {3}), ("g_transformer", {0, 1, 2, 3, 4})]
)
def test_source_token_changes_only_its_sentence(architecture, expected):
    model = make_model(architecture)
    src_tags, _ = sides(model)
    other = change(DOCUMENT, 0, 3, 2)
    assert changed_sentences(encode(model, DOCUMENT), encode(model, other), src_tags) == expected
    # Below the combined layers nothing else changes, bit by bit.
    model.encoder = model.encoder[:1]
    assert changed_sentences(encode(model, DOCUMENT), encode(model, other), src_tags) == {3}


@pytest.mark.parametrize(
    ("architecture", "positions", "is_a_bag"),
    [
        ("g_transformer", "sentence", True),
        ("g_transformer", "instance", False),
        ("g_transformer_only_global", "sentence", True),
        ("concatenation", "sentence", False),
    ],
)
def test_sentence_positions_see_a_bag(architecture, positions, is_a_bag):
    model = make_model(architecture, positions=positions)
    order = np.array([3, 0, 4, 1, 2])
    ends = np.cumsum([len(sentence) for sentence in DOCUMENT[0]])
    with torch.no_grad():
        states = [
            encode(model, tuple([side[number] for number in numbers] for side in DOCUMENT))
            for numbers in (np.arange(N), order)
        ]
    moved = np.concatenate([np.arange(ends[n] - len(DOCUMENT[0][n]), ends[n]) for n in order])
    difference = float((states[0][moved] - states[1]).abs().max())
    assert (difference < 1e-4) if is_a_bag else (difference > 1e-2)


def decode(model, document):
    return decoder_states(model, make_batch(model.settings, [document]))


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [("g_transformer_only_group", {2}), ("g_transformer", {2, 3, 4}), ("document_transformer", {2, 3, 4})],
)
def test_a_target_token_changes_only_what_follows(architecture, expected):
    model = make_model(architecture)
    _, tgt_tags = sides(model)
    one, other = decode(model, DOCUMENT), decode(model, change(DOCUMENT, 1, 2, 2))
    assert changed_sentences(one, other, tgt_tags) == expected
    first_of_sentence = int(np.argmax(tgt_tags == 2))
    assert torch.equal(one[: first_of_sentence + 2], other[: first_of_sentence + 2])
    assert not torch.equal(one[first_of_sentence + 2], other[first_of_sentence + 2])


def test_combined_layers_are_set_separately():
    values = {
        "encoder_attention": {"lower": "group", "upper": "combined", "upper_layers": 2},
        "decoder_attention": {"lower": "group", "upper": "combined", "upper_layers": 0},
        "cross_attention": {"lower": "group", "upper": "combined", "upper_layers": 1},
    }
    model = make_model("g_transformer", encoder_layers=3, decoder_layers=3, **values)
    counts = [
        sum(attention_influence(model, slot, layer).sum() > N for layer in range(3))
        for slot in ("encoder", "decoder", "cross")
    ]
    assert counts == [2, 0, 1]
