"""Forward pass and loss as one graph of `torch.compile`, for batches of any shape.

Variable-length attention is docmt's operator for GPUs, with plain kernels.
"""

import numpy as np
import pytest
import torch
import torch._dynamo
from architectures import TRAINED, slow_but
from core_fixtures import (
    assert_close,
    assert_same_training,
    document_trees,
    make_batch,
    make_model,
    random_documents,
    run_training,
)
from plain_attention import take_plain_kernels
from torch._functorch._aot_autograd.autograd_cache import check_cacheable

from docmt.errors import UserError
from docmt.models.attention import varlen
from docmt.models.systems import transformer
from docmt.text.vocabulary import BOS, EOS
from docmt.training import compiling, filling, trainer
from docmt.training.compiling import CompiledLoss, compiled_loss
from docmt.training.filling import FilledBatch
from docmt.training.loss import LossModule

BATCHES = ([3, 2], [4, 1, 2], [5], [2, 2, 2], [1, 1, 1], [1], [7, 3])
"""Sentences per document. In one-sentence documents, keys are in order for every pattern."""
SMALL = {"encoder_layers": 1, "decoder_layers": 1}


@pytest.fixture(autouse=True)
def kernel(monkeypatch):
    """Plain version of the GPU operator. Collects kernel names."""
    taken = []
    monkeypatch.setattr(transformer, "kernel_for", lambda *_: "varlen")
    take_plain_kernels(monkeypatch, taken)
    torch._dynamo.reset()
    yield taken
    torch._dynamo.reset()


def batch_of(settings, counts, seed, **options):
    documents = random_documents(counts, seed=seed)
    trees = document_trees(documents) if settings.needs_trees and seed % 2 else None
    return make_batch(settings, documents, trees, **options)


def prepared_batch(settings, counts, seed, **options):
    """A batch as devices get it, in one buffer."""
    placed, buffer = batch_of(settings, counts, seed, **options).prepare("varlen")._placed()
    return placed._filled(buffer)


def counting(backend):
    """A backend, and the graphs that it gets."""
    graphs = []

    def compile_graph(graph, inputs):
        graphs.append(graph)
        return torch._dynamo.lookup_backend(backend)(graph, inputs)

    return compile_graph, graphs


def results(run, module, batch):
    module.zero_grad()
    loss = run(batch)
    loss.backward()
    return [loss, *(parameter.grad for parameter in module.parameters())]


def compare(module, *, backend="eager", tolerance=1e-5):
    """Compare the compiled loss and its gradients with plain ones on batches of all shapes. One graph is enough."""
    backend, graphs = counting(backend)
    compiled = CompiledLoss(module, backend)
    for seed, counts in enumerate(BATCHES):
        batch = prepared_batch(module.model.settings, counts, seed)
        for result, expected in zip(results(compiled, module, batch), results(module, module, batch), strict=True):
            assert_close(result, expected, tolerance)
    assert compiled.compiled is not None
    assert len(graphs) == 1


@pytest.mark.parametrize("architecture", slow_but(("g_transformer",)))
def test_one_graph_serves_all_batches(architecture):
    compare(LossModule(make_model(architecture, **SMALL), 0.1).eval())


@pytest.mark.slow
@pytest.mark.parametrize("architecture", slow_but(TRAINED))
def test_one_graph_without_a_backward_pass_serves_validation(architecture):
    module = LossModule(make_model(architecture, **SMALL), 0.1).eval()
    backend, graphs = counting("eager")
    compiled = CompiledLoss(module, backend)
    for seed, counts in enumerate(BATCHES):
        batch = prepared_batch(module.model.settings, counts, seed)
        np.testing.assert_allclose(module.validate(batch, compiled.states), module.validate(batch), rtol=1e-5)
    assert compiled.states.compiled is not None
    assert len(graphs) == 1


@pytest.mark.slow
def test_one_graph_chooses_the_kernels_of_each_batch(kernel, monkeypatch):
    """Short groups and long ones have different kernels."""
    monkeypatch.setattr(varlen, "MEAN_LENGTH", 8)
    compare(LossModule(make_model(**SMALL), 0.1), backend="aot_eager")
    assert set(kernel) == {"short", "short backward", "flash", "flash backward"}


