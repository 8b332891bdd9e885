"""Background work during updates: losses that are read later, and checkpoints that a thread writes."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch
from core_fixtures import RECIPE, assert_same_training, model_settings, run_training, train_arguments

from docmt.errors import UserError
from docmt.training.agreement import Interrupted, Measurement, MeasurementQueue, StopSignals, updates_between_flushes
from docmt.training.checkpoints import BackgroundWriter, CheckpointFolder, snapshot
from docmt.training.loss import LossModule
from docmt.training.progress import Session, TrainingState
from docmt.training.trainer import Trainer


def checkpoint_steps(folder):
    return sorted(int(path.stem.split("-")[1]) for path in (folder / "checkpoints").glob("*/step-*.json"))


# Losses


@pytest.mark.parametrize(("has_scaler", "n_tolerated"), [(True, 32), (False, 0)])
def test_only_scalers_skip_overflows(has_scaler, n_tolerated):
    """The norm in the history is from the last update that was not skipped."""
    fabric = SimpleNamespace(world_size=1, is_global_zero=True)
    queue = MeasurementQueue(fabric, StopSignals(fabric), has_scaler=has_scaler)
    state = TrainingState(sessions=[Session(0)])

    def add(norm, step=7):
        loss = torch.tensor(2.0, dtype=torch.float64)
        queue.add(Measurement(step, 0, loss, torch.tensor(norm), 1e-3, labels=1, tokens=2, seconds=0.1))
        queue.flush(state, is_time_to_save=False)

    for _ in range(2):
        add(1.5)
        for _ in range(n_tolerated):
            add(torch.inf)
        assert queue.norm == 1.5
    with pytest.raises(UserError, match="gradient norm inf at update 9"):
        add(torch.inf, step=9)
    assert state.tokens == 4 * (1 + n_tolerated)


@pytest.mark.parametrize("update", [5, 7, 8])
def test_nan_loss_is_found_before_saving(study_files, tmp_path, monkeypatch, update):
    forward = LossModule.forward

    def break_down(module, batch):
        is_broken = bool(trainers) and trainers[0].state.step == update - 1
        return forward(module, batch) * (float("nan") if is_broken else 1.0)

    trainers, train = [], Trainer._train

    def note(trainer):
        trainers.append(trainer)
        train(trainer)

    monkeypatch.setattr(LossModule, "forward", break_down)
    monkeypatch.setattr(Trainer, "_train", note)
    recipe = {"log_every_steps": 100, "validate_every_steps": 100}
    with pytest.raises(UserError, match=f"loss nan, gradient norm nan at update {update}, learning rate 0.00"):
        run_training(study_files, tmp_path, training=recipe, checkpoint_every_steps=4)
    assert checkpoint_steps(tmp_path) == [4]
    checkpoint = CheckpointFolder(trainers[0].checkpoints.folder).load_newest()
    assert all(tensor.isfinite().all() for tensor in checkpoint["weights"].values())


def test_several_processes_agree_every_five_seconds():
    updates = {0.0: 100, 0.001: 100, 0.5: 10, 2.0: 2, 60.0: 1}
    assert {seconds: updates_between_flushes(seconds) for seconds in updates} == updates


def test_second_signal_sends_no_message(caplog):
    class Echo(logging.Handler):
        """Sends the signal again while the first message is written, as a launcher and its cluster can do."""

        def emit(self, record):
            if record.levelno == logging.WARNING:
                log.removeHandler(self)
                os.kill(os.getpid(), signal.SIGTERM)

    log = logging.getLogger("docmt.training.agreement")
    log.addHandler(Echo())
    with StopSignals(SimpleNamespace(world_size=1)) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        stop.poll()
        with pytest.raises(Interrupted):
            stop.raise_if_stopped()
    assert len(caplog.records) == 1


# Checkpoints


def test_a_copy_does_not_change():
    state = {"a": [torch.ones(2), {"b": 1}], "c": torch.zeros(1)}
    copy = snapshot(state)
    state["a"][0].add_(1)
    state["a"][1]["b"] = 2
    state["c"].add_(5)
    assert copy["a"][0].tolist() == [1, 1]
    assert copy["a"][1] == {"b": 1}
    assert copy["c"].tolist() == [0]


def test_one_job_and_one_error():
    writer, done, go = BackgroundWriter(), [], threading.Event()

    def job(number):
        go.wait(10)
        done.append(number)
        if number == 2:
            raise UserError("full")

    writer.submit(job, 1)
    writer.check()
    assert done == []
    go.set()
    writer.submit(job, 2)
    with pytest.raises(UserError, match="full"):
        writer.submit(job, 3)
    writer.check()
    writer.submit(job, 4)
    writer.wait()
    assert done == [1, 2, 4]
    writer.close()


@pytest.mark.slow
def test_minutes_between_checkpoints(study_files, tmp_path, monkeypatch):
    """The trainer's clock advances by four minutes per update."""
    saved, save, update = [], CheckpointFolder.save, Trainer._step
    clock = [0.0]

    def note(folder, step, state):
        saved.append(step)
        save(folder, step, state)

    def slow(trainer, prepared):
        update(trainer, prepared)
        clock[0] += 240.0

    monkeypatch.setattr(CheckpointFolder, "save", note)
    monkeypatch.setattr(Trainer, "_step", slow)
    monkeypatch.setattr("docmt.training.progress.monotonic", lambda: clock[0])
    options = {"training": {"validate_every_steps": 7, "max_steps": 13}, "checkpoint_every_steps": None}
    result = run_training(study_files, tmp_path / "minutes", checkpoint_every_minutes=10, **options)
    assert saved == [3, 6, 7, 10, 13]  # the last one with its validation
    monkeypatch.undo()
    never = run_training(study_files, tmp_path / "never", checkpoint_every_minutes=1e6, **options)
    assert_same_training(result, never)


