"""`docmt instances`."""

import json

import pandas as pd
import pytest

from docmt.cli.main import main
from docmt.instances.storage import load_instances


def build_arguments(study, out, **changes):
    folder = study.folder
    values = {
        "settings": "{}",
        "texts": [folder / "train.bpe.en", folder / "train.bpe.de"],
        "documents": folder / "train.documents.tsv",
        "vocabulary": folder / "vocabulary.txt",
        "out": out,
    } | changes
    arguments = ["instances", "build"]
    for name, value in values.items():
        arguments += [f"--{name}", *(map(str, value) if isinstance(value, list) else [str(value)])]
    return arguments


def test_build_and_statistics(study_files, tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"max_sentences": 2}))
    folder = tmp_path / "tiny/instances"
    (folder / "documents").mkdir(parents=True)
    (folder / "documents/train").symlink_to(study_files.instances())
    assert main(build_arguments(study_files, folder / "pairs/train", settings=f"@{settings}")) == 0
    assert max(load_instances(folder / "pairs/train").n_sentences()) == 2
    manifests = [f"{folder}/{name}/train/manifest.json" for name in ("pairs", "documents")]
    assert main(["instances", "count", "--manifests", *manifests, "--out", str(tmp_path / "table.csv")]) == 0
    table = pd.read_csv(tmp_path / "table.csv")
    assert list(table["cutting"]) == ["pairs", "documents"]
    assert list(table["sentences"]) == [20, 20]
    assert list(table["documents"]) == [8, 8]
    assert list(table["instances"]) == [12, 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": '{"max_token": 3}'}, "instances.max_token: unknown key; did you mean 'max_tokens'?"),
        ({"settings": "{"}, "not JSON"),
        ({"texts": ["missing.en", "missing.de"]}, "missing.en: no such file"),
        ({"texts": ["a", "b", "c"]}, "--texts: 3 files: pass source and target, or one file"),
        ({"texts": ["train.bpe.en"], "discourse": ["trees"]}, "--discourse: document restoration uses no trees"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(study_files, tmp_path, capsys, changes, message):
    assert main(build_arguments(study_files, tmp_path / "out", **changes)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("docmt: error: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_a_path_of_another_form_is_refused(tmp_path, capsys):
    assert main(["instances", "count", "--manifests", "x/manifest.json", "--out", str(tmp_path / "table.csv")]) == 2
    assert "DATASET/instances/INSTANCES/SPLIT/manifest.json" in capsys.readouterr().err
