"""Killed and resumed trainings equal uninterrupted ones, bit by bit."""

import itertools
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from architectures import slow_but
from core_fixtures import (
    RECIPE,
    assert_same_training,
    during_update,
    interrupted,
    model_settings,
    run_training,
    step_files,
    train_arguments,
)
from lightning_fabric.plugins.precision.precision import Precision

from docmt.files import read_json
from docmt.instances.storage import load_instances
from docmt.models.model_file import load_model, save_model
from docmt.training.agreement import Interrupted
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.loss import LossModule
from docmt.training.trainer import Trainer
from docmt.training.updates import instance_batches


@pytest.mark.parametrize(
    ("step", "number"),
    [
        pytest.param(1, signal.SIGTERM, marks=pytest.mark.slow),
        (5, signal.SIGUSR1),
        pytest.param(8, signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_signal_saves_and_training_resumes(study_files, tmp_path, whole, whole_file, number, step):
    handler = signal.getsignal(number)
    with interrupted(step, number):
        run_training(study_files, tmp_path)
    assert signal.getsignal(number) is handler
    assert step_files(tmp_path)[-1] == f"step-{step:09d}.pt"
    assert not (tmp_path / "model.pt").exists()
    assert_same_training(run_training(study_files, tmp_path), whole)
    assert (tmp_path / "model.pt").read_bytes() == whole_file.read_bytes()


@pytest.mark.slow
def test_equal_weights_give_equal_bytes(study_files, tmp_path, whole_file):
    run_training(study_files, tmp_path, training={"max_steps": 5})
    assert (tmp_path / "model.pt").read_bytes() != whole_file.read_bytes()
    for _ in range(2):
        run_training(study_files, tmp_path)
        assert (tmp_path / "model.pt").read_bytes() == whole_file.read_bytes()
        (tmp_path / "model.pt").unlink()


@pytest.mark.slow
def test_remade_base_model_resumes_its_finetunings(study_files, tmp_path, whole_file, caplog):
    """Even another docmt version in the file of the base model does not restart the training."""
    base, tuned = tmp_path / "base.pt", tmp_path / "tuned"
    shutil.copy(whole_file, base)
    run_training(study_files, tuned, init=base, training={"max_steps": 3})
    before = (tuned / "model.pt").read_bytes()
    trained = load_model(base)
    save_model(base, replace(trained, provenance=trained.provenance | {"docmt": "99.0"}))
    assert base.read_bytes() != whole_file.read_bytes()
    caplog.set_level(logging.INFO)
    run_training(study_files, tuned, init=base, training={"max_steps": 3})
    assert "resumed after update 3" in caplog.text
    assert (tuned / "model.pt").read_bytes() == before
    weights = trained.model.state_dict()
    weights["embedding.weight"][-1] += 1e-3
    save_model(base, trained)
    run_training(study_files, tuned, init=base, training={"max_steps": 3})
    assert len([*(tuned / "checkpoints").iterdir()]) == 2


@pytest.mark.slow
def test_dropped_trees_are_drawn_again_after_a_resume(study_files, tmp_path):
    recipe = {"architecture": "rst_mix", "training": {"drop_rst": 0.5}}
    uninterrupted = run_training(study_files, tmp_path / "whole", **recipe)
    with interrupted(5):
        run_training(study_files, tmp_path / "stopped", **recipe)
    assert_same_training(run_training(study_files, tmp_path / "stopped", **recipe), uninterrupted)
    with_trees, _ = run_training(study_files, tmp_path / "always", architecture="rst_mix")
    assert not torch.equal(with_trees.model.embedding.weight, uninterrupted[0].model.embedding.weight)


@pytest.mark.slow
@pytest.mark.parametrize("step", [8, 12])
def test_a_signal_does_not_wait_for_a_validation(study_files, tmp_path, whole, monkeypatch, step):
    """It interrupts a validation, which is repeated after resuming, including at the end of the training."""
    validate = LossModule.validate
    validated = []

    def validate_and_stop(module, *arguments):
        validated.append(arguments)
        if len(validated) == n_batches * (step // 4 - 1) + 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return validate(module, *arguments)

    tokens = load_instances(study_files.instances()).n_tokens()
    n_batches = len(instance_batches(np.arange(len(tokens)), tokens, RECIPE["max_batch_tokens"]))
    assert n_batches > 1
    monkeypatch.setattr(LossModule, "validate", validate_and_stop)
    with pytest.raises(Interrupted):
        run_training(study_files, tmp_path)
    assert len(validated) == n_batches * (step // 4 - 1) + 1
    assert step_files(tmp_path)[-1] == f"step-{step:09d}.pt"
    monkeypatch.undo()
    assert_same_training(run_training(study_files, tmp_path), whole)


def test_late_signal_does_not_matter(study_files, tmp_path, whole, monkeypatch):
    save = CheckpointFolder.save

    def save_and_signal(folder, step, state):
        save(folder, step, state)
        if step == 12:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(CheckpointFolder, "save", save_and_signal)
    assert_same_training(run_training(study_files, tmp_path), whole)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [("float32", "bfloat16"), ("bfloat16", "float32")])
def test_the_fastest_precision_is_measured_once(study_files, tmp_path, monkeypatch, first, then):
    """A busy machine at the start of a later session does not change a training's precision."""
    monkeypatch.setattr("docmt.training.devices.cpu_has_bfloat16", lambda: True)

    def train(folder, fastest):
        monkeypatch.setattr("docmt.training.devices.fastest_precision", lambda _: fastest)
        return run_training(study_files, folder, training={"precision": "fastest"})

    expected, other = train(tmp_path / "whole", first), train(tmp_path / "other", then)
    assert expected[0].provenance["precision"] != other[0].provenance["precision"]
    with interrupted(5):
        train(tmp_path / "stopped", first)
    resumed = train(tmp_path / "stopped", then)
    assert_same_training(resumed, expected)
    assert resumed[0].provenance["precision"] == expected[0].provenance["precision"]


@pytest.mark.slow
def test_float16_resumes_in_another_precision(study_files, tmp_path, whole, monkeypatch):
    with interrupted(5):
        run_training(study_files, tmp_path)
    scaler = torch.amp.GradScaler("cpu")
    monkeypatch.setattr(Precision, "load_state_dict", lambda _, state: scaler.load_state_dict(state))
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    assert_same_training(run_training(study_files, tmp_path), whole)


def test_an_unexpected_error_keeps_its_traceback(study_files, tmp_path):
    def crash():
        try:
            raise KeyError("cause")
        except KeyError:
            raise RuntimeError("effect")  # noqa: B904 - the context is what is tested

    with during_update(2, crash), pytest.raises(RuntimeError, match="effect") as error:
        run_training(study_files, tmp_path)
    assert error.traceback[-1].name == "crash"
    assert isinstance(error.value.__context__, KeyError)


@pytest.mark.slow
def test_many_interruptions_in_a_row(study_files, tmp_path, whole):
    for step in range(1, 12):
        with interrupted(step):
            run_training(study_files, tmp_path)
    assert_same_training(run_training(study_files, tmp_path), whole)
    sessions = read_json(tmp_path / "model.job.json")["sessions"]
    assert [session["from_update"] for session in sessions] == list(range(12))
    assert sum(session["seconds"] for session in sessions) == pytest.approx(
        pd.read_csv(tmp_path / "history.csv")["seconds"].iloc[-1], abs=0.01
    )


@pytest.mark.slow
def test_resumed_training_keeps_energy(study_files, tmp_path, monkeypatch):
    counter = itertools.count(0, 1000)
    monkeypatch.setattr("docmt.models.gpus._millijoules", lambda _: next(counter))
    with interrupted(5):
        run_training(study_files, tmp_path)
    run_training(study_files, tmp_path)
    sessions = read_json(tmp_path / "model.job.json")["sessions"]
    assert [session["joules"] for session in sessions] == [3, 4], "saved after updates 2, 4, 5; 6, 8, 10, 12"


# Limits


@pytest.mark.slow
def test_max_steps_can_be_changed(study_files, tmp_path, whole, caplog):
    caplog.set_level(logging.INFO)
    expected = run_training(study_files, tmp_path, training={"max_steps": 8})
    for steps in (12, 8, 12):  # the second one leaves checkpoints 10 and 12 alone
        result = run_training(study_files, tmp_path, training={"max_steps": steps})
        assert_same_training(result, whole if steps == 12 else expected)
    assert "resumed after update 8" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "first"),
    [
        *((0.1, 5), (0.3, 7), (0.5, 6), (1e-3, 5)),
        *(pytest.param(*row, marks=pytest.mark.slow) for row in ((0.1, 6), (0.3, 5))),
    ],
)
def test_raised_max_steps_equal_a_whole_training(study_files, tmp_path, rate, first):
    """The shorter training validated at its end, but the longer one does not. Patience and best weights forget it."""
    recipe = {"max_batch_tokens": 40, "validate_every_steps": None, "patience": 1, "learning_rate": rate}
    recipe |= {"log_every_steps": 1}
    whole = run_training(study_files, tmp_path / "whole", training=recipe | {"max_steps": 24})
    for steps in (first, first, first + 1, 24, 24):
        raised = run_training(study_files, tmp_path / "raised", training=recipe | {"max_steps": steps})
    assert_same_training(raised, whole)


@pytest.mark.slow
def test_finished_training_is_not_repeated(study_files, tmp_path, whole, monkeypatch):
    run_training(study_files, tmp_path)
    monkeypatch.setattr(Trainer, "_step", None)
    assert_same_training(run_training(study_files, tmp_path), whole)
    sessions = read_json(tmp_path / "model.job.json")["sessions"]
    assert [session["from_update"] for session in sessions] == [0, 12]
    assert sessions[0]["seconds"] > 0


@pytest.mark.parametrize(
    "change",
    [
        {"training": {"learning_rate": 1e-3}},
        *(
            pytest.param(change, marks=pytest.mark.slow)
            for change in ({"model": {"dropout": 0.2}}, {"seed": 2}, {"cutting": "sentences"})
        ),
    ],
)
def test_changed_settings_data_or_seed_never_resume(study_files, tmp_path, caplog, change):
    caplog.set_level(logging.INFO)
    run_training(study_files, tmp_path, training={"max_steps": 4})
    change["training"] = {"max_steps": 4} | change.get("training", {})
    run_training(study_files, tmp_path, **change)
    assert "resumed" not in caplog.text
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


# Damage


# The command, killed


def command(study, folder, recipe):
    model = model_settings("g_transformer", dropout=0.1).model_dump()
    settings = {"model": model, "training": RECIPE | recipe}
    return [sys.executable, "-m", "docmt.cli.main", *train_arguments(study, folder, settings)]


def run_until_killed(arguments, folder, number, wait):
    """Start the command, and send a signal some time after a new checkpoint. Returns its exit code."""

    def newest():
        return max((folder / "checkpoints").glob("*/step-*.json"), default=None)

    before = newest()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while process.poll() is None and newest() == before and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(wait)
    process.send_signal(number)
    _, messages = process.communicate(timeout=120)
    return process.returncode, messages


KILLS = [
    pytest.param((signal.SIGKILL, signal.SIGTERM), id="once each"),
    pytest.param((signal.SIGKILL,) * 5 + (signal.SIGTERM,) * 2, id="seven times", marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("signals", KILLS)
def test_random_kills_change_nothing(study_files, tmp_path, signals):
    recipe = {"max_steps": 60 * len(signals), "max_batch_tokens": 40}
    whole = run_training(study_files, tmp_path / "whole", training=recipe)
    killed = tmp_path / "killed"
    killed.mkdir()
    arguments = command(study_files, killed, recipe)
    generator = random.Random(5)
    for number in signals:
        code, messages = run_until_killed(arguments, killed, number, generator.uniform(0, 0.3))
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 128 + signal.SIGTERM), messages
        assert not (killed / "model.pt").exists()
        assert not (killed / "history.csv").exists()
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "resumed after update" in done.stderr
    assert_same_training((load_model(killed / "model.pt"), pd.read_csv(killed / "history.csv")), whole)


@pytest.mark.parametrize("step", slow_but((5,), (2, 5, 12)))
def test_a_crash_goes_back_to_the_newest_checkpoint(study_files, tmp_path, whole, step):
    with during_update(step, mock.Mock(side_effect=MemoryError)), pytest.raises(MemoryError):
        run_training(study_files, tmp_path)
    assert_same_training(run_training(study_files, tmp_path), whole)


@pytest.mark.slow
def test_a_signal_at_the_end_of_an_epoch(study_files, tmp_path):
    recipe = {"validate_every_steps": None, "max_epochs": 3, "max_steps": None, "max_batch_tokens": 70}
    expected = run_training(study_files, tmp_path / "whole", training=recipe)
    last_of_epoch = int(expected[1].loc[expected[1]["dev_loss"].notna(), "step"].iloc[0])
    with interrupted(last_of_epoch):
        run_training(study_files, tmp_path / "cut", training=recipe)
    assert_same_training(run_training(study_files, tmp_path / "cut", training=recipe), expected)
