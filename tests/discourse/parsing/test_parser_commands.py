"""`docmt discourse train-parser`, `evaluate-parser`, `parse`: files in, files out, one line for mistakes."""

import json
import logging
import shutil
from dataclasses import replace

import pytest
import torch
from parsing_fixtures import COARSE, StandInSegmenter, complete_units, random_document, save_tiny_segmenter
from tree_fixtures import run

from docmt.checksums import forget
from docmt.discourse.documents import DocumentUnits, read_discourse, sentences_of, write_discourse
from docmt.discourse.parsing.model_file import load_trained_parser, reads_states_of
from docmt.discourse.parsing.neural_parser import word_states
from docmt.discourse.parsing.parser_names import load_parser
from docmt.discourse.parsing.training import best_kind
from docmt.discourse.segmentation.segmenter import Segmenter
from docmt.discourse.syntax import write_syntax
from docmt.errors import UserError
from docmt.files import read_json

NEURAL = {
    "members": 2, "edu_width": 6, "document_width": 3, "hidden_width": 8, "feature_width": 4, "epochs": 2,
}  # fmt: skip
SETTINGS = {
    "neural": {"relations": "gum", "neural": NEURAL},
    "linear": {"kind": "linear", "relations": "gum", "linear": {"syntax": "none", "min_count": 1}},
    "linear with syntax": {"kind": "linear", "relations": "gum", "linear": {"syntax": "segmenter", "min_count": 1}},
    "auto": {"kind": "auto", "relations": "gum", "neural": NEURAL, "linear": {"min_count": 1}},
    "linear with file": {"kind": "linear", "relations": "gum", "linear": {"syntax": "file", "min_count": 1}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parser")
    for split, seeds in (("train", range(8)), ("dev", range(20, 24))):
        documents = [random_document(seed, n_sentences=4) for seed in seeds]
        write_discourse(folder / f"{split}.discourse.jsonl", documents)
        syntax = [(d.id, tuple(StandInSegmenter().predict_syntax(d.sentences))) for d in documents]
        write_syntax(folder / f"{split}.syntax.jsonl", syntax)
    save_tiny_segmenter(folder / "segmenter.pt")
    return folder


def train(folder, name, out, **options):
    needs_segmenter = name in ("neural", "linear with syntax", "auto")
    segmenter = ["--segmenter", folder / "segmenter.pt"] if needs_segmenter else []
    settings = json.dumps(SETTINGS[name] | options)
    run("train-parser", "--settings", settings, "--train", folder / "train", "--dev", folder / "dev",
        *segmenter, "--seed", 3, "--out", out)  # fmt: skip
    return out


@pytest.mark.parametrize("name", list(SETTINGS))
def test_train_parse_and_evaluate(folder, tmp_path, name):
    model = train(folder, name, tmp_path / "parser.pt")
    syntax = ["--syntax", folder / "dev.syntax.jsonl"] if name == "linear with file" else []
    gold = folder / "dev.discourse.jsonl"
    out = tmp_path / "out.discourse.jsonl"
    run("parse", "--parser", model, "--input", gold, "--out", out, *syntax)
    documents, parsed = read_discourse(gold), read_discourse(out)
    assert [document.id for document in parsed] == [document.id for document in documents]
    assert [document.edus for document in parsed] == [document.edus for document in documents]
    for document in parsed:
        assert complete_units(document.tree, DocumentUnits(document).sentences.number_of)
        assert {node.relation for node in document.tree.postorder() if not node.is_leaf} <= set(COARSE)
    run("evaluate-parser", "--parser", model, "--gold", gold, "--out", tmp_path / "scores.json", *syntax)
    scores = read_json(tmp_path / "scores.json")
    trained = load_trained_parser(model)
    assert scores["parseval"] == trained.scores["with paragraphs"]["parseval"]
    assert (scores["documents"], scores["edu_f1"]) == (4, 100.0)
    run("evaluate-parser", "--parser", f"file:{out}", "--gold", gold, "--relations", "gum",
        "--out", tmp_path / "again.json")  # fmt: skip
    assert read_json(tmp_path / "again.json")["parseval"] == scores["parseval"]
    assert trained.provenance["settings"]["kind"] == SETTINGS[name].get("kind", "neural")


def test_the_same_seed_gives_the_same_file(folder, tmp_path):
    for name in ("neural", "linear"):
        first = train(folder, name, tmp_path / "1" / "parser.pt").read_bytes()
        assert train(folder, name, tmp_path / "2" / "parser.pt").read_bytes() == first


@pytest.mark.parametrize(
    ("kept", "options"),
    [
        ("linear", {"linear": {"min_count": 1, "cost": 20.0}}),
        ("neural", {"neural": NEURAL | {"epochs": 40, "learning_rate": 1e-2}, "linear": {"cost": 1e-9}}),
    ],
)
def test_auto_trains_both_parsers_and_keeps_the_better(folder, tmp_path, caplog, kept, options):
    """The development set is the training set, so that the parser that learns it by heart is the better one."""
    shutil.copy(folder / "segmenter.pt", tmp_path)
    for split in ("train", "dev"):
        shutil.copy(folder / "train.discourse.jsonl", tmp_path / f"{split}.discourse.jsonl")
    folder = tmp_path
    caplog.set_level(logging.INFO)
    trained = load_trained_parser(train(folder, "auto", tmp_path / "auto.pt", **options))
    lines = caplog.text
    alone = {
        kind: load_trained_parser(
            train(folder, kind, tmp_path / f"{kind}.pt", **SETTINGS["auto"] | options | {"kind": kind})
        )
        for kind in ("neural", "linear")
    }
    dev_f = {kind: parser.scores["with paragraphs"]["parseval"]["F"] for kind, parser in alone.items()}
    assert trained.provenance["dev_f"] == dev_f
    assert trained.provenance["kept"] == trained.settings.kind == kept == max(dev_f, key=dev_f.get)
    assert trained.scores == alone[kept].scores
    assert (trained.segmenter is None) == (kept == "linear")
    assert f"keeps the {kept} parser; F on the development set: neural {dev_f['neural']}, linear" in lines
    assert "kept" not in alone[kept].provenance
    gold = read_discourse(folder / "dev.discourse.jsonl")
    assert min(dev_f.values()) < dev_f[kept]
    assert [document.tree for document in trained.parser.parse_batch(gold)] == [
        document.tree for document in alone[kept].parser.parse_batch(gold)
    ]


@pytest.mark.parametrize(("linear", "kept"), [(30.0, "neural"), (30.1, "linear"), (29.9, "neural")])
def test_auto_prefers_the_neural_parser_when_scores_are_equal(linear, kept):
    scores = {kind: {"with paragraphs": {"parseval": {"F": f}}} for kind, f in (("neural", 30.0), ("linear", linear))}
    assert best_kind(scores) == (kept, {"neural": 30.0, "linear": linear})


def test_auto_without_trees_to_compare_is_one_line(folder, tmp_path):
    for name in ("train.discourse.jsonl", "segmenter.pt"):
        shutil.copy(folder / name, tmp_path / name)
    write_discourse(tmp_path / "dev.discourse.jsonl", [random_document(1, n_sentences=0, with_tree=False)])
    with pytest.raises(UserError, match=r"dev\.discourse\.jsonl has no tree of two EDUs or more"):
        train(tmp_path, "auto", tmp_path / "parser.pt")


def test_end_to_end_and_without_paragraphs(folder, tmp_path):
    model = train(folder, "neural", tmp_path / "parser.pt")
    gold = folder / "dev.discourse.jsonl"
    run("evaluate-parser", "--parser", model, "--gold", gold, "--segmenter", folder / "segmenter.pt",
        "--without-paragraphs", "--out", tmp_path / "scores.json")  # fmt: skip
    scores = read_json(tmp_path / "scores.json")
    assert scores["edus"]["predicted"] != scores["edus"]["gold"]
    assert 0 <= scores["parseval"]["F"] <= scores["parseval"]["S"] <= 100


@pytest.mark.parametrize("name", ["chain", "right_branching", "flat"])
def test_baselines_need_no_model(folder, tmp_path, name):
    gold = folder / "dev.discourse.jsonl"
    run("evaluate-parser", "--parser", name, "--gold", gold, "--relations", "gum", "--out", tmp_path / "scores.json")
    assert read_json(tmp_path / "scores.json")["uas"] > 0


def test_baselines_beside_a_parser_are_scored_alike(folder, tmp_path):
    gold = folder / "dev.discourse.jsonl"
    options = ["--gold", gold, "--relations", "gum", "--segmenter", folder / "segmenter.pt"]
    names = ("chain", "sentence_branching")
    run("evaluate-parser", "--parser", "flat", *options, "--baselines", *names, "--out", tmp_path / "scores.json")
    beside = read_json(tmp_path / "scores.json")["baselines"]
    for name in names:
        run("evaluate-parser", "--parser", name, *options, "--out", tmp_path / "alone.json")
        alone = read_json(tmp_path / "alone.json")
        assert beside[name] == {key: alone[key] for key in beside[name]}
    assert beside["chain"]["parseval"]["S"] is None
    assert beside["sentence_branching"]["parseval"]["S"] > 0
    with pytest.raises(UserError, match="unknown baseline 'chian'; did you mean 'chain'"):
        run("evaluate-parser", "--parser", "flat", *options, "--baselines", "chian", "--out", tmp_path / "no.json")


def test_constraints_can_be_left_out(folder, tmp_path):
    model = train(folder, "linear", tmp_path / "parser.pt", sentence_constraint=False)
    assert load_trained_parser(model).parser.sentence_constraint is False


def test_damaged_and_foreign_files_are_one_line(folder, tmp_path):
    model = train(folder, "linear", tmp_path / "parser.pt")
    data = model.read_bytes()
    (tmp_path / "cut.pt").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match="not a parser"):
        load_parser(str(tmp_path / "cut.pt"))
    with pytest.raises(UserError, match="not a parser of format 1"):
        load_parser(str(folder / "segmenter.pt"))
    content = torch.load(model, weights_only=True)
    content["parts"][0]["weights"] = torch.zeros(1, 1)
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(UserError, match="do not match"):
        load_parser(str(tmp_path / "other.pt"))
    with pytest.raises(UserError, match=r"parser 'rihgt_branching': no such file; give a model file, chain, random"):
        load_parser("rihgt_branching")


def test_a_neural_parser_without_its_segmenter_is_refused(folder, tmp_path):
    model = train(folder, "neural", tmp_path / "parser.pt")
    content = torch.load(model, weights_only=True)
    torch.save({**content, "segmenter": None}, model)
    forget(model)
    with pytest.raises(UserError, match="the segmenter whose word states it reads is missing"):
        load_parser(str(model))


def test_a_parser_knows_its_own_segmenter(folder, tmp_path):
    parser = load_parser(str(train(folder, "neural", tmp_path / "parser.pt")))
    segmenter = Segmenter.load(folder / "segmenter.pt")
    assert reads_states_of(parser, segmenter)
    assert not reads_states_of(load_parser("chain"), segmenter)
    documents = read_discourse(folder / "dev.discourse.jsonl")
    readings = segmenter.read(sentences_of(documents))
    states = word_states(readings, documents, reads_lower=parser.reads_lower)
    expected = [document.tree for document in parser.parse_batch(documents)]
    assert [document.tree for document in parser.parse_batch(documents, states)] == expected
    with torch.no_grad():
        next(segmenter.network.parameters()).add_(1.0)
    assert not reads_states_of(parser, segmenter)


@pytest.mark.parametrize(
    ("name", "segmenter", "message"),
    [("neural", False, "give --segmenter MODEL"), ("linear", True, "leave --segmenter out")],
)
def test_segmenter_and_settings_fit_each_other(folder, tmp_path, name, segmenter, message):
    option = ["--segmenter", folder / "segmenter.pt"] if segmenter else []
    with pytest.raises(UserError, match=message):
        run("train-parser", "--settings", json.dumps(SETTINGS[name]), "--train", folder / "train",
            "--dev", folder / "dev", *option, "--out", tmp_path / "parser.pt")  # fmt: skip


def test_training_without_trees_or_with_unknown_relations_is_one_line(folder, tmp_path):
    bare = [replace(document, tree=None) for document in read_discourse(folder / "train.discourse.jsonl")]
    write_discourse(tmp_path / "train.discourse.jsonl", bare)
    with pytest.raises(UserError, match="has no tree: train on gold trees"):
        train(tmp_path, "linear", tmp_path / "parser.pt")
    with pytest.raises(UserError, match="is not one of controlled"):
        train(folder, "linear", tmp_path / "parser.pt", relations="controlled")
    write_discourse(tmp_path / "train.discourse.jsonl", [random_document(1, n_sentences=0, with_tree=False)])
    with pytest.raises(UserError, match="nothing to learn"):
        train(tmp_path, "linear", tmp_path / "parser.pt")


def test_syntax_of_other_documents_is_one_line(folder, tmp_path):
    model = train(folder, "linear with file", tmp_path / "parser.pt")
    arguments = ("parse", "--parser", model, "--input", folder / "dev.discourse.jsonl", "--out", tmp_path / "o.jsonl")
    with pytest.raises(UserError, match="give --syntax FILE"):
        run(*arguments)
    with pytest.raises(UserError, match="expected the syntax of document 'document-20' next, found 'document-0'"):
        run(*arguments, "--syntax", folder / "train.syntax.jsonl")
    (tmp_path / "text.en").write_text("Words .\nOther words .\n")
    with pytest.raises(UserError, match=r"trained on \*.syntax.jsonl, which this text lacks"):
        run("annotate", "--segmenter", folder / "segmenter.pt", "--parser", model, "--lang", "en",
            "--text", tmp_path / "text.en", "--out", tmp_path / "o.jsonl")  # fmt: skip
    assert not (tmp_path / "o.jsonl").exists()
