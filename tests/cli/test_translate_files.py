"""`docmt translate FILE …`: where output goes, and what is refused."""

import io
import re
import sys

import docx
import polib
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
    assert "; 3 of 3 segments\n" in messages


def test_standard_input_in_a_format(run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"<p>the dog sees the house</p>")))
    assert run("--format", "html", "--out", "page.html")[0] == 0
    assert (tmp_path / "page.html").read_text() == "<p>das Tier sieht das Haus</p>"


def test_a_name_that_ends_in_a_slash_is_a_folder(run, tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n")
    assert run("a.txt", "--out", "new/")[0] == 0
    assert (tmp_path / "new/a.txt").read_text() == "ein Tier\n"


def test_a_template_becomes_the_catalog_of_a_language(run, tmp_path):
    (tmp_path / "app.pot").write_text('msgid "a dog"\nmsgstr ""\n')
    assert run("app.pot")[0] == run("app.pot", "--out", "out/")[0] == run("app.pot", "--out", "x.pot")[0] == 0
    for name in ("de.po", "out/app.po", "x.pot"):
        assert (tmp_path / name).read_text() == '#, fuzzy\nmsgid "a dog"\nmsgstr "ein Tier"\n'


# The parser changes an escaped bar in a cell, so that its text has no place in the file.
UNTRANSLATED = "the dog\n\n| a | b |\n|---|---|\n| 1 | the dog \\| a |\n"


@pytest.mark.parametrize("strict", [[], ["--strict"]])
def test_what_was_not_translated_is_said_and_listed(run, tmp_path, strict):
    (tmp_path / "a.md").write_text(UNTRANSLATED)
    (tmp_path / "b.txt").write_text("a dog\n")
    code, _, messages = run("b.txt", "a.md", "--out", "out", "--report", "left.tsv", *strict)
    assert code == len(strict)
    said = "out/a.md: 1 of 4 segments were left in the source language (en): translation empty or unsafe"
    assert messages.index(said) < messages.index("out/a.md: 4 sentences")
    assert "; 3 of 4 segments\n" in messages
    head, row = (line.split("\t") for line in (tmp_path / "left.tsv").read_text().splitlines())
    assert head == ["source", "output", "reason", "file"]
    assert (row[0], *row[2:]) == ("the dog | a", "translation empty or unsafe", "a.md")
    assert row[1].startswith("das Tier")
    assert (tmp_path / "out/a.md").read_text().endswith("| 1 | the dog \\| a |\n")
    assert run("b.txt", "--strict", "--report", "none.tsv")[0] == 0
    assert (tmp_path / "none.tsv").read_text() == "source\toutput\treason\tfile\n"


def test_files_before_one_with_an_error_are_in_the_report(run, tmp_path):
    (tmp_path / "a.md").write_text(UNTRANSLATED)
    (tmp_path / "b.txt").write_bytes(b"a dog \xff\n")
    code, _, messages = run("a.md", "b.txt", "--format", "markdown", "--out", "out", "--report", "left.tsv")
    assert code == 2
    assert "b.txt" in messages
    assert (tmp_path / "out/a.md").exists()
    assert [row.split("\t")[-1] for row in (tmp_path / "left.tsv").read_text().splitlines()] == ["file", "a.md"]


def test_markup_that_the_model_has_never_seen_comes_back(run, tmp_path):
    """By the attention of the model; messages are marked as fuzzy."""
    (tmp_path / "a.po").write_text('msgid "the dog"\nmsgstr ""\n\nmsgid "the <b>dog</b> sees {it} "\nmsgstr ""\n')
    code, _, messages = run("a.po", "--strict")
    assert code == 0
    assert "; 2 of 2 segments, 1 of them with markup put back by alignment\n" in messages
    *_, last = polib.pofile(str(tmp_path / "a.de.po"))
    assert last.fuzzy
    assert last.msgstr.endswith(" ")
    assert "Tier" in re.sub("<b>|</b>|{it}", " ", last.msgstr).split()
    assert re.findall("<b>|</b>", last.msgstr) == ["<b>", "</b>"]
    assert last.msgstr.count("{it}") == 1


def test_a_word_document_is_read_by_another_program(run, tmp_path):
    document = docx.Document()
    for sentence in DOCUMENTS[0]:
        first, *words = sentence.split(" ")
        paragraph = document.add_paragraph(first)
        paragraph.add_run(f" {' '.join(words)}")
    document.save(str(tmp_path / "a.docx"))
    assert run("a.docx", "--strict")[0] == 0
    found = [[run.text for run in each.runs] for each in docx.Document(str(tmp_path / "a.de.docx")).paragraphs]
    assert found == [[translate(sentence)] for sentence in DOCUMENTS[0]]


def test_files_of_other_languages_are_forced(run, tmp_path):
    (tmp_path / "a.html").write_text("<html lang=fr><p>a dog</p>")
    code, _, messages = run("a.html")
    assert code == 2
    assert "a.html: its source language is fr, but the model translates from en to de" in messages
    assert run("a.html", "--force")[0] == 0
    assert (tmp_path / "a.de.html").read_text() == "<html lang=de><p>ein Tier</p>"


def test_context_none_translates_each_sentence_alone(run, tmp_path):
    (tmp_path / "a.txt").write_text("a dog\n\na house\n")
    assert run("a.txt", "--context", "none")[0] == 0
    assert (tmp_path / "a.de.txt").read_text() == "ein Tier\n\nein Haus\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.doc"], "a.doc: unknown kind of file: name it with --format text | lines"),
        (["a.txt", "--out", "a.txt"], "a.txt: would be overwritten"),
        (["a.txt", "a.de.txt"], "a.de.txt: would be overwritten"),
        (["a.txt", "sub/a.txt", "--out", "new"], "a.txt: would be written for two files"),
        (["a.txt", "--out", "b.txt", "--report", "./b.txt"], "--report b.txt: is one of the other files"),
        (["a.txt", "--report", "a.txt"], "--report a.txt: is one of the other files"),
        (["a.txt", "--input", "a.txt"], "give only one"),
        (["--report", "a.tsv"], "are for files: plain lines"),
        (["--format", "lines", "--out", "new/"], "--out new/: is a folder"),
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
