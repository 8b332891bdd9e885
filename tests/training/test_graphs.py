"""Recorded and repeated updates, with recorded operators on a CPU instead of a CUDA graph."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from core_fixtures import assert_same_training, run_training
from plain_attention import take_plain_kernels
from recorded_operators import OperatorRecorder

from docmt.files import read_json
from docmt.models.model_file import load_model
from docmt.models.systems import transformer
from docmt.training import filling, graphs
from docmt.training.graphs import UpdateGraphs
from docmt.training.trainer import Trainer

TESTS = Path(__file__).parents[1]
SMALL = {"encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
STEPS = {"compile": "off", "max_batch_tokens": 40, "max_steps": 14, "warmup_steps": 5, "validate_every_steps": 100}
MEASURED = "train_loss|gradient_norm|dev_|learning_rate"


def imitate_gpu(monkeypatch):
    """Kernels of a GPU, batches of few shapes, and recorded operators as graphs."""
    monkeypatch.setattr(transformer, "kernel_for", lambda *_: "varlen")
    monkeypatch.setattr(graphs, "CudaRecorder", OperatorRecorder)
    monkeypatch.setattr(OperatorRecorder, "n_repeated", 0)
    take_plain_kernels(monkeypatch, [])
    for name, step in {"TOKENS": 64, "GROUPS": 16, "KEYS": 128, "ROWS": 32}.items():
        monkeypatch.setattr(filling, name, step)


@pytest.fixture
def train(study_files, tmp_path, monkeypatch):
    """Train as on a GPU, with graphs unless they are turned off. Returns the model and its history."""
    imitate_gpu(monkeypatch)

    def train(name, *, graphs="auto", model=(), training=(), **options):
        model, training = SMALL | dict(model), STEPS | dict(training)
        changes = {"model": model, "training": training, "checkpoint_every_steps": None} | options
        return run_training(study_files, tmp_path / name, graphs=graphs, **changes)

    train.folder = tmp_path
    return train


def assert_repeated_equals_computed(train, monkeypatch, *, least, name="", **options):
    """Recorded updates change weights in the same way as plain updates, bit by bit."""
    repeated = train(f"{name} repeated", **options)
    assert OperatorRecorder.n_repeated >= least
    assert read_json(train.folder / f"{name} repeated/model.job.json")["graphs"] == "auto"
    with monkeypatch.context() as patch:
        patch.setattr(graphs, "MAX_GRAPHS", 0)
        patch.setattr(OperatorRecorder, "record", None)
        computed = train(f"{name} computed", **options)
    assert_same_training(repeated, computed)


CASES = {
    "sentence_transformer": {},
    "g_transformer": {},
    "rst_mix": {"training": {"drop_rst": 0.5}},
    "document_transformer": {},
    "concatenation": {},
    "lstm_transformer": {},
    "flat_transformer": {},
    "hybrid_context": {},
    "global_context": {"training": {"tasks": ["documents", "sentences"]}},
    "doct": {},
    "han": {},
    "san": {},
    "cadec": {},
}
QUICK = ("sentence_transformer",)


@pytest.mark.parametrize(
    "architecture", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]
)
def test_repeated_updates_equal_computed_ones(architecture, train, monkeypatch):
    """With dropout, word dropout, dropped trees, clipping, and changing learning rates."""
    options = CASES[architecture]
    training = {"max_gradient_norm": 0.5} | options.get("training", {})
    assert_repeated_equals_computed(
        train, monkeypatch, least=8, architecture=architecture, model={"dropout": 0.2}, training=training
    )


@pytest.mark.slow
def test_repeated_updates_with_accumulation(train, monkeypatch):
    training = {"accumulation_steps": 2, "max_batch_tokens": 30}
    assert_repeated_equals_computed(train, monkeypatch, least=6, training=training)


PROCESS = """
import pathlib, pytest, sys
import core_fixtures, test_graphs
study, folder, max_graphs = sys.argv[1:]
patch = pytest.MonkeyPatch()
test_graphs.imitate_gpu(patch)
for module, name in ((core_fixtures, "load_model"), (core_fixtures.pd, "read_csv")):
    patch.setattr(module, name, lambda _: None)  # only the first process writes files
