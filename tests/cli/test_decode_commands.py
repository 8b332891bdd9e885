"""`docmt decode`."""

import json
import shutil
from dataclasses import replace

import pytest
from architectures import slow_but
from core_fixtures import DOCUMENTS, translate

from docmt.cli.main import main
from docmt.files import read_json, read_jsonl, write_json, write_jsonl
from docmt.instances.storage import load_instances, save_instances


@pytest.fixture(scope="module")
def model(overfitted):
    return overfitted("g_transformer")


def test_translate_writes_one_row_per_instance(study_files, model, tmp_path):
    options = ["--instances", str(study_files.instances()), "--device", "cpu", "--out", str(tmp_path / "h.jsonl")]
    assert main(["decode", "translate", "--model", str(model), *options]) == 0
    rows = read_jsonl(tmp_path / "h.jsonl")
    keys = {"instance", "document", "first_sentence", "n_sentences", "aligned", "sentences", "score", "forced_ends"}
    assert all(set(row) == keys for row in rows)
    assert [row["sentences"] for row in rows] == [[translate(s) for s in document] for document in DOCUMENTS]
    assert read_json(tmp_path / "h.job.json") == {"device": "cpu", "n_devices": 1}


def translated(model, instances, out, *options, **settings):
    """Output of `docmt decode translate`."""
    files = ["--model", str(model), "--instances", str(instances), "--out", str(out)]
    assert main(["decode", "translate", *files, *options, "--device", "cpu", "--settings", json.dumps(settings)]) == 0
    return out


@pytest.mark.parametrize("n_shards", slow_but((3,), (1, 3, len(DOCUMENTS) + 1)))
def test_joined_shards_are_the_whole(study_files, model, tmp_path, n_shards):
    """Byte by byte, if the batches are the same. In other batches, scores are rounded differently."""
    instances, joined = study_files.instances(), tmp_path / "joined.jsonl"
    whole = translated(model, instances, tmp_path / "whole.jsonl", max_batch_tokens=1)
    shards = []
    for shard in map(str, range(1, n_shards + 1)):
        options = ["--shard", shard, "--n-shards", str(n_shards)]
        shards.append(translated(model, instances, tmp_path / shard, *options, max_batch_tokens=1))
    assert main(["decode", "join-translations", "--shards", *map(str, shards), "--out", str(joined)]) == 0
    assert joined.read_bytes() == whole.read_bytes()
    assert [bool(shard.read_bytes()) for shard in shards].count(False) >= n_shards - len(DOCUMENTS)
    assert read_json(tmp_path / f"{n_shards}.job.json")["device"] == "cpu"


@pytest.mark.parametrize("shard", ["0", "3"])
def test_missing_shard_is_one_line(shard, capsys):
    options = ["--model", "m", "--instances", "i", "--out", "o", "--shard", shard, "--n-shards", "2"]
    assert main(["decode", "translate", *options]) == 2
    assert f"--shard {shard} --n-shards 2: the shard must be a number from 1 to 2" in capsys.readouterr().err


def suite(path):
    items = [
        {
            "id": f"item{i}",
            "phenomenon": "p",
            "src": document,
            "candidates": [document, [translate(sentence) for sentence in document]],
            "correct": 1,
        }
        for i, document in enumerate(DOCUMENTS)
    ]
    write_jsonl(path, items)
    return path


def test_contrast_leads_to_accuracy(model, tmp_path, capsys):
    path, scores, rows = suite(tmp_path / "t.jsonl"), tmp_path / "suite_t.json", tmp_path / "rows.json"
    options = ["--device", "cpu", "--suite", str(path), "--out", str(scores)]
    assert main(["decode", "score-candidates", "--model", str(model), *options]) == 0
    content = read_json(scores)
    assert [item["id"] for item in content["items"]] == [f"item{i}" for i in range(8)]
    provenance = content["provenance"]
    assert (provenance["device"], provenance["n_devices"]) == ("cpu", 1)
    assert provenance["model"]["best_step"] > 0
    run = ["--src-lang", "en", "--tgt-lang", "de", "--dataset", "d", "--system", "s", "--seed", "1"]
    options = ["--outputs", str(scores), "--suites", str(path), *run, "--out", str(rows)]
    assert main(["evaluate", "run", *options]) == 0
    assert read_json(rows)["scores"][0]["value"] == 100.0
    # The same items in number and name, but other candidates.
    write_jsonl(path, [item | {"correct": 0} for item in read_jsonl(path)])
    assert main(["evaluate", "run", *options]) == 2
    assert f"{scores}: computed on a different version of {path}: compute it again" in capsys.readouterr().err


def test_bad_suite_is_one_line(model, tmp_path, capsys):
    item = {"id": "a", "phenomenon": "p", "src": ["s"], "candidates": [["x"]], "correct": 0}
    path = tmp_path / "suite.jsonl"
    path.write_text(json.dumps(item) + "\n")
    options = ["--model", str(model), "--suite", str(path), "--out", str(tmp_path / "o")]
    assert main(["decode", "score-candidates", *options]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("docmt: error: ")
    assert "line 1: `candidates` needs a correct and a wrong candidate" in line
    assert [file.name for file in tmp_path.iterdir()] == ["suite.jsonl"]


def test_missing_instances_are_one_line(model, tmp_path, capsys):
    options = ["--model", str(model), "--instances", str(tmp_path / "none"), "--out", str(tmp_path / "h.jsonl")]
    assert main(["decode", "translate", *options]) == 2
    assert "no such file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_instances_of_another_vocabulary_are_refused(study_files, model, tmp_path, capsys):
    """Their token ids stand for other subwords. Without the refusal, the translation would be nonsense."""
    folder = tmp_path / "instances"
    shutil.copytree(study_files.instances(), folder)
    write_json(folder / "manifest.json", read_json(folder / "manifest.json") | {"vocabulary_sha256": "0" * 64})
    options = ["--model", str(model), "--instances", str(folder), "--out", str(tmp_path / "h.jsonl")]
    assert main(["decode", "translate", *options]) == 2
    assert f"{folder}: built with a different vocabulary than {model}" in capsys.readouterr().err
    assert not (tmp_path / "h.jsonl").exists()


def test_instances_of_a_larger_vocabulary_are_refused(study_files, model, tmp_path, capsys):
    original = load_instances(study_files.instances())
    manifest = {key: value for key, value in original.manifest.items() if key != "vocabulary_sha256"}
    src_tokens = original.src_tokens.copy()
    src_tokens[3] = 10_000
    save_instances(tmp_path / "instances", replace(original, src_tokens=src_tokens, manifest=manifest))
    options = ["--model", str(model), "--instances", str(tmp_path / "instances"), "--out", str(tmp_path / "h.jsonl")]
    assert main(["decode", "translate", *options]) == 2
    assert "src_tokens.npy: 10000 is not the number of a symbol of the vocabulary" in capsys.readouterr().err