@pytest.mark.parametrize("architecture", slow_but((), ("hybrid_context", "rst_mix")))
def test_one_graph_serves_filled_batches(architecture, monkeypatch):
    """Their tensors share one buffer."""
    for name, step in {"TOKENS": 64, "GROUPS": 32, "KEYS": 128, "ROWS": 16}.items():
        monkeypatch.setattr(filling, name, step)
    module = LossModule(make_model(architecture, **SMALL), 0.1).eval()
    backend, graphs = counting("eager")
    compiled = CompiledLoss(module, backend)
    for seed, counts in enumerate(BATCHES):
        filled = FilledBatch.of(batch_of(module.model.settings, counts, seed))
        _, batch = filled.views(filled.buffer.clone(), module.model.settings)
        assert_close(compiled(batch), module(batch))
    assert compiled.compiled is not None
    assert len(graphs) == 1


@pytest.mark.slow
def test_one_graph_draws_drafts(monkeypatch):
    """With the same random numbers as the plain loss."""
    module = LossModule(make_model("cadec", **SMALL).train(), 0.1)
    plain = module.zero_grad
    monkeypatch.setattr(module, "zero_grad", lambda: (torch.manual_seed(1), plain()))
    compare(module, backend="aot_eager")


@pytest.mark.slow
def test_one_graph_reads_both_positions():
    """By default, both encoders read the same positions."""
    compare(LossModule(make_model("global_context", **SMALL, context={"positions": "instance"}), 0.1))


@pytest.mark.slow
def test_graphs_are_kept_for_later_trainings():
    """Nothing in the graphs prevents torch from storing them."""
    module = LossModule(make_model(**SMALL), 0.1)
    backend, graphs = counting("eager")
    CompiledLoss(module, backend)(prepared_batch(module.model.settings, [3, 2], 0))
    check_cacheable(graphs[0])


@pytest.mark.slow
def test_documents_and_sentences_without_context_are_two_graphs():
    """A model with a context encoder trains on both, separately or mixed."""
    module = LossModule(make_model("global_context", **SMALL), 0.1)
    backend, graphs = counting("eager")
    compiled = CompiledLoss(module, backend)
    for seed, counts in enumerate(BATCHES):
        for context in ("document", "none"):
            batch = prepared_batch(module.model.settings, counts, seed, context=context)
            assert_close(compiled(batch), module(batch))
    assert compiled.compiled is not None
    assert len(graphs) == 2


@pytest.mark.slow
@pytest.mark.parametrize("few_launches", [False, True])
def test_one_graph_in_mixed_precision(few_launches):
    """With the backward pass."""
    module = LossModule(make_model(**SMALL).train(), 0.1)
    module.few_launches = few_launches
    with torch.autocast("cpu", torch.bfloat16):
        compare(module, backend="aot_eager", tolerance=0.05)


def test_a_batch_of_one_token_is_computed_plainly():
    module = LossModule(make_model(**SMALL), 0.1)
    compiled = CompiledLoss(module, counting("eager")[0])
    empty = np.array([BOS, EOS])
    batch = make_batch(module.model.settings, [([empty], [empty])]).prepare("varlen")
    assert len(batch.tgt_inputs_N) == 1
    assert torch.equal(compiled(batch), module(batch))
    assert compiled.compiled is not None


def test_unlearned_positions_are_refused_in_graphs():
    module = LossModule(make_model(**SMALL, form={"learned_positions": 6}), 0.1)
    compiled = CompiledLoss(module, counting("eager")[0])
    for compute in (module, compiled):
        with pytest.raises(UserError, match="tokens, but the model has only 6 learned positions"):
            compute(prepared_batch(module.model.settings, [7, 3], 0))
    assert compiled.compiled is not None


def test_lack_of_memory_is_no_compiler_failure():
    module = LossModule(make_model(**SMALL), 0.1)
    compiled = CompiledLoss(module, lambda *_: pytest.fail("not reached"))

    def run_out(*_):
        raise torch.OutOfMemoryError("out of memory")

    compiled.compiled = run_out
    with pytest.raises(torch.OutOfMemoryError):
        compiled(prepared_batch(module.model.settings, [3], 0))
    assert compiled.compiled is run_out


