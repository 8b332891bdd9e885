"""`docmt translate` writes one line per input line."""

import io
import re
import sys
from pathlib import Path

import pytest
import torch
from core_fixtures import DOCUMENTS, translate

from docmt.cli.main import main
from docmt.decoding import decoding_model, translation
from docmt.decoding.decoding_model import prepare_search
from docmt.models.model_file import load_model


@pytest.fixture(scope="module")
def model(overfitted):
    return str(overfitted("g_transformer"))


@pytest.fixture
def translate_bytes(model, monkeypatch, capsys):
    """Run the command on bytes from standard input. Returns exit code, output and messages."""

    def run(data, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
        code = main(["translate", "--model", model, "--device", "cpu", *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


TEXT = "\n\n".join("\n".join(document) for document in DOCUMENTS) + "\n"
TRANSLATION = "\n\n".join("\n".join(map(translate, document)) for document in DOCUMENTS) + "\n"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text, id="plain"),
        pytest.param(lambda text: text.rstrip("\n"), id="no line end at the end"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: "\ufeff" + text, id="byte order mark"),
        pytest.param(lambda text: text.replace("\n\n", "\n \t\n"), id="blank lines with white space"),
        pytest.param(lambda text: text.replace("the dog", "  the   dog "), id="more blanks"),
    ],
)
def test_documents_are_translated_line_by_line(translate_bytes, change):
    code, output, _ = translate_bytes(change(TEXT).encode())
    assert code == 0
    assert output == TRANSLATION


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\n\n", "\n\nthe dog\n\n\n", "a dog\n \n\nthe house", "\u2028\n\u00a0\nthe dog\n"]
)
def test_blank_lines_stay_where_they_are(translate_bytes, text):
    code, output, _ = translate_bytes(text.encode())
    lines = text.removesuffix("\n").split("\n") if text else []
    assert code == 0
    assert [bool(line) for line in output.split("\n")[:-1]] == [bool(line.strip()) for line in lines]


def test_only_a_newline_ends_a_line(translate_bytes):
    code, output, _ = translate_bytes("the dog\u2028a\x0bhouse\x85x\rthe child\n".encode())
    assert code == 0
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "int8"),
        (["--precision", "float32"], "float32"),
        (["--settings", '{"precision": "bfloat16"}'], "bfloat16"),
        (["--settings", '{"precision": "bfloat16"}', "--precision", "float32"], "float32"),
    ],
)
def test_the_precision_is_measured_unless_it_is_given(translate_bytes, monkeypatch, options, expected):
    precisions = []

    def prepare(model, settings, device):
        precisions.append(settings.precision)
        return prepare_search(model, settings, device)

    def measure(steps):
        return [step() for step in steps.values()] and "int8"

    monkeypatch.setattr(decoding_model, "FEW_WEIGHTS", 0)
    monkeypatch.setattr(
        decoding_model, "fastest_precision", lambda steps: [step() for step in steps.values()] and "int8"
    )
    monkeypatch.setattr(translation, "prepare_search", prepare)
    code, output, _ = translate_bytes(TEXT.encode(), *options)
    assert code == 0
    assert precisions == [expected]
    assert expected != "float32" or output == TRANSLATION


def test_tiny_models_translate_in_float32_without_a_measurement(model, monkeypatch):
    monkeypatch.setattr(decoding_model, "fastest_precision", lambda _: "int8")
    assert decoding_model.precision_for(load_model(Path(model)).model) == "float32"


