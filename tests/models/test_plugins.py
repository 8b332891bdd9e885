"""Architectures and attention patterns of other packages, found through entry points."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from core_fixtures import SIZE, random_sentence
from plain_search import pack_sources, search, teacher_forced

from docmt.errors import UserError
from docmt.models.attention.distances import ALL_DISTANCES, DISTANCES
from docmt.models.attention.layout import AttentionLayout
from docmt.models.attention.multi_head import ALL_FUSIONS, FUSIONS
from docmt.models.attention.patterns import ALL_PATTERNS, PATTERNS, Fusion
from docmt.models.attention.visibility import ALL_GROUPINGS, GROUPINGS
from docmt.models.layers import ALL_ENCODER_LAYERS, ENCODER_LAYERS
from docmt.models.presets import ALL_ARCHITECTURES, ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_traits import ALL_CONTEXTS, CONTEXTS
from docmt.models.systems.transformer import ALL_CONTEXT_MODULES, CONTEXT_MODULES, Transformer

MANUAL = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8").split("## Your own architecture")[1]
METADATA, ROWS, FUNCTIONS = re.findall(r"```(?:toml|python)\n(.*?)```", MANUAL, flags=re.DOTALL)[:3]
"""The example of the manual."""
REGISTRIES = (
    *(ALL_ARCHITECTURES, ALL_PATTERNS, ALL_GROUPINGS, ALL_FUSIONS, ALL_DISTANCES, ALL_ENCODER_LAYERS),
    *(ALL_CONTEXTS, ALL_CONTEXT_MODULES),
)


def entry_points_of(pyproject):
    """What an installation makes of the entry points in pyproject.toml."""
    groups = tomllib.loads(pyproject)["project"]["entry-points"]
    return "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()
    )


def add_package(folder, name, entry_points, **modules):
    """What an installation leaves on the path: the package and its metadata."""
    (folder / name).mkdir()
    for module, text in modules.items():
        (folder / name / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


def forget_packages():
    for registry in REGISTRIES:
        registry.__dict__.pop("all", None)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder on the path; what is installed there is forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = set(sys.modules)
    forget_packages()
    yield tmp_path
    forget_packages()
    for name in set(sys.modules) - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def first_sentence(packages):
    add_package(packages, "first_sentence", entry_points_of(METADATA), __init__=ROWS, groupings=FUNCTIONS)
    return packages


def make_model(architecture="first_sentence", **values):
    torch.manual_seed(0)
    settings = ModelSettings.load(SIZE | ALL_ARCHITECTURES.all[architecture] | values, where="model")
    model = Transformer(settings, 40).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0 if parameter.dim() > 1 else 1.0)
    return model


def test_what_settings_know_and_what_computes_have_the_same_names():
    plain = {name: pattern for name, pattern in PATTERNS.items() if not isinstance(pattern, Fusion)}
    assert GROUPINGS.keys() == plain.keys()
    assert FUSIONS.keys() == PATTERNS.keys() - plain.keys()
    assert DISTANCES.keys() == {name for name, pattern in plain.items() if pattern.has_distances}
    assert ENCODER_LAYERS.keys() == {name for name, pattern in plain.items() if pattern.has_encoder_layer}
    assert CONTEXT_MODULES.keys() == CONTEXTS.keys()


def test_architectures_of_packages_stand_beside_those_of_docmt(first_sentence):
    assert set(ALL_ARCHITECTURES.all) == {*ARCHITECTURES, "first_sentence"}


def check_cached_decoding(model):
    """It equals teacher forcing. Returns the layout of the five sentences."""
    generator = np.random.default_rng(0)
    source = [random_sentence(generator, n, 40) for n in (3, 0, 5, 2, 6)]
    (found,) = search(model, [source], beam_size=3)
    for hypothesis in found:
        expected = teacher_forced(model, source, hypothesis.sentences)
        assert hypothesis.log_probability == pytest.approx(expected, rel=1e-5, abs=1e-4)
    return pack_sources(model, [source])[1]


def test_cached_decoding_of_a_new_pattern_equals_teacher_forcing(first_sentence):
    layout = check_cached_decoding(make_model())
    assert layout.visible_sentences("first").astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 0, 1],
    ]


CONTEXT_ROWS = """
from docmt.models.systems.context_traits import ContextTraits

TRAITS = ContextTraits(
    settings=("sentences",),
    attentions=(("decoder", "each_before"),),
    indexes=(("tgt", "number"),),
    sentences=1,
    sees_target=True,
)
GROUP = {"lower": "group", "upper": "group"}
ATTENTIONS = {"encoder_attention": GROUP, "decoder_attention": GROUP, "cross_attention": GROUP}
ARCHITECTURE = {**ATTENTIONS, "positions": "sentence", "context": {"kind": "echo"}}
"""
CONTEXT_MODULE = """
import torch
from torch import nn
from docmt.models.systems.context_module import ContextModule
from docmt.models.attention.multi_head import MultiHeadAttention

