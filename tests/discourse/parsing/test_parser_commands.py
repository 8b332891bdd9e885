"""`docmt discourse train-parser`, `evaluate-parser` and `parse`: input and output files, and messages for mistakes."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from parsing_fixtures import COARSE, complete_units, random_document, save_tiny_segmenter
from tree_fixtures import run

from docmt.checksums import checksum_path, sha256_file
from docmt.discourse.discourse_documents import DocumentUnits, read_discourse, sentences_of, write_discourse
from docmt.discourse.parsing.parser import load_parser, parser_from_bytes, reads_states_of, word_states
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.errors import UserError
from docmt.files import read_json

NEURAL = {
    "members": 2, "edu_width": 6, "document_width": 3, "hidden_width": 8, "structure_width": 4, "epochs": 2,
}  # fmt: skip
SETTINGS = {"relations": "gum", "neural": NEURAL}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parser")
    for split, seeds in (("train", range(8)), ("dev", range(20, 24))):
        write_discourse(folder / f"{split}.discourse.jsonl", [random_document(seed, n_sentences=4) for seed in seeds])
    save_tiny_segmenter(folder / "segmenter.pt")
    return folder


def train(folder, out, **options):
    run("train-parser", "--settings", json.dumps(SETTINGS | options), "--train", folder / "train.discourse.jsonl",
        "--dev", folder / "dev.discourse.jsonl", "--segmenter", folder / "segmenter.pt",
        "--seed", 3, "--out", out)  # fmt: skip
    return out


def test_train_parse_and_evaluate(folder, tmp_path):
    model = train(folder, tmp_path / "parser.pt")
    gold = folder / "dev.discourse.jsonl"
    out = tmp_path / "out.discourse.jsonl"
    run("parse", "--parser", model, "--input", gold, "--out", out)
    documents, parsed = read_discourse(gold), read_discourse(out)
    assert [document.id for document in parsed] == [document.id for document in documents]
    assert [document.edus for document in parsed] == [document.edus for document in documents]
    for document in parsed:
        assert complete_units(document.tree, DocumentUnits(document).sentences.number_of)
        assert {node.relation for node in document.tree.postorder() if not node.is_leaf} <= set(COARSE)
    run("evaluate-parser", "--parser", model, "--gold", gold, "--out", tmp_path / "scores.json")
    scores = read_json(tmp_path / "scores.json")
    trained = parser_from_bytes(model.read_bytes(), where="parser")
    assert scores["parseval"] == trained.scores["with paragraphs"]["parseval"]
    assert (scores["documents"], scores["edu_f1"]) == (4, 100.0)
    run("evaluate-parser", "--parser", f"file:{out}", "--gold", gold, "--relations", "gum",
        "--out", tmp_path / "again.json")  # fmt: skip
    assert read_json(tmp_path / "again.json")["parseval"] == scores["parseval"]
    assert trained.provenance["settings"] == trained.parser.settings.model_dump()
    assert trained.provenance["segmenter"] == sha256_file(folder / "segmenter.pt")


def test_the_same_seed_gives_the_same_file(folder, tmp_path):
    first = train(folder, tmp_path / "1" / "parser.pt").read_bytes()
    assert train(folder, tmp_path / "2" / "parser.pt").read_bytes() == first


def test_end_to_end_and_without_paragraphs(folder, tmp_path):
    model = train(folder, tmp_path / "parser.pt")
    gold = folder / "dev.discourse.jsonl"
    run("evaluate-parser", "--parser", model, "--gold", gold, "--segmenter", folder / "segmenter.pt",
        "--without-paragraphs", "--out", tmp_path / "scores.json")  # fmt: skip
    scores = read_json(tmp_path / "scores.json")
    assert scores["edus"]["predicted"] != scores["edus"]["gold"]
    assert 0 <= scores["parseval"]["F"] <= scores["parseval"]["S"] <= 100


def test_baselines_beside_a_parser_are_scored_alike(folder, tmp_path):
    gold = folder / "dev.discourse.jsonl"
    options = ["--gold", gold, "--relations", "gum", "--segmenter", folder / "segmenter.pt"]
    run("evaluate-parser", "--parser", "random", *options, "--baselines", "chain", "--out", tmp_path / "scores.json")
    beside = read_json(tmp_path / "scores.json")["baselines"]["chain"]
    run("evaluate-parser", "--parser", "chain", *options, "--out", tmp_path / "alone.json")
    alone = read_json(tmp_path / "alone.json")
    assert beside == {key: alone[key] for key in beside}
    assert beside["parseval"]["S"] is None
    with pytest.raises(UserError, match="unknown baseline 'chian'; did you mean 'chain'"):
        run("evaluate-parser", "--parser", "chain", *options, "--baselines", "chian", "--out", tmp_path / "no.json")


def test_constraints_can_be_left_out(folder, tmp_path):
    model = train(folder, tmp_path / "parser.pt", sentence_constraint=False)
    assert load_parser(str(model)).settings.sentence_constraint is False


def test_damaged_and_foreign_files_are_one_line(folder, tmp_path):
    model = train(folder, tmp_path / "parser.pt")
    data = model.read_bytes()
    (tmp_path / "cut.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="not a parser"):
        load_parser(str(tmp_path / "cut.pt"))
    with pytest.raises(UserError, match="not a parser of format 1"):
        load_parser(str(folder / "segmenter.pt"))
    content = torch.load(model, weights_only=True)
    torch.save(content | {"format": 99}, tmp_path / "former.pt")
    with pytest.raises(
        UserError, match=r"former\.pt: not a parser of format 1: train it with `docmt discourse train-pa"
    ):
        load_parser(str(tmp_path / "former.pt"))
    content["parts"][0]["actions.out.bias"] = torch.zeros(1)
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(UserError, match="do not match"):
        load_parser(str(tmp_path / "other.pt"))
    with pytest.raises(UserError, match=r"parser 'chian': no such file; pass a model file, chain, random, isanlp"):
        load_parser("chian")


def test_a_parser_without_its_segmenter_is_refused(folder, tmp_path):
    model = train(folder, tmp_path / "parser.pt")
    content = torch.load(model, weights_only=True)
    torch.save({**content, "segmenter": None}, model)
    checksum_path(model).unlink()
    with pytest.raises(UserError, match="do not match"):
        load_parser(str(model))


def test_a_parser_knows_its_own_segmenter(folder, tmp_path):
    parser = load_parser(str(train(folder, tmp_path / "parser.pt")))
    segmenter = Segmenter.load(folder / "segmenter.pt")
    assert reads_states_of(parser, segmenter)
    documents = read_discourse(folder / "dev.discourse.jsonl")
    outputs = segmenter.encode(sentences_of(documents))
    states = word_states(outputs, documents, reads_lower=parser.settings.neural.reads_lower)
    expected = [document.tree for document in parser.parse_batch(documents)]
    assert [document.tree for document in parser.parse_batch(documents, states)] == expected
    with torch.no_grad():
        next(segmenter.network.parameters()).add_(1.0)
    assert not reads_states_of(parser, segmenter)


def test_bad_training_trees_are_one_line(folder, tmp_path):
    shutil.copy(folder / "segmenter.pt", tmp_path)
    bare = [replace(document, tree=None) for document in read_discourse(folder / "train.discourse.jsonl")]
    write_discourse(tmp_path / "train.discourse.jsonl", bare)
    with pytest.raises(UserError, match="has no tree: train on gold trees"):
        train(tmp_path, tmp_path / "parser.pt")
    with pytest.raises(UserError, match="is not one of controlled"):
        train(folder, tmp_path / "parser.pt", relations="controlled")
    write_discourse(tmp_path / "train.discourse.jsonl", [random_document(1, n_sentences=0, with_tree=False)])
    with pytest.raises(UserError, match="two or more EDUs to learn from"):
        train(tmp_path, tmp_path / "parser.pt")
