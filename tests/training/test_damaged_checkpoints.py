"""Checkpoints of finished and damaged trainings: which stay, which are skipped, and which weights are best."""

import errno
import hashlib
import io
import json
import logging
import shutil
from pathlib import Path
from unittest import mock

import pytest
import torch
from core_fixtures import assert_same_training, checkpoint_folder, interrupted, run_training, step_files

from docmt.errors import UserError
from docmt.files import read_json
from docmt.models.model_file import load_model
from docmt.training.checkpoints import CheckpointFolder


@pytest.fixture(scope="module")
def eight_updates(study_files, tmp_path_factory):
    """Folder of a training that ended after eight updates, for copies."""
    folder = tmp_path_factory.mktemp("eight")
    run_training(study_files, folder, training={"max_steps": 8})
    return folder


def test_reading_errors_are_no_damage(study_files, eight_updates, tmp_path, monkeypatch):
    """After an error of the disk or the network, the training would otherwise start over, and remove checkpoints."""
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    read_bytes = Path.read_bytes

    def fail(path):
        if path.name == NEWEST:
            raise OSError(errno.EIO, "Input/output error")
        return read_bytes(path)

    files = {path.name for path in checkpoint_folder(tmp_path).iterdir()}
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(UserError, match=r"step-000000008\.pt: cannot be read \(Input/output error\): run the same"):
        run_training(study_files, tmp_path, training={"max_steps": 8})
    assert {path.name for path in checkpoint_folder(tmp_path).iterdir()} >= {NEWEST, NOTE} & files


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_lack_of_memory_is_no_damage(study_files, eight_updates, tmp_path, monkeypatch, error):
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    monkeypatch.setattr(torch, "load", mock.Mock(side_effect=error))
    with pytest.raises(UserError, match=r"step-000000008\.pt: cannot be read \(out of memory\): run again with more"):
        run_training(study_files, tmp_path, training={"max_steps": 8})


def test_finished_trainings_keep_their_file(study_files, eight_updates, tmp_path):
    """A kill while it is replaced would destroy the only checkpoint."""
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    newest = checkpoint_folder(tmp_path) / NEWEST
    before = newest.stat()
    run_training(study_files, tmp_path, training={"max_steps": 8})
    assert (newest.stat().st_ino, newest.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def flipped(data):
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


def halved(data):
    return data[: len(data) // 2]


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


NEWEST, NOTE = "step-000000008.pt", "step-000000008.json"
SKIPPED = "step-000000008.pt: skipped, because it is damaged or incomplete"
RESTORED = "best-000000008.pt: restored from"


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        (NEWEST, flipped, SKIPPED),
        (NEWEST, halved, SKIPPED),
        (NOTE, lambda _: None, SKIPPED),
        ("best-*8.pt", halved, RESTORED),
        ("*.pt", flipped, "step-000000006.pt: skipped, because it is damaged or incomplete"),  # all: it starts over
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (NEWEST, lambda _: b"", SKIPPED),
                (NEWEST, lambda _: saved({"weights": {}}), SKIPPED),
                (NOTE, lambda _: b"[]", SKIPPED),
                (NOTE, lambda _: b'{"sha256": 1}', SKIPPED),
                ("best-*8.pt", lambda _: None, RESTORED),
                ("best-*8.pt", lambda _: saved({"embedding.weight": torch.zeros(3)}), RESTORED),
                ("best-*8.pt", lambda _: saved([1]), RESTORED),
                ("best-*.pt", halved, RESTORED),
            )
        ),
    ],
)
def test_a_damaged_checkpoint_gives_way_to_one_before(
    study_files, eight_updates, tmp_path, whole, caplog, name, damage, message
):
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    for path in list(checkpoint_folder(tmp_path).glob(name)):
        content = damage(path.read_bytes())
        path.unlink() if content is None else path.write_bytes(content)
        if content and path.suffix == ".pt" and damage not in (flipped, halved):  # of another file, with its note
            note = read_json(path.with_suffix(".json")) | {"sha256": hashlib.sha256(content).hexdigest()}
            path.with_suffix(".json").write_text(json.dumps(note))
    assert_same_training(run_training(study_files, tmp_path), whole)
    assert message in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("n_kept", [0, 1, 2])
def test_finished_trainings_keep_some_checkpoints(study_files, eight_updates, tmp_path, whole, whole_file, n_kept):
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    assert_same_training(run_training(study_files, tmp_path, keep_checkpoints=n_kept), whole)
    assert step_files(tmp_path) == ["step-000000010.pt", "step-000000012.pt"][2 - n_kept :]
    assert len([*checkpoint_folder(tmp_path).glob("best-*.pt")]) == n_kept
    assert_same_training(run_training(study_files, tmp_path, keep_checkpoints=n_kept), whole)
    assert (tmp_path / "model.pt").read_bytes() == whole_file.read_bytes()


