"""A model file that includes a segmenter and parser can translate plain text and files with trees."""

import pytest
import torch
from core_fixtures import DOCUMENTS, make_model
from parsing_fixtures import save_tiny_parser, save_tiny_segmenter

from docmt.checksums import sha256_file
from docmt.cli.main import main
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.discourse.discourse_documents import read_discourse
from docmt.errors import UserError
from docmt.files import read_json, write_jsonl
from docmt.models.model_file import TrainedModel, load_model, save_model

GREEDY = DecodingSettings(beam_size=1, max_length_ratio=1e-9, max_length_offset=10)
LONG = [" ".join(line for line in document) for document in DOCUMENTS]
TEXTS = [[*document, LONG[0]] for document in DOCUMENTS]


@pytest.fixture(scope="module")
def files(study_files, tmp_path_factory):
    """A folder with a model that reads trees, a segmenter and a parser."""
    folder = tmp_path_factory.mktemp("bundle")
    model = make_model("rst_mix", n_symbols=len(study_files.vocabulary))
    save_model(folder / "model.pt", TrainedModel(model, study_files.vocabulary, study_files.pipeline, {}, {}))
    save_tiny_parser(folder / "parser.pt", save_tiny_segmenter(folder / "segmenter.pt"))
    return folder


def bundle(files, out, *options, parser=None):
    command = ["models", "add-parser", "--model", f"{files}/model.pt", "--segmenter", f"{files}/segmenter.pt"]
    return main([*command, "--parser", parser or f"{files}/parser.pt", "--out", str(out), *options])


@pytest.mark.parametrize(
    ("parser", "options"),
    [
        pytest.param(None, [], id="neural"),
        pytest.param("chain", [], id="chain", marks=pytest.mark.slow),
        pytest.param(None, ["--sentences", "chain"], id="mixed", marks=pytest.mark.slow),
    ],
)
def test_trees_equal_those_of_the_workflow(files, tmp_path, parser, options):
    assert bundle(files, tmp_path / "bundled.pt", *options, parser=parser) == 0
    text = "\n\n".join("\n".join(document) for document in TEXTS) + "\n"
    (tmp_path / "text").write_text(text, encoding="utf-8")
    command = f"discourse annotate --text {tmp_path}/text --lang en --out {tmp_path}/trees.jsonl".split()
    command += ["--segmenter", f"{files}/segmenter.pt", "--parser", parser or f"{files}/parser.pt", *options]
    assert main(command) == 0
    trees = read_discourse(tmp_path / "trees.jsonl")
    plain, bundled = load_model(files / "model.pt"), load_model(tmp_path / "bundled.pt")
    expected = Translator(plain, GREEDY).translate_documents(TEXTS, trees)
    assert Translator(bundled, GREEDY).translate_documents(TEXTS) == expected
    without = Translator(plain, GREEDY).translate_documents(TEXTS)
    assert Translator(bundled, GREEDY, with_trees=False).translate_documents(TEXTS) == without
    assert without != expected, "these trees change the translations"


@pytest.mark.slow
def test_the_command_segments_and_parses_plain_text(files, tmp_path, capsys):
    assert bundle(files, tmp_path / "model.pt") == 0
    (tmp_path / "plain").write_text("\n".join(TEXTS[0]) + "\n", encoding="utf-8")
    with_trees = Translator(load_model(tmp_path / "model.pt"), DecodingSettings(beam_size=1))
    without = Translator(load_model(files / "model.pt"), DecodingSettings(beam_size=1))
    call = ["translate", "--model", f"{tmp_path}/model.pt", "--device", "cpu", "--beam-size", "1"]
    for discourse, translator in (("auto", with_trees), ("none", without)):
        assert main([*call, "--discourse", discourse, f"{tmp_path}/plain", "--out", f"{tmp_path}/out"]) == 0
        translation = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
        assert translation == translator.translate_documents([TEXTS[0]])[0]
    assert "reads trees, but" not in capsys.readouterr().err


