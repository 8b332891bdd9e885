"""Checkpoints on a full disk, and best weights that are damaged while training runs."""

import itertools

import pytest
import torch
from core_fixtures import RECIPE, assert_same_training, run_training

from docmt.errors import UserError
from docmt.training.checkpoints import CheckpointFolder
from docmt.training.trainer import Trainer


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kib", [150, 195])
def test_a_full_disk_keeps_the_checkpoint_before(small_disk, kib):
    """On the larger disk, the checkpoint fits, and its note does not."""
    folder = CheckpointFolder(small_disk(kib))
    content = {"best_steps": [None, None], "weights": torch.arange(20_000)}  # 160 KB
    small = content | {"weights": torch.arange(2_000)}
    folder.save(1, small)
    before = names(folder.folder)

    def save_more_and_more():
        for size in range(20_000, 25_000, 100):
            folder.save(2, content | {"weights": torch.arange(size)})
            folder._remove("step-000000002")

    with pytest.raises(UserError, match=r"step-000000002\.(pt|json): cannot be written \(No space left"):
        save_more_and_more()
    assert names(folder.folder) == before
    assert torch.equal(folder.load_newest()["weights"], small["weights"])


def test_training_continues_after_a_full_disk(study_files, whole, small_disk, tmp_path, monkeypatch):
    disk = small_disk(1100)  # two checkpoints and two best weights fit beside each other, and little more
    ballast = disk / "ballast"
    update = Trainer._step

    def update_on_a_full_disk(trainer, groups):
        if trainer.state.step == 6:
            trainer.writer.wait()
            with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
                list(map(file.write, itertools.repeat(bytes(1 << 16))))
        update(trainer, groups)

    monkeypatch.setattr(Trainer, "_step", update_on_a_full_disk)
    with pytest.raises(UserError, match=r"step-000000008|best-000000008"):
        run_training(study_files, tmp_path / "full", checkpoints=disk)
    (folder,) = (path for path in disk.iterdir() if path.is_dir())
    assert "step-000000006.pt" in names(folder)
    assert not list(folder.glob(".*"))
    assert not (folder / "running.json").exists()
    monkeypatch.undo()
    ballast.unlink()
    assert_same_training(run_training(study_files, tmp_path / "full", checkpoints=disk), whole)


@pytest.mark.slow
def test_best_weights_damaged_at_the_very_end(study_files, whole, tmp_path, monkeypatch):
    train = Trainer._train

    def train_and_damage(trainer):
        train(trainer)
        (best,) = trainer.checkpoints.folder.glob(f"best-{trainer.state.best_step:09d}.pt")
        best.write_bytes(best.read_bytes()[:-100])

    monkeypatch.setattr(Trainer, "_train", train_and_damage)
    with pytest.raises(UserError, match=r"the best weights are damaged or missing: run the same command again"):
        run_training(study_files, tmp_path / "cut")
    assert not (tmp_path / "cut/model.pt").exists()
    monkeypatch.undo()
    assert_same_training(run_training(study_files, tmp_path / "cut"), whole)


@pytest.mark.slow
def test_diverged_training_keeps_its_checkpoint(study_files, tmp_path):
    recipe = {"learning_rate": 1e11, "warmup_steps": 0}
    ends = r"loss \S+, gradient norm \S+ at update (\d+), learning rate \S+: lower learning_rate"
    with pytest.raises(UserError, match=ends) as error:
        run_training(study_files, tmp_path, training=recipe, checkpoint_every_steps=1)
    assert not (tmp_path / "model.pt").exists()
    step = int(str(error.value).split("at update ")[1].split(",")[0])
    (folder,) = (tmp_path / "checkpoints").iterdir()
    checkpoint = CheckpointFolder(folder).load_newest()
    assert checkpoint["state"]["step"] == step - 1
    lower = run_training(study_files, tmp_path, training={"learning_rate": RECIPE["learning_rate"] / 3})
    assert lower[1]["dev_loss"].dropna().iloc[-1] < lower[1]["dev_loss"].dropna().iloc[0]
    assert "nan" not in str(checkpoint["state"]["history"])
