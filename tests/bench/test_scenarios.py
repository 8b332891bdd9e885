"""Scenarios have the CPU's results on a GPU or its stand-in. Without one, their comparisons find wrong results."""

import math

import pytest
import torch
import torch._dynamo
from architectures import DIVERSE, TRAINED
from plain_attention import take_plain_kernels

from benchmarks.gpu import comparisons, workload
from benchmarks.gpu.comparisons import Scenarios, scenario_names
from benchmarks.gpu.outcomes import judge, relative_difference
from docmt.models.systems import transformer
from docmt.training import compiling
from docmt.training.compiling import CompiledLoss
from docmt.training.loss import LossModule

CPU = torch.device("cpu")
QUICK = {
    "update": DIVERSE,
    "contrast": DIVERSE,
    "search": DIVERSE,
    "training": TRAINED,
    "no-waiting": ["g_transformer"],
}
"""Presets with quick tests, by kind of scenario."""


def parameters():
    for name in (name for names in scenario_names(on_gpu=True) for name in names):
        kind, _, preset = name.partition("/")
        is_quick = kind == "probe" or preset in QUICK.get(kind, ())
        yield pytest.param(name, marks=() if is_quick else pytest.mark.slow)


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Scenarios(torch.device("cuda"), tmp_path_factory.mktemp("scenarios"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", parameters())
def test_a_gpu_has_the_results_of_the_cpu(scenarios, name):
    outcome = scenarios(name)
    if outcome.verdict == "not run":
        pytest.skip(outcome.value)
    assert outcome.verdict == "ok", outcome
    if torch.cuda.get_device_name() == "stand-in":  # it computes on the CPU
        assert not any(outcome.numbers.get(name) for name in ("different hypotheses", "resumed")), outcome


def test_figures_are_judged_by_their_limits():
    for number, verdict in ((1.0, "ok"), (1.1, "FAILED"), (math.nan, "FAILED")):
        outcome = judge({"a": number, "b": 0.0}, {"a": 1.0, "b": 0.0})
        assert outcome.verdict == verdict
        assert outcome.value.startswith("a ")
    assert relative_difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert relative_difference([1.0], [1.0, 2.0]) == math.inf
    assert relative_difference([math.nan], [1.0]) == math.inf


def test_weights_that_differ_fail(monkeypatch, tmp_path):
    """A model with different results in every second call, as on a device with a wrong kernel."""
    scenarios, calls, forward = Scenarios(CPU, tmp_path), [], LossModule.forward

    def drifting(self, batch):
        calls.append(1)
        return forward(self, batch) * (1.1 if len(calls) % 2 == 0 else 1)

    assert scenarios("update/sentence_transformer").verdict == "ok"
    monkeypatch.setattr(LossModule, "forward", drifting)
    assert scenarios("update/sentence_transformer").verdict == "FAILED"


@pytest.fixture
def graphs(monkeypatch):
    """Plain computation of GPU kernels, and graphs as the tracer makes them."""
    monkeypatch.setattr(transformer, "kernel_for", lambda *_: "varlen")
    take_plain_kernels(monkeypatch, [])
    for name in ("encoder_layers", "decoder_layers"):
        monkeypatch.setitem(workload.TINY, name, 1)
    monkeypatch.setattr(comparisons, "compiled_loss", lambda module, _: CompiledLoss(module, "eager"))
    yield
    torch._dynamo.reset()


@pytest.mark.slow
def test_many_presets_compile(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "MAX_COMPILATIONS", 1)
    scenarios, presets = Scenarios(CPU, tmp_path), ("sentence_transformer", "document_transformer")
    outcomes = {preset: scenarios(f"compiled/{preset}") for preset in presets}
    assert {preset: outcome.verdict for preset, outcome in outcomes.items()} == dict.fromkeys(presets, "ok")


@pytest.mark.slow
def test_a_row_says_why_the_compiler_failed(graphs, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no such compiler")

    monkeypatch.setattr(comparisons, "compiled_loss", lambda module, _: CompiledLoss(module, fail))
    outcome = Scenarios(CPU, tmp_path)("compiled/g_transformer")
    assert outcome.verdict == "FAILED"
    assert "no such compiler" in outcome.value