patch.setattr(test_graphs.graphs, "MAX_GRAPHS", int(max_graphs))
options = {"model": test_graphs.SMALL | {"dropout": 0.2}, "training": test_graphs.STEPS | {"max_gradient_norm": 0.5}}
options["checkpoint_every_steps"] = None
study, folder = core_fixtures.Study(pathlib.Path(study)), pathlib.Path(folder)
core_fixtures.run_training(study, folder, graphs="auto", devices=2, **options)
print(test_graphs.OperatorRecorder.n_repeated)
"""


def train_on_two(study, folder, max_graphs):
    """Train with two processes. Returns the model, its history, and the numbers of repeated parts of updates."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    paths = os.pathsep.join(map(str, (TESTS, TESTS / "training", TESTS.parent)))
    environment = os.environ | {"PYTHONPATH": paths, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command = [sys.executable, "-c", PROCESS, str(study.folder), str(folder), str(max_graphs)]
    processes = [
        subprocess.Popen(command, env=environment | {"LOCAL_RANK": rank}, stdout=subprocess.PIPE, text=True)
        for rank in "01"
    ]
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return load_model(folder / "model.pt"), pd.read_csv(folder / "history.csv"), list(map(int, outputs))


@pytest.mark.slow
def test_two_processes_exchange_gradients_between_graphs(study_files, tmp_path):
    """Every update has two recordings. The processes record in their own time, because their shares differ."""
    *repeated, counts = train_on_two(study_files, tmp_path / "repeated", 24)
    *computed, _ = train_on_two(study_files, tmp_path / "computed", 0)
    assert min(counts) >= 8
    assert_same_training(repeated, computed)


@pytest.mark.slow
@pytest.mark.parametrize("number", ["n_labels", "weight", "rates"])
def test_numbers_of_the_cpu_are_noticed(number, train, monkeypatch):
    """A recording keeps them. Weights change here, because they are always 1 on a single device."""
    compute = Trainer.compute

    def compute_with_float(self, update, rates):
        if number == "rates":
            rates = [float(rate) for rate in rates]
        else:
            update = graphs.replace(update, **{number: float(getattr(update, number))})
        return compute(self, update, rates)

    call = UpdateGraphs.__call__

    def call_with_weight(self, update, rates):
        return call(self, graphs.replace(update, weight=1 + update.index.position / 10), rates)

    monkeypatch.setattr(UpdateGraphs, "__call__", call_with_weight)
    assert_repeated_equals_computed(train, monkeypatch, least=8)
    monkeypatch.setattr(Trainer, "compute", compute_with_float)
    with pytest.raises(AssertionError):
        assert_repeated_equals_computed(train, monkeypatch, least=8, name="damaged")


@pytest.mark.slow
def test_graphs_change_a_training_only_by_rounding(train):
    _, history = train("graphs")
    _, expected = train("off", graphs="off")
    for name in expected.columns[expected.columns.str.match(MEASURED)]:
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["auto", pytest.param("off", marks=pytest.mark.slow)])
def test_checkpoints_of_either_path_resume_in_the_other(first, train):
    second = {"auto": "off", "off": "auto"}[first]
    _, expected = train("whole", graphs=first)
    train("parts", graphs=first, training={"max_steps": 7})
    _, history = train("parts", graphs=second)
    assert len(list((train.folder / "parts/checkpoints").iterdir())) == 1
    for name in expected.columns[expected.columns.str.match(MEASURED)]:
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-3)


@pytest.mark.slow
def test_a_training_with_graphs_resumes(train):
    """Updates after resuming are recorded again."""
    whole = train("whole", model={"dropout": 0.2})
    train("parts", model={"dropout": 0.2}, training={"max_steps": 7})
    assert_same_training(train("parts", model={"dropout": 0.2}), whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "event", ["record", *(pytest.param(name, marks=pytest.mark.slow) for name in ("run", "repeat"))]
)
def test_a_training_survives_failing_graphs(event, train, monkeypatch, caplog):
    """The training continues as without graphs, from the same update."""
    if event == "repeat":
        monkeypatch.setattr("recorded_operators.Recorded.repeat", fail)
    else:
        monkeypatch.setattr(OperatorRecorder, event, fail)
    _, history = train("failing")
    _, expected = train("off", graphs="off")
    for name in expected.columns[expected.columns.str.match(MEASURED)]:
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-3)
    assert caplog.text.count("training continues without CUDA graphs: no graph") == 1
    assert "many lines" not in caplog.text


def fail(*_):
    raise torch.OutOfMemoryError("no graph\nmany lines")


def test_impossible_graphs_are_not_recorded(study_files, tmp_path):
    """A CPU has padded attention."""
    options = {"model": SMALL, "training": {"max_steps": 2}}
    plain = run_training(study_files, tmp_path / "plain", **options)
    assert_same_training(run_training(study_files, tmp_path / "graphs", graphs="auto", **options), plain)
    assert read_json(tmp_path / "graphs/model.job.json")["graphs"] == "off"
