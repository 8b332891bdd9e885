"""Systems in shipped configs can be built and can start from their init, so no study fails after an hour."""

from pathlib import Path

import pytest
import torch

from docmt.config.loading import load_config, read_config_file
from docmt.config.systems import is_trained, model_settings, training_settings
from docmt.models.initialization import copy_weights, freeze, zero_init_outputs
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer

CONFIGS = Path(__file__).parents[2] / "config"


def starts():
    """Model settings, init's model settings (JSON, None without init), start and freezing of all systems."""
    for file in CONFIGS.rglob("*.yaml"):
        config = load_config(read_config_file(file))
        for system, row in config.systems.items():
            if is_trained(config, system):
                names = [system, *([row.init_system] if row.init_system else [])]
                model, *init = (model_settings(config, name).model_dump_json() for name in names)
                training = training_settings(config, system)
                yield model, *(init or [None]), training.init_new_parameters, training.freeze


def build(settings):
    with torch.device("meta"):  # shapes without memory
        return build_transformer(ModelSettings.model_validate_json(settings), 20)


@pytest.mark.slow
def test_every_system_can_start():
    for settings, init, new_parameters, frozen in dict.fromkeys(starts()):
        model = build(settings)
        if init is not None:
            copied = copy_weights(model, build(init).state_dict())
            assert copied
            if new_parameters == "zero":
                zero_init_outputs(model)
            if frozen == "pretrained":
                freeze(model, copied)