def test_files_in_and_out(model, tmp_path, capsys):
    (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    options = ["--model", model, str(tmp_path / "in.txt"), "--out", str(tmp_path / "out.txt")]
    assert main(["translate", *options, "--settings", '{"beam_size": 2}']) == 0
    assert (tmp_path / "out.txt").read_bytes().decode() == TRANSLATION
    assert capsys.readouterr().out == ""


def test_several_files_go_into_a_folder(model, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(TEXT)
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    assert main(["translate", "--model", model, *files, "--out", f"{tmp_path}/out"]) == 0
    assert [(tmp_path / "out" / name).read_text() for name in ("a.txt", "b.txt")] == [TRANSLATION] * 2
    assert main(["translate", "--model", model, files[0], "--out", f"{tmp_path}/one/"]) == 0
    assert (tmp_path / "one/a.txt").read_text() == TRANSLATION


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.txt", "b.txt"], "several input files: pass a folder for the translations, --out FOLDER/"),
        (["a.txt", "--out", "a.txt"], "a.txt: is an input of this command and would be overwritten"),
        (["a.txt", "b.txt", "--out", "."], "a.txt: is an input of this command and would be overwritten"),
        (["a.txt", "x/a.txt", "--out", "out/"], "out/a.txt: is the output for two inputs or purposes"),
        (["--out", "out/"], "--out out/: is a folder: the translation of standard input needs a file"),
        (["a.txt", "b.txt", "--out", "out", "--discourse", "t.jsonl"], "trees belong to one text"),
    ],
)
def test_overwritten_or_mixed_files_are_refused(model, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the dog\n")))
    (tmp_path / "x").mkdir()
    for name in ("a.txt", "b.txt", "x/a.txt"):
        (tmp_path / name).write_text("the dog\n")
    assert main(["translate", "--model", model, "--device", "cpu", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert {path.read_text() for path in tmp_path.rglob("*.txt")} == {"the dog\n"}
    assert not (tmp_path / "out").exists()


def test_list_of_sentences_is_translated_by_line(translate_bytes):
    lines = [line for document in DOCUMENTS for line in [*document, ""]]
    alone = [translate_bytes(f"{line}\n".encode())[1] for line in lines]
    assert translate_bytes("\n".join(lines).encode() + b"\n", "--context", "none")[1] == "".join(alone)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--context", "none", "--discourse", "trees.jsonl"], "pass only one"),
        (["--settings", '{"beams": 2}'], "did you mean 'beam_size'"),
        (["--settings", "@missing.json"], "missing.json: no such file"),
        (["missing.txt"], "missing.txt: no such file"),
    ],
)
def test_bad_options_are_one_line(translate_bytes, tmp_path, options, message):
    code, output, errors = translate_bytes(b"the dog\n", *options, "--out", str(tmp_path / "out.txt"))
    assert code == 2
    assert output == ""
    (line,) = errors.strip().splitlines()
    assert line.startswith("docmt: error: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_not_utf8_is_one_line(translate_bytes, model, tmp_path, capsys):
    code, output, errors = translate_bytes(b"the dog\n\xff\xfe\n")
    assert (code, output) == (2, "")
    assert "standard input: byte 8 is not UTF-8" in errors
    assert len(errors.strip().splitlines()) == 1
    (tmp_path / "in.txt").write_bytes(b"the dog\n\xff\xfe\n")
    assert main(["translate", "--model", model, str(tmp_path / "in.txt")]) == 2
    assert "in.txt: line 2 is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.pt", "no such file"),
        ("text.pt", "not a docmt model file"),
        ("parser.pt", "not a docmt model file of format 1, but a different kind of file (RST parser)"),
    ],
)
def test_a_missing_or_foreign_model_is_one_line(name, message, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    (tmp_path / "text.pt").write_text("no model")
    torch.save({"format": 1, "kind": "RST parser"}, tmp_path / "parser.pt")
    assert main(["translate", "--model", str(tmp_path / name)]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_missing_gpu_is_one_line(translate_bytes, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, errors = translate_bytes(b"the dog\n", "--device", "cuda")
    assert code == 2
    assert "no GPU is visible" in errors


def test_what_the_model_cannot_read_well_is_said(translate_bytes):
    _, _, messages = translate_bytes(TEXT.encode())
    assert re.search(r"; 0 of \d+ subwords unknown", messages)
    _, output, messages = translate_bytes("the 猫\n".encode() + b"the dog " * 600)
    assert output.count("\n") == 2
    assert re.search(r"; 1 of \d+ subwords unknown", messages)
    assert "WARNING 1 sentences are longer than 512 tokens, the limit in training" in messages


@pytest.mark.slow
def test_a_model_of_trees_without_trees_says_so(overfitted, tmp_path, capsys):
    (tmp_path / "a").write_text("the dog\n")
    for architecture, is_said in (("rst_mix", True), ("g_transformer", False)):
        model = str(overfitted(architecture))
        assert main(["translate", "--model", model, "--device", "cpu", str(tmp_path / "a"), "--verbose"]) == 0
        assert ("reads discourse trees, but --discourse is not set" in capsys.readouterr().err) == is_said
