"""Presets, parameter counts, and contradictory settings."""

import pytest
import torch

from docmt.errors import UserError
from docmt.models.attention.multi_head import FUSIONS
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer


def load(size, architecture, **values):
    return ModelSettings.load(SIZES[size] | ARCHITECTURES[architecture] | values, where="model")


@pytest.mark.parametrize(
    ("size", "architecture"),
    [*(("base", name) for name in ARCHITECTURES), *((size, "g_transformer") for size in SIZES if size != "base")],
)
def test_number_of_parameters(size, architecture):
    """Counted by hand, from the formulas in the paper and one shared embedding table."""
    settings = load(size, architecture)
    n_symbols = 30_000
    with torch.device("meta"):
        model = build_transformer(settings, n_symbols)
    d, f = settings.width, settings.feed_forward_width
    attention, gate, norm = 4 * (d * d + d), 2 * d * d + d, 2 * d
    feed_forward = 2 * d * f + d + f
    expected = n_symbols * d
    expected += settings.encoder_layers * (attention + feed_forward + 2 * norm)
    expected += settings.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    attentions = (settings.encoder_attention, settings.decoder_attention, settings.cross_attention)
    added = {"combined": attention + gate, "rst_serial": attention, "long_short": 0}
    added |= {"rst_parallel": attention + gate, "rst_mix": attention + gate}
    unlisted = {row.upper for row in attentions if row.upper in FUSIONS} - added.keys()
    assert not unlisted, f"{unlisted}: write into `added`, above, how many parameters this fusion adds to a layer"
    expected += sum(a.upper_layers * added.get(a.upper, 0) for a in attentions)
    hierarchical = 2 * attention + feed_forward + 2 * d * d + 4 * norm
    expected += {
        None: 0,
        "global": settings.encoder_layers * (d * d + d) + attention + norm + 2 * d * d,
        "doct": attention + feed_forward + 2 * norm + 2 * settings.encoder_layers * (attention + 2 * d * d + norm),
        "han_encoder": hierarchical,
        "han": 2 * hierarchical,
        "san": attention + 2 * (d * d + d) + feed_forward + 2 * d * d + 2 * norm,
        # Drafts are twice as wide. Four distances have vectors for keys and values of two attentions.
        "cadec": settings.decoder_layers * (3 * attention + 2 * d * d + feed_forward + 4 * norm + 2 * 2 * 4 * d),
    }[settings.context and settings.context.kind]
    # Segments have vectors for two distances, `distances` for 41 that all heads share, and a gate. `memory` has a
    # matrix and a vector for each head.
    encoder, width = settings.encoder_attention, d // settings.heads
    layers = {encoder.lower: settings.encoder_layers - encoder.upper_layers, encoder.upper: encoder.upper_layers}
    expected += layers.get("segments", 0) * 2 * 2 * d + layers.get("distances", 0) * (2 * 41 * width + gate)
    is_memory = settings.decoder_attention.lower == "memory"
    expected += is_memory * settings.decoder_layers * (d * width + d)
    form = settings.form
    expected += (form.learned_sentences or 0) * d
    expected += n_symbols * form.output_bias + 2 * norm * (form.embedding_norm + form.final_norm)
    expected += 2 * (form.learned_positions or 0) * d
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


@pytest.mark.parametrize(
    ("pattern", "upper_layers", "expected"),
    [("rst", 1, True), ("rst_serial", 2, True), ("rst_mix", 1, True), ("rst_mix", 0, False), ("combined", 2, False)],
)
@pytest.mark.parametrize("slot", ["encoder", "decoder", "cross"])
def test_tree_attention_needs_trees(slot, pattern, upper_layers, expected):
    attention = {"lower": "group", "upper": pattern, "upper_layers": upper_layers}
    assert load("tiny", "g_transformer", **{f"{slot}_attention": attention}).needs_trees is expected