class Echo(ContextModule):
    \"\"\"Every decoder layer reads its states of the target sentences before.\"\"\"

    def __init__(self, settings):
        super().__init__()
        sizes = settings.width, settings.heads, "group"
        parts = (MultiHeadAttention(*sizes) for _ in range(settings.decoder_layers))
        self.layers, self.n_before = nn.ModuleList(parts), settings.n_before

    def in_decoder(self, number, hidden_ND, reader):
        each_JND = reader.to_each(self.layers[number], hidden_ND, hidden_ND, self.n_before)
        ranks_J = torch.arange(self.n_before, device=hidden_ND.device)
        is_there_JN1 = (reader.numbers() > ranks_J[:, None])[..., None]
        return hidden_ND + torch.where(is_there_JN1, each_JND, 0).sum(0)

    def each_parts(self):
        return list(self.layers)
"""


@pytest.mark.parametrize("sentences", [1, 2])
def test_a_context_module_of_a_package_decodes_as_it_is_trained(packages, sentences):
    points = "[docmt.contexts]\necho = echo:TRAITS\n[docmt.context_modules]\necho = echo.module:Echo\n"
    points += "[docmt.architectures]\necho = echo:ARCHITECTURE\n"
    add_package(packages, "echo", points, __init__=CONTEXT_ROWS, module=CONTEXT_MODULE)
    check_cached_decoding(make_model("echo", context={"kind": "echo", "sentences": sentences}))


def test_a_new_pattern_keeps_documents_apart(first_sentence):
    model = make_model()
    generator = np.random.default_rng(1)
    documents = [[random_sentence(generator, 4, 40) for _ in range(3)] for _ in range(2)]
    lengths = np.full(6, 6)
    layout = AttentionLayout.of_source(lengths, np.array([3, 3]), settings=model.settings)
    tokens = torch.from_numpy(np.concatenate([*documents[0], *documents[1]]))
    before = model.encode(tokens, layout)
    tokens[1] = (tokens[1] + 1) % 40
    changed = (model.encode(tokens, layout) != before).any(1).reshape(6, 6).any(1)
    assert changed.tolist() == [True, True, True, False, False, False]


def test_settings_of_packages_are_read_without_torch(first_sentence):
    code = (
        "import sys; from docmt.models.presets import ALL_ARCHITECTURES; from docmt.models.settings import "
        "ModelSettings; ModelSettings.load(ALL_ARCHITECTURES.all['first_sentence'], where='model'); "
        "sys.exit('torch' in sys.modules)"
    )
    path = [str(first_sentence), *filter(None, sys.path)]
    environment = {"PYTHONPATH": ":".join(path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_an_unknown_pattern_is_told_the_nearest_name(first_sentence):
    with pytest.raises(UserError, match=r"model.encoder_attention.lower: .*did you mean 'group_first'.*'group_frist'"):
        ModelSettings.load({"encoder_attention": {"lower": "group_frist"}}, where="model")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("missing_module:ROW", "cannot be imported .*No module named 'missing_module'"),
        ("other:missing", "cannot be imported .*missing"),
        ("other:NUMBER", "must be a dict, not 5"),
    ],
)
def test_a_package_that_gives_no_architecture_is_named(packages, value, message):
    add_package(packages, "other", f"[docmt.architectures]\nmine = {value}\n", __init__="NUMBER = 5")
    with pytest.raises(UserError, match=rf"architecture 'mine' of package other: .*{message}") as caught:
        _ = ALL_ARCHITECTURES.all
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["g_transformer", "mine"])
def test_two_architectures_of_one_name_are_refused(packages, name):
    for package in ("one", "two"):
        add_package(packages, package, f"[docmt.architectures]\n{name} = {package}:ROW\n", __init__="ROW = {}")
    with pytest.raises(UserError, match=f"architecture '{name}' of package (one|two): .* has one of the same name"):
        _ = ALL_ARCHITECTURES.all


def test_a_package_that_fails_to_import_does_not_touch_patterns_of_docmt(packages):
    add_package(packages, "other", "[docmt.patterns]\nmine = other:ROW\n", __init__="raise ValueError('broken')")
    ModelSettings.load(ARCHITECTURES["g_transformer"], where="model")
    with pytest.raises(UserError, match=r"attention pattern 'mine' of package other: .*ValueError: broken"):
        ModelSettings.load({"encoder_attention": {"upper": "mine"}}, where="model")


@pytest.mark.parametrize("pattern", ["combined", "rst_mix"])
def test_fusions_have_no_grouping(pattern):
    settings = ModelSettings.load(SIZE, where="model")
    layout = AttentionLayout.of_source(np.array([3]), np.array([1]), settings=settings)
    with pytest.raises(ValueError, match=f"{pattern} is a fusion of group and"):
        layout.grouping("encoder", pattern)
