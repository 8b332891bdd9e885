"""Systems: presets and overrides are merged once, in order."""

from pathlib import Path

import pytest

from docmt.config.loading import load_config, read_config_file
from docmt.config.systems import Run, list_runs, merge, model_settings, text_settings, training_settings
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.training.settings import WITHOUT_EFFECT

CONFIGS = Path(__file__).parents[2] / "config"


@pytest.fixture
def values():
    return read_config_file(CONFIGS / "config.yaml")


def test_model_is_size_then_architecture_then_own_keys(values):
    values["systems"]["g_transformer"]["model"] = {"width": 64, "encoder_attention": {"upper_layers": 1}}
    model = model_settings(load_config(values), "g_transformer")
    assert model.width == 64
    assert model.encoder_layers == SIZES["tiny"]["encoder_layers"]
    assert model.encoder_attention.upper_layers == 1
    assert model.encoder_attention.upper == ARCHITECTURES["g_transformer"]["encoder_attention"]["upper"]
    assert model.decoder_attention.upper_layers == 2


def test_training_is_recipe_then_own_keys(values):
    values["systems"]["g_transformer"]["training"] = {"learning_rate": 3.0e-4}
    config = load_config(values)
    training = training_settings(config, "g_transformer")
    assert training.learning_rate == 3.0e-4
    recipe = config.training["scratch"]
    assert training.model_copy(update={"learning_rate": recipe.learning_rate}).model_dump() == recipe.model_dump(
        exclude={*WITHOUT_EFFECT}
    )


def test_dataset_text_overrides_the_section(values):
    values["datasets"]["controlled"]["text"] = {"bpe_merges": 77}
    config = load_config(values)
    assert text_settings(config, "controlled").bpe_merges == 77
    assert config.text.bpe_merges == values["text"]["bpe_merges"]


def test_runs_are_dataset_by_system_by_seed(values):
    values["seeds"] = [1, 2]
    values["systems"] = {name: values["systems"][name] for name in ("sentence_transformer", "g_transformer")}
    values["systems"]["g_transformer"]["seeds"] = [5]
    values["datasets"]["second"] = dict(values["datasets"]["controlled"])
    values["systems"]["g_transformer"]["datasets"] = ["second"]
    values["report"] = {}
    assert list_runs(load_config(values)) == [
        Run("controlled", "sentence_transformer", 1),
        Run("controlled", "sentence_transformer", 2),
        Run("second", "sentence_transformer", 1),
        Run("second", "sentence_transformer", 2),
        Run("second", "g_transformer", 5),
    ]


def test_merge_replaces_lists_and_merges_mappings():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
    assert merge(base, {"a": {"c": [3]}, "e": None}) == {"a": {"b": 1, "c": [3]}, "d": 1, "e": None}
    assert base == {"a": {"b": 1, "c": [1, 2]}, "d": 1}
