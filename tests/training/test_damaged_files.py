"""One flipped bit or a cut end in anything that a training reads is found and named."""

import shutil

import pytest
from core_fixtures import Study, run_training

from docmt.errors import UserError
from docmt.models.model_file import load_model


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3] ^= 1
    path.write_bytes(bytes(data))


def cut_the_end(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 9 // 10])


DAMAGES = pytest.mark.parametrize("damage", [flip_a_bit, cut_the_end])


@pytest.fixture
def study(study_files, tmp_path):
    shutil.copytree(study_files.folder, tmp_path / "study")
    return Study(tmp_path / "study")


@DAMAGES
@pytest.mark.parametrize("name", ["vocabulary.txt", "instances/documents/manifest.json"])
def test_damaged_input_is_named(study, tmp_path, damage, name):
    damage(study.folder / name)
    with pytest.raises(UserError, match=name.rpartition("/")[2].replace(".", r"\.")):
        run_training(study, tmp_path, training={"max_steps": 2})
    assert not (tmp_path / "model.pt").exists()


@DAMAGES
def test_a_damaged_model_file_is_named(study, tmp_path, damage):
    run_training(study, tmp_path, training={"max_steps": 2})
    damage(tmp_path / "model.pt")
    with pytest.raises(UserError, match=r"model\.pt"):
        load_model(tmp_path / "model.pt")