@pytest.mark.parametrize("context", ["gold", "own"])
def test_suites_and_texts_have_the_same_trees(files, tmp_path, context):
    assert bundle(files, tmp_path / "bundled.pt") == 0
    document = [*TEXTS[0], "the dog sees"]
    candidates = [[*document[:-1], last] for last in ("der hund sieht", "die katze sieht")]
    item = {"id": "a", "phenomenon": "p", "src": document, "candidates": candidates, "correct": 0}
    write_jsonl(tmp_path / "suite.jsonl", [item | {"sentence": len(document) - 1}])
    command = f"discourse annotate --suite {tmp_path}/suite.jsonl --lang en --out {tmp_path}/trees.jsonl".split()
    assert main([*command, "--segmenter", f"{files}/segmenter.pt", "--parser", f"{files}/parser.pt"]) == 0
    call = ["decode", "score-candidates", "--suite", f"{tmp_path}/suite.jsonl", "--device", "cpu"]
    call += ["--target-context", context]
    scores = []
    trees = ["--discourse", f"{tmp_path}/trees.jsonl"]
    for model, options in ((tmp_path / "bundled.pt", []), (files / "model.pt", trees), (files / "model.pt", [])):
        assert main([*call, "--model", str(model), "--out", f"{tmp_path}/scores.json", *options]) == 0
        scores.append(read_json(tmp_path / "scores.json")["items"])
    assert scores[0] == scores[1] != scores[2]


def test_the_segmenter_of_the_parser_is_stored_once(files, tmp_path):
    assert bundle(files, tmp_path / "bundled.pt") == 0
    trained = load_model(tmp_path / "bundled.pt")
    assert trained.discourse.segmenter is None
    assert trained.provenance["bundled"]["segmenter"] == sha256_file(files / "segmenter.pt")
    assert trained.provenance["bundled"]["parser"] == sha256_file(files / "parser.pt")
    assert bundle(files, tmp_path / "chain.pt", parser="chain") == 0
    assert load_model(tmp_path / "chain.pt").discourse.segmenter == (files / "segmenter.pt").read_bytes()


def test_without_a_bundle_auto_is_refused(files, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the dog\n", encoding="utf-8")
    call = ["translate", "--model", f"{files}/model.pt", "--device", "cpu", "--discourse", "auto", f"{tmp_path}/a.txt"]
    assert main(call) == 2
    assert "add them with `docmt models add-parser`" in capsys.readouterr().err


def test_what_does_not_belong_together_is_refused(files, tmp_path, study_files, capsys):
    model = make_model("g_transformer", n_symbols=len(study_files.vocabulary))
    save_model(tmp_path / "model.pt", TrainedModel(model, study_files.vocabulary, study_files.pipeline, {}, {}))
    command = ["models", "add-parser", "--model", f"{tmp_path}/model.pt", "--segmenter", f"{files}/segmenter.pt"]
    assert main([*command, "--parser", "chain", "--out", f"{tmp_path}/out.pt"]) == 2
    assert "does not read trees" in capsys.readouterr().err
    assert bundle(files, tmp_path / "out.pt", parser=f"{files}/segmenter.pt") == 2
    assert "not a parser" in capsys.readouterr().err
    assert bundle(files, tmp_path / "out.pt", parser="missing.pt") == 2
    assert "missing.pt" in capsys.readouterr().err
    assert not (tmp_path / "out.pt").exists()


BROKEN = torch.zeros(5, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("key", "value"),
    [("parser", BROKEN), ("parser", "isanlp:x"), ("parser", 5), ("sentences", "none"), ("segmenter", "x")],
)
def test_damaged_bundles_are_refused_in_one_line(files, tmp_path, key, value):
    assert bundle(files, tmp_path / "model.pt", parser="chain") == 0
    content = torch.load(tmp_path / "model.pt", weights_only=True)
    content["discourse"][key] = value
    (tmp_path / "new").mkdir()
    torch.save(content, tmp_path / "new/model.pt")
    with pytest.raises(UserError) as caught:
        Translator(load_model(tmp_path / "new/model.pt"), GREEDY).translate_documents([["the dog"]])
    assert "\n" not in str(caught.value)