def test_impossible_graphs_are_not_compiled(monkeypatch, caplog):
    caplog.set_level("INFO", "docmt.training.compiling")
    module = LossModule(make_model(**SMALL), 0.1)
    assert compiled_loss(module, "padded") is None
    assert "torch.compile" not in caplog.text
    monkeypatch.setattr(compiling, "find_spec", lambda _: None)
    assert compiled_loss(module, "varlen") is None
    assert "triton is not installed" in caplog.text
    monkeypatch.setattr(compiling, "find_spec", lambda name: name)
    assert compiled_loss(module, "varlen") is not None


@pytest.fixture
def train(study_files, tmp_path, monkeypatch):
    """Train as on a GPU, with `make` instead of `compiled_loss`. Returns the model and its history."""

    def train(name, make, **options):
        monkeypatch.setattr(trainer, "compiled_loss", make)
        return run_training(study_files, tmp_path / name, **options)

    return train


@pytest.mark.slow
def test_compiled_history_equals_the_plain_one(train, monkeypatch):
    """One graph trains, and one graph validates batches without entropies."""
    monkeypatch.setattr(trainer, "ENTROPY_BATCHES", 1)
    backend, graphs = counting("eager")
    options = {"model": SMALL | {"dropout": 0.0}, "training": {"max_steps": 6, "max_batch_tokens": 60}}
    _, plain = train("plain", lambda *_: None, **options)
    _, compiled = train("compiled", lambda module, _: CompiledLoss(module, backend), **options)
    assert len(graphs) == 2
    for name in plain.columns[plain.columns.str.match("train_loss|gradient_norm|dev_|entropy_")]:
        np.testing.assert_allclose(compiled[name], plain[name], rtol=1e-3)


@pytest.mark.slow
def test_a_compiled_training_resumes(train):
    def make(module, _):
        torch._dynamo.reset()
        return CompiledLoss(module, "eager")

    whole = train("whole", make, model=SMALL, training={"max_steps": 8})
    train("parts", make, model=SMALL, training={"max_steps": 4})
    assert_same_training(train("parts", make, model=SMALL, training={"max_steps": 8}), whole)


@pytest.mark.slow
def test_a_training_survives_its_compiler(train, caplog):
    def fail(*_):
        raise RuntimeError("no compiler\nmany lines")

    options = {"model": SMALL, "training": {"max_steps": 4}}
    plain = train("plain", lambda *_: None, **options)
    failing = train("failing", lambda module, _: CompiledLoss(module, fail), **options)
    assert_same_training(failing, plain)
    assert caplog.text.count("continues without torch.compile") == 1
    assert "many lines" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("n_good", [0, 3])
def test_a_training_survives_a_backward_pass_that_fails(train, caplog, n_good):
    """In the probe, and in an update."""
    calls = []

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, loss):
            return loss.view_as(loss)

        @staticmethod
        def backward(ctx, gradient):
            calls.append(1)
            if len(calls) > n_good:
                raise AssertionError("expected size 8==9, stride 1==1 at dim=0\nmore")
            return gradient

    def make(module, _):
        wrapper = CompiledLoss(module, "eager")
        plain = module.loss
        wrapper.compiled = lambda *arguments: Failing.apply(plain(*arguments))
        return wrapper

    options = {"model": SMALL | {"dropout": 0.0}, "training": {"max_steps": 4}}
    plain = train("plain", lambda *_: None, **options)
    failing = train("failing", make, **options)
    assert len(calls) == n_good + 1
    np.testing.assert_allclose(failing[1]["train_loss"], plain[1]["train_loss"], rtol=1e-5)
    np.testing.assert_allclose(failing[1]["gradient_norm"], plain[1]["gradient_norm"], rtol=1e-4)
    assert caplog.text.count("continues without torch.compile: expected size 8==9") == 1


@pytest.mark.slow
def test_compiling_can_be_turned_off(train):
    train("off", lambda *_: pytest.fail("not asked for"), training={"compile": "off", "max_steps": 2})
