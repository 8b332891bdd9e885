"""Architectures, attention patterns and context modules that tests add to docmt's dicts."""

import contextlib
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from core_fixtures import SIZE, random_sentence
from plain_search import pack_sources, search, teacher_forced
from torch import nn

from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import DISTANCES, FUSIONS, MultiHeadAttention
from docmt.models.attention.patterns import PATTERNS, Fusion
from docmt.models.layers import ENCODER_LAYERS
from docmt.models.presets import ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_module import ContextModule
from docmt.models.systems.context_traits import CONTEXTS, ContextTraits
from docmt.models.systems.context_transformer import CONTEXT_MODULES, build_transformer

MANUAL = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8").split("## Your own architecture")[1]
EXAMPLE = MANUAL.split("```python\n")[1].split("```")[0]


@pytest.fixture
def dicts():
    """The dicts, which are restored after the test."""
    with contextlib.ExitStack() as stack:
        for rows in (PATTERNS, FUSIONS, ARCHITECTURES, CONTEXTS, CONTEXT_MODULES):
            stack.enter_context(mock.patch.dict(rows))
        yield


@pytest.fixture
def first_sentence(dicts):
    """The example in the manual."""
    exec(EXAMPLE, {})


def make_model(architecture="first_sentence", **values):
    torch.manual_seed(0)
    settings = ModelSettings.load(SIZE | ARCHITECTURES[architecture] | values, where="model")
    model = build_transformer(settings, 40).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0 if parameter.dim() > 1 else 1.0)
    return model


def test_settings_and_code_have_the_same_names():
    plain = {name for name, pattern in PATTERNS.items() if not isinstance(pattern, Fusion)}
    assert FUSIONS.keys() == PATTERNS.keys() - plain
    assert DISTANCES.keys() | ENCODER_LAYERS.keys() <= plain
    assert CONTEXT_MODULES.keys() == CONTEXTS.keys()


def check_cached_decoding(model):
    """Compare with teacher forcing. Returns the layout of the five sentences."""
    generator = np.random.default_rng(0)
    source = [random_sentence(generator, n, 40) for n in (3, 0, 5, 2, 6)]
    (hypotheses,) = search(model, [source], beam_size=3)
    for hypothesis in hypotheses:
        expected = teacher_forced(model, source, hypothesis.sentences)
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)
    return pack_sources(model, [source])[1]


def test_cached_decoding_equals_teacher_forcing(first_sentence):
    layout = check_cached_decoding(make_model())
    assert layout.sentence_grouping("decoder", "first").dense_mask(5).astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 0, 1],
    ]


class Echo(ContextModule):
    """Decoder layers read their states of previous target sentences."""

    def __init__(self, settings):
        super().__init__()
        sizes = settings.width, settings.heads, "group"
        parts = (MultiHeadAttention(*sizes) for _ in range(settings.decoder_layers))
        self.layers, self.n_before = nn.ModuleList(parts), settings.n_before

    def in_decoder(self, number, hidden_ND, reader):
        each_JND = reader.attend_previous(self.layers[number], hidden_ND, hidden_ND, self.n_before)
        ranks_J = torch.arange(self.n_before, device=hidden_ND.device)
        is_there_JN1 = (reader.numbers() > ranks_J[:, None])[..., None]
        return hidden_ND + torch.where(is_there_JN1, each_JND, 0).sum(0)

    def previous_attentions(self):
        return list(self.layers)


@pytest.mark.parametrize("sentences", [1, 2])
def test_new_context_module_decodes(dicts, sentences):
    CONTEXTS["echo"] = ContextTraits(
        settings=("sentences",),
        attentions=(("decoder", "each_before"),),
        indexes=(("tgt", "number"),),
        sentences=1,
        sees_target=True,
    )
    CONTEXT_MODULES["echo"] = Echo
    context = {"kind": "echo", "sentences": sentences}
    check_cached_decoding(make_model("sentence_transformer", context=context))


@pytest.mark.parametrize("pattern", ["combined", "rst_mix"])
def test_fusions_have_no_grouping(pattern):
    settings = ModelSettings.load(SIZE, where="model")
    layout = AttentionLayout.of_source(np.array([3]), np.array([1]), settings=settings)
    with pytest.raises(ValueError, match=f"{pattern} is a fusion of group and"):
        layout.grouping("encoder", pattern)