def test_context_encoder_copies_encoder_layers():
    assert load("tiny", "global_context").context_layers == 3
    assert load("tiny", "global_context", context={"layers": 2}).context_layers == 2
    assert load("tiny", "sentence_transformer").context_layers == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_which_models_decode_sentences_alone(architecture):
    """This excludes group models with continuous positions, because positions depend on previous sentences."""
    alone = ("sentence_transformer", "global_context", "flat_transformer", "doct", "han_encoder", "san")
    expected = architecture in alone
    assert load("tiny", architecture).decodes_sentences_alone is expected
    groups = ("sentence_transformer", "g_transformer_no_context", "g_transformer_only_group")
    assert load("tiny", architecture).sees_single_sentences is (architecture in groups)


def attention(slot, pattern):
    return {f"{slot}_attention": {"lower": "group", "upper": pattern}}


MARKS = {"src_before": ["{src}"], "src_after": ["</s>"], "tgt_before": ["</s>", "{tgt}"]}
BAD = {
    "g_transformer": [
        ({"width": 100}, "width 100 must be a multiple of 2 × heads"),
        ({"encoder_layers": 1}, "encoder_attention.upper_layers 2 is more than encoder_layers 1"),
        ({"decoder_layers": 1}, "decoder_attention.upper_layers 2 is more than decoder_layers 1"),
        ({"target_stream": "free"}, "encoder_attention must be global"),
        ({"dropout": 1.0}, "dropout"),
        ({"with": 3}, "did you mean 'width'"),
        ({"encoder_attention": {"lower": "local"}}, "encoder_attention.lower"),
        ({"encoder_attention": {"uper": "group"}}, "did you mean 'upper'"),
        ({"positions": "document"}, "positions"),
        ({"window_sentences": -1}, "window_sentences"),
        ({"width": "512"}, "without quotation marks"),
        ({"context": {}}, "encoder_attention to be group in all layers"),
        ({"context": {"layer": 2}}, "did you mean 'layers'"),
        ({"form": {"learned_positions": 5, "position_offset": 2}}, "position_offset is for sinusoids"),
        (attention("decoder", "segments"), "decoder_attention: segments is a pattern for encoder attention"),
        (attention("cross", "segments"), "cross_attention: segments is a pattern for encoder attention"),
        (attention("decoder", "distances"), "decoder_attention: distances is a pattern for encoder attention"),
        (attention("cross", "memory"), "cross_attention: memory is a pattern for decoder attention"),
        (attention("encoder", "memory"), "encoder_attention: memory is a pattern for decoder attention"),
    ],
    "document_transformer": [
        ({"marks": MARKS}, "starts sentences with one symbol"),
        ({"marks": {"tgt_before": ["</s>"]}}, "ends sentences with </s>, but marks.tgt_before starts them with it"),
        ({"marks": {"tgt_before": ["<s>", "</s>"]}}, "</s> as the first word would end every sentence"),
    ],
    "global_context": [
        ({"context": {"layers": 4}}, r"context.layers 4 is more than encoder_layers 3"),
        ({"context": {"layers": 0}}, r"context.layers"),
        ({"positions": "instance"}, "context requires positions 'sentence'"),
        ({"cross_attention": {"lower": "window", "upper": "group"}}, "cross_attention to be group in all layers"),
        ({"form": {"norm": "pre"}}, "context requires form.norm 'post'"),
        ({"context": {"kind": "hann"}}, r"context\.kind: must be a context module \(did you mean 'han'"),
        ({"context": {"kind": "han", "layers": 1}}, "kind 'han' does not use the key 'layers'"),
        ({"context": {"kind": "san", "sentences": 2}}, "kind 'san' does not use the key 'sentences'"),
        ({"context": {"future": False}}, "kind 'global' does not use the key 'future'"),
    ],
}


@pytest.mark.parametrize(
    ("architecture", "values", "message"), [(name, *row) for name, rows in BAD.items() for row in rows]
)
def test_bad_settings_are_named(architecture, values, message):
    with pytest.raises(UserError, match=message) as caught:
        load("tiny", architecture, **values)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("model")


def test_model_settings_are_read_as_written():
    context = load("tiny", "global_context")
    assert ModelSettings.load(context.model_dump(), where="model") == context
