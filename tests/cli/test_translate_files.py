"""`docmt translate FILE …`: where output goes, and what is refused."""

import io
import sys

import pytest
from core_fixtures import DOCUMENTS, translate

from docmt.cli.main import main


@pytest.fixture(scope="module")
def model(overfitted):
    return str(overfitted("g_transformer"))


@pytest.fixture
def run(model, tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder; exit code, output and messages."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main(["translate", "--model", model, "--device", "cpu", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


TEXT = "\r\n".join(DOCUMENTS[0])
EXPECTED = "\r\n".join(map(translate, DOCUMENTS[0]))


def test_several_files_go_into_a_folder(run, tmp_path):
    for name in ("a.lines", "b.lines"):
        (tmp_path / name).write_bytes(TEXT.encode())
    assert run("a.lines", "b.lines", "--format", "lines", "--out", "new/folder")[0] == 0
    assert {path.name for path in (tmp_path / "new/folder").iterdir()} == {"a.lines", "b.lines"}
    assert (tmp_path / "new/folder/b.lines").read_bytes().decode() == EXPECTED


def test_without_out_the_language_is_in_the_name(run, tmp_path):
    (tmp_path / "a.b.txt").write_bytes(TEXT.encode())
    code, output, messages = run("a.b.txt", "--format", "lines", "--beam-size", 2)
    assert (code, output) == (0, "")
    assert (tmp_path / "a.b.de.txt").read_bytes().decode() == EXPECTED
    assert "3 sentences; 0 forced ends; 0 of" in messages
    assert "0 placeholders lost; 3 segments" in messages


def test_standard_input_in_a_format(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<p>the dog sees the house</p>")))
    assert run("--format", "html", "--out", "page.html")[0] == 0
    assert (tmp_path / "page.html").read_text() == "<p>das Tier sieht das Haus</p>"


def test_context_none_translates_each_sentence_alone(run, tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n\na house\n")
    assert run("a.txt", "--context", "none")[0] == 0
    assert (tmp_path / "a.de.txt").read_text() == "ein Tier\n\nein Haus\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.doc"], "a.doc: unknown kind of file: name it with --format text | lines"),
        (["a.txt", "--out", "a.txt"], "a.txt: would be overwritten"),
        (["a.txt", "sub/a.txt", "--out", "new"], "a.txt: would be written for two files"),
        (["a.txt", "--input", "a.txt"], "give only one"),
        (["a.txt", "--discourse", "trees"], "trees belong to plain lines"),
        (["--discourse", "auto"], "model files hold no segmenter and parser"),
        (["missing.srt"], "missing.srt: no such file"),
        (["a.txt", "--beam-size", "0"], "decoding.beam_size"),
    ],
)
def test_bad_options_are_one_line(run, tmp_path, arguments, message):
    (tmp_path / "a.txt").write_text("a dog\n")
    before = sorted(tmp_path.iterdir())
    code, _, errors = run(*arguments)
    assert code == 2
    (line,) = [line for line in errors.splitlines() if "docmt: error: " in line]
    assert message in line
    assert sorted(tmp_path.iterdir()) == before


def test_the_terminal_is_announced(run, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"a dog\n"))
    monkeypatch.setattr(stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", stdin)
    code, output, messages = run()
    assert (code, output) == (0, "ein Tier\n")
    assert "end the text with Ctrl-D" in messages