def test_updates_continue_during_a_checkpoint(study_files, tmp_path, whole, monkeypatch):
    save, update = CheckpointFolder.save, Trainer._step
    running = threading.Event()
    during = []

    def slow(folder, step, state):
        running.set()
        time.sleep(0.3)
        save(folder, step, state)
        running.clear()

    def note(trainer, prepared):
        if running.is_set():
            during.append(trainer.state.step)
        if trainer.state.step == 8:
            os.kill(os.getpid(), signal.SIGTERM)
        update(trainer, prepared)

    monkeypatch.setattr(CheckpointFolder, "save", slow)
    monkeypatch.setattr(Trainer, "_step", note)
    with pytest.raises(Interrupted):
        run_training(study_files, tmp_path / "cut")
    assert during
    assert checkpoint_steps(tmp_path / "cut")[-1] == 9
    monkeypatch.undo()
    assert_same_training(run_training(study_files, tmp_path / "cut"), whole)


KILLED = """
import json, os, signal, sys, threading
import torch
import docmt.training.run
from docmt.cli.main import main
from docmt.training import checkpoints
save, write_json = torch.save, checkpoints.write_json

def die(content, path):
    if "step-000000006" in str(path):
        assert threading.current_thread() is not threading.main_thread()
        if where == "half":
            save(content, path)
            os.truncate(path, os.path.getsize(path) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    save(content, path)

def die_before_note(path, *arguments, **options):
    if where == "note" and "step-000000006" in str(path):
        os.kill(os.getpid(), signal.SIGKILL)
    write_json(path, *arguments, **options)

checkpoints.write_json = die_before_note
for where, arguments in json.loads(sys.argv[1]).items():
    child = os.fork()  # importing torch for each would take longer than all trainings
    if child == 0:
        if where != "note":
            torch.save = die
        os._exit(main(arguments))
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, where
"""


@pytest.mark.slow
def test_killed_while_writing_leaves_the_checkpoint_before(study_files, tmp_path, whole):
    """At the start of the file, in the middle, and before the note that marks it as complete."""
    settings = {"model": model_settings(dropout=0.1).model_dump(), "training": RECIPE}
    folders = {where: tmp_path / where for where in ("start", "half", "note")}
    arguments = {where: train_arguments(study_files, folder, settings) for where, folder in folders.items()}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, json.dumps(arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for folder in folders.values():
        assert checkpoint_steps(folder) == [2, 4]
        assert_same_training(run_training(study_files, folder), whole)