@pytest.mark.slow
def test_pruned_training_continues_as_if_longer(study_files, tmp_path, whole, caplog):
    caplog.set_level(logging.INFO)
    run_training(study_files, tmp_path, training={"max_steps": 8}, keep_checkpoints=1)
    other = checkpoint_folder(tmp_path) / "step-mine.pt"
    other.write_text("of the user")
    assert_same_training(run_training(study_files, tmp_path, keep_checkpoints=1), whole)
    assert "resumed after update 8" in caplog.text
    assert other.exists()


def test_unfinished_files_are_removed(study_files, eight_updates, tmp_path, whole):
    """A kill while a checkpoint is written leaves a folder as large as the checkpoint."""
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    unfinished = checkpoint_folder(tmp_path) / ".step-000000010.pt.a1b2c3d4"
    unfinished.mkdir()
    (unfinished / "step-000000010.pt").write_bytes(b"half")
    foreign = checkpoint_folder(tmp_path) / ".notes.pt.txt"
    foreign.touch()
    assert_same_training(run_training(study_files, tmp_path), whole)
    assert not unfinished.exists()
    assert foreign.exists()


def damage_best(folder, *steps):
    for step in steps:
        path = folder / f"best-{step:09d}.pt"
        path.write_bytes(flipped(path.read_bytes()))


def test_newest_state_resumes_without_best_weights(study_files, tmp_path, whole, caplog):
    with interrupted(6):
        run_training(study_files, tmp_path)
    folder = checkpoint_folder(tmp_path)
    (folder / "step-000000004.pt").unlink()
    damage_best(folder, 4)
    assert_same_training(run_training(study_files, tmp_path), whole)
    (line,) = [message for message in caplog.messages if "all checkpoints have lost" in message]
    assert line.endswith("resuming after update 6, with the best weights of the next validation")


def test_a_finished_training_without_best_weights_validates_again(study_files, eight_updates, tmp_path):
    shutil.copytree(eight_updates / "checkpoints", tmp_path / "checkpoints")
    folder = checkpoint_folder(tmp_path)
    content = torch.load(folder / NEWEST, weights_only=True)
    content["state"] |= {"best_step": 4, "best_loss": 0.1}
    CheckpointFolder(folder).save(8, content | {"best_steps": [4, 4]})
    damage_best(folder, 4)
    (folder / "step-000000006.pt").unlink()
    (folder / "step-000000006.json").unlink()
    trained, history = run_training(study_files, tmp_path, training={"max_steps": 8})
    expected = load_model(eight_updates / "model.pt")
    assert torch.equal(trained.model.embedding.weight, expected.model.embedding.weight)
    assert history["step"].max() == 8


@pytest.mark.parametrize(("left", "best", "loss"), [((4, 8), 8, 2.0), ((4,), 4, 3.0), ((), None, None)])
def test_the_best_weights_that_are_left(tmp_path, left, best, loss):
    folder = CheckpointFolder(tmp_path)
    history = [{"step": 4, "dev_loss": 3.0}, {"step": 6}, {"step": 8, "dev_loss": 2.0}, {"step": 12, "dev_loss": 1.0}]
    before_end = {"best_step": 12, "best_loss": 1.0, "validations_without_gain": 1, "validated_step": 12, "history": []}
    state = before_end | {"step": 14, "history": history, "before_end": before_end}
    folder.save(14, {"best_steps": [12, 12], "state": state, "weights": {}})
    for step in left:
        folder.save_best(step, {"weight": torch.zeros(1)})
    content = folder.load_newest()
    assert content["best_steps"] == [best, best]
    for validated in (content["state"], content["state"]["before_end"]):
        assert (validated["best_step"], validated["best_loss"]) == (best, loss)
        assert validated["validated_step"] == (-1 if best is None else 12)


def test_pruning_keeps_two_checkpoints_and_their_best_weights(tmp_path):
    folder = CheckpointFolder(tmp_path)
    for step, best in ((10, 10), (20, 10), (30, 10), (40, 40), (50, 40), (60, 40)):
        if best == step:
            folder.save_best(step, {"weight": torch.tensor(step)})
        folder.save(step, {"best_steps": [best, best]})
        names = {path.name.split(".")[0] for path in tmp_path.iterdir()}
        steps = sorted(name for name in names if name.startswith("step"))
        assert steps == [f"step-{n:09d}" for n in (step - 10, step) if n > 0]
        bests = {name for name in names if name.startswith("best")}
        assert f"best-{best:09d}" in bests
        assert (f"best-{10:09d}" in bests) == (step <= 40)
        assert folder.load_newest()["best_steps"] == [best, best]
        assert int(folder.load_best(best)["weight"]) == best
    assert not list(tmp_path.glob(".*"))
