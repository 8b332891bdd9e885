"""Arrays and trees in a folder of instances: written, read, and refused if they do not match."""

from dataclasses import replace

import numpy as np
import pytest

from docmt.errors import UserError
from docmt.files import read_json
from docmt.instances.storage import ARRAYS, TREE_ARRAYS, load_instances, save_instances


def test_trees_come_back_whole(study_files, tmp_path):
    instance_set = load_instances(study_files.instances("trees"))
    save_instances(tmp_path / "again", instance_set)
    again = load_instances(tmp_path / "again")
    for name, dtype in TREE_ARRAYS.items():
        array = getattr(again.trees, name)
        assert array.dtype == dtype
        assert np.array_equal(array, getattr(instance_set.trees, name))
    assert read_json(tmp_path / "again/manifest.json")["sha256"] == instance_set.manifest["sha256"]


def test_instances_without_trees_have_no_such_files(study_files):
    folder = study_files.instances("documents")
    assert load_instances(folder).trees is None
    assert not [name for name in TREE_ARRAYS if (folder / f"{name}.npy").exists()]


@pytest.mark.parametrize("name", [*ARRAYS, *TREE_ARRAYS])
def test_a_damaged_or_missing_array_is_named(study_files, tmp_path, name):
    save_instances(tmp_path / "trees", load_instances(study_files.instances("trees")))
    path = tmp_path / "trees" / f"{name}.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{name}\.npy: checksum differs.*build the instances again"):
        load_instances(tmp_path / "trees")
    path.unlink()
    with pytest.raises(UserError, match=rf"{name}\.npy: .*build the instances again"):
        load_instances(tmp_path / "trees")


def shifted(array, index, by):
    changed = np.array(array)
    changed[index] += by
    return changed


COVER = "EDUs do not cover the source sentences"
MISTAKES = {
    "an EDU that ends too early": ("edu_offsets", lambda a: shifted(a, -1, -1), COVER),
    "a sentence that begins inside an EDU": ("edu_offsets", lambda a: shifted(a, 0, 1), COVER),
    "offsets that fall": ("edu_offsets", lambda a: a[::-1], COVER),
    "EDUs of another sentence": ("sentence_edus", lambda a: shifted(a, 1, 1), COVER),
    "a sentence too few": ("sentence_edus", lambda a: a[:-1], COVER),
    "a head too few": ("edu_heads", lambda a: a[:-1], COVER),
    "sentence heads of other sentences": ("sentence_heads", lambda a: a[:-1], COVER),
    "a head that is its own": ("edu_heads", lambda a: np.r_[0, a[1:]], "the head of EDU 0 is 0"),
    "a head in another instance": (
        "edu_heads",
        lambda a: np.r_[len(a) - 1, a[1:]],
        "head of EDU 0 is .* the same instance",
    ),
    "a head beyond the last": ("edu_heads", lambda a: np.r_[a[:-1], len(a)], "the head of EDU"),
    "a head that no code stands for": ("sentence_heads", lambda a: np.r_[-2, a[1:]], "of sentence 0 is -2"),
    "a sentence head in another instance": ("sentence_heads", lambda a: np.r_[a[:-1], 0], "head of sentence .* is 0"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_misfit_trees_are_one_line(study_files, tmp_path, name):
    array, change, message = MISTAKES[name]
    instance_set = load_instances(study_files.instances("trees"))
    trees = replace(instance_set.trees, **{array: change(getattr(instance_set.trees, array))})
    save_instances(tmp_path / "trees", replace(instance_set, trees=trees))
    with pytest.raises(UserError, match=message) as caught:
        load_instances(tmp_path / "trees")
    assert "\n" not in str(caught.value)
    assert "with trees again" in str(caught.value)


def swapped(array):
    changed = np.array(array)
    changed[[1, 2]] = changed[[2, 1]]
    return changed


WRONG_NUMBERS = {
    "a negative token": ("src_tokens", lambda a: shifted(a, 5, -1000), r"src_tokens\.npy: -\d+ is not the number"),
    "the least number": (
        "tgt_tokens",
        lambda a: np.r_[a[:-1], -(1 << 31)],
        "-2147483648 is not the number of a symbol",
    ),
    "a token of others": ("tgt_tokens", lambda a: np.r_[a[:-1], 1 << 20], "1048576 is not the number of a symbol"),
    "the first free number": ("src_tokens", lambda a: np.r_[300, a[1:]], "300 is not the number of a symbol"),
    "a document beyond": ("documents", lambda a: shifted(a, -1, 1000), r"documents\.npy: \d+ is not .* document"),
    "a negative document": ("documents", lambda a: np.r_[-1, a[1:]], "-1 is not the number of a document"),
    "descending sentences": ("src_offsets", swapped, r"src_offsets\.npy: does not ascend"),
    "descending instances": ("instances", swapped, r"instances\.npy: does not ascend"),
    "an empty sentence": ("tgt_offsets", lambda a: np.r_[0, 0, a[2:]], r"tgt_offsets\.npy: does not ascend"),
    "an instance without sentences": ("instances", lambda a: np.r_[0, 0, a[2:]], "does not ascend from 0"),
    "text before the first": ("src_offsets", lambda a: np.r_[1, a[1:]], "does not ascend from 0"),
    "a negative offset": ("tgt_offsets", lambda a: np.r_[0, -4, a[2:]], "does not ascend from 0"),
}


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_wrong_numbers_inside_arrays_are_refused(study_files, tmp_path, name):
    array, change, message = WRONG_NUMBERS[name]
    instance_set = load_instances(study_files.instances())
    save_instances(tmp_path / "out", replace(instance_set, **{array: change(getattr(instance_set, array))}))
    with pytest.raises(UserError, match=message) as caught:
        load_instances(tmp_path / "out", n_symbols=300)
    assert "\n" not in str(caught.value)
    assert "build the instances again" in str(caught.value)
