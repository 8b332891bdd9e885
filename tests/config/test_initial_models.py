"""`config check` accepts a system exactly if it can copy the weights of its initial model."""

import pytest
from smoke_study import smoke_values

from docmt.config.checks import check_config
from docmt.config.schema import Config
from docmt.config.systems import merge, model_settings
from docmt.errors import UserError
from docmt.models.initialization import copy_weights
from docmt.models.presets import ARCHITECTURES
from docmt.models.systems.context_transformer import ContextTransformer
from docmt.models.systems.transformer import Transformer

SIZE = {"encoder_layers": 2, "decoder_layers": 2, "width": 16, "heads": 2, "feed_forward_width": 32}
MIXED = {"lower": "long_short", "upper": "combined", "upper_layers": 1}
FORMS = ("embedding_norm", "final_norm", "output_bias", "zero_start")


def study(initial, initial_model, architecture, model):
    def system(name, changes, **others):
        instances = "documents_with_trees" if name.startswith("rst_") else "documents"
        return {"instances": instances, "architecture": name, "size": "tiny", "model": merge(SIZE, changes), **others}

    systems = {
        "initial": system(initial, initial_model, recipe="scratch"),
        "tuned": system(architecture, model, recipe="finetune", init="initial"),
    }
    return Config.load(smoke_values() | {"systems": systems, "report": {}}, where="config")


def build(settings):
    return (ContextTransformer if settings.context else Transformer)(settings, 30)


def check(*models):
    """Compare the result of the check with the copy of the weights."""
    config = study(*models)
    initial, tuned = (build(model_settings(config, name)) for name in ("initial", "tuned"))
    try:
        copy_weights(tuned, initial.state_dict())
    except UserError:
        with pytest.raises(UserError, match=r"config\.systems\.tuned\."):
            check_config(config)
    else:
        check_config(config)


@pytest.mark.parametrize("architecture", ["g_transformer", "lstm_transformer", "hybrid_context", "rst_mix", "cadec"])
@pytest.mark.parametrize("initial", ["sentence_transformer", "g_transformer", "lstm_transformer", "hybrid_context"])
def test_check_of_init_equals_copied_weights(initial, architecture):
    check(initial, {}, architecture, {})


@pytest.mark.slow
@pytest.mark.parametrize("initial", ARCHITECTURES)
def test_check_of_init_for_all_architectures(initial):
    for architecture in ARCHITECTURES:
        check(initial, {}, architecture, {})


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder_layers": 3},
        {"decoder_layers": 3},
        *({"form": {key: True}} for key in FORMS),
        {"form": {"learned_positions": 40}},
        {"form": {"learned_sentences": 5}},
        {"marks": {"src_before": []}},
        {"positions": "sentence"},
        {"encoder_attention": MIXED},
    ],
    ids=str,
)
def test_check_of_init_after_a_change(changes):
    check("sentence_transformer", changes, "g_transformer", {})
    check("sentence_transformer", {}, "g_transformer", changes)
    check("g_transformer", changes, "g_transformer", changes)


@pytest.mark.parametrize("form", [{"norm": "pre"}, {"activation": "gelu"}, {"position_offset": 2}], ids=str)
def test_copied_weights_keep_their_computation(form):
    (key,) = form
    with pytest.raises(UserError, match=rf"form\.{key} is .*: both must be equal"):
        check_config(study("sentence_transformer", {"form": form}, "g_transformer", {}))
    check_config(study("sentence_transformer", {"form": form}, "g_transformer", {"form": form}))


@pytest.mark.parametrize(
    ("architecture", "initial", "tuned"),
    [
        ("cadec", {"context": {"sentences": 2}}, {}),
        ("han", {"context": {"sentences": 2}}, {}),
        ("hybrid_context", {"form": {"learned_sentences": 5}}, {}),
        ("sentence_transformer", {"form": {"learned_positions": 40}}, {"form": {"learned_positions": 50}}),
        ("global_context", {"context": {"layers": 1}}, {"context": {"norm": False}}),
        ("lstm_transformer", {"encoder_attention": MIXED}, {"encoder_attention": MIXED}),
    ],
)
def test_check_of_init_within_an_architecture(architecture, initial, tuned):
    check(architecture, initial, architecture, tuned)
