"""Outputs never replace inputs, or data from other programs."""

import contextlib
import hashlib
import inspect
import os
import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest
from core_fixtures import RECIPE, model_settings

from docmt.cli.main import app, main
from docmt.commands import as_argument, leaves
from docmt.outputs import _input_files, output_annotation

WRITES = {"out", "history", "checkpoints", "into"}
"""Names of output options. New ones must have the annotation as well."""
RENDER = ("report", "render", "--settings", "{}", "--study", "{}", "--scores", "a.de", "--out")
COMPARE = ("evaluate", "compare", "--src-lang", "en", "--tgt-lang", "de", "--references", "a.de", "--hypotheses")
SETTINGS = as_argument({"model": model_settings().model_dump(), "training": RECIPE})
TRAIN = ("train", "--settings", SETTINGS, "--train", "a", "--dev", "a", "--vocabulary", "vocabulary.txt")
TRAIN = (*TRAIN, "--pipeline", "pipeline.json", "--seed", "1", "--devices", "1")


def command_options():
    """All command options with their annotations, including options in groups."""
    for words, command in leaves(app):
        waiting = [*get_type_hints(command, include_extras=True).items()]
        while waiting:
            name, hint = waiting.pop()
            owner = hint if is_dataclass(hint) else getattr(hint, "__origin__", None)
            if inspect.isclass(owner) and is_dataclass(owner):
                waiting += get_type_hints(owner, include_extras=True).items()
            elif name != "return":
                yield " ".join(words), name, output_annotation(hint)


def test_options_that_write_are_marked():
    options = [(words, name) for words, name, _ in command_options() if name in WRITES]
    marked = [(words, name) for words, name, output in command_options() if output]
    assert len(marked) > 40
    assert [option for option in options if option not in marked] == []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with user files."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "codes", "model.pt", "vocabulary.txt", "pipeline.json", "my.yaml", "a.documents.tsv"):
        Path(name).write_text(f"{name}: mine\n")
    Path("thesis").mkdir()
    Path("thesis/chapter.tex").write_text("mine\n")
    Path("paper/tables").mkdir(parents=True)
    Path("paper/tables/mine.tex").write_text("mine\n")
    Path("train.en").write_text("mine\n")
    os.symlink("missing", "dangling")
    return tmp_path


def digest(folder):
    """All paths, links and contents in a folder."""
    paths = sorted(folder.rglob("*"))
    content = [(str(path), path.read_bytes() if path.is_file() else os.path.lexists(path)) for path in paths]
    return hashlib.sha256(repr(content).encode()).hexdigest()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "a.en"), "is an input"),
        (("text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "thesis"), "is a folder"),
        (("text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "a.de"), "would be lost"),
        (("text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "dangling"), "is a link"),
        (("text", "apply-bpe", "--codes", "codes", "--input", "a.en", "--out", "codes"), "is an input"),
        (("text", "apply-bpe", "--codes", "codes", "--input", "a.en", "--out", "./codes"), "is an input"),
        (("corpora", "combine", "--inputs", "a", "--languages", "en", "de", "--out", "a"), "is an input"),
        (("translate", "a.en", "--model", "model.pt", "--out", "model.pt"), "is an input"),
        (("translate", "--model", "model.pt", "--out", "model.pt"), "is an input"),
        (("translate", "a.en", "--model", "model.pt", "--out", "a.de"), "would be lost"),
        (("config", "schema", "--out", "my.yaml"), "would be lost"),
        (("controlled", "generate", "--settings", '{"generator": "flat"}', "--out", "."), "would be lost"),
        ((*RENDER, "paper"), "would be lost"),
        (
            (*TRAIN, "--init", "model.pt", "--checkpoints", "c", "--history", "h.csv", "--out", "model.pt"),
            "is an input",
        ),
        ((*TRAIN, "--init", "model.pt", "--checkpoints", "c", "--history", "model.pt", "--out", "b.pt"), "is an input"),
        ((*TRAIN, "--checkpoints", "c", "--history", "h.csv", "--out", "vocabulary.txt"), "is an input"),
        ((*TRAIN, "--checkpoints", "c", "--history", "b.pt", "--out", "b.pt"), "for two inputs or purposes"),
        ((*COMPARE, "X=a.en", "--out", "a.en"), "is an input"),
    ],
)
def test_slip_changes_nothing(folder, capsys, words, problem):
    before = digest(folder)
    assert main(list(words)) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1
    assert digest(folder) == before


@pytest.mark.parametrize("name", ["thesis", "thesis/manifest.json", "."])
def test_foreign_folder_is_kept(folder, capsys, name):
    before = digest(folder)
    words = ["instances", "build", "--settings", "{}", "--texts", "a.en", "a.de", "--documents", "a.documents.tsv"]
    assert main([*words, "--vocabulary", "vocabulary.txt", "--out", name]) == 2
    assert re.search("would be lost|contains the input", capsys.readouterr().err)
    assert digest(folder) == before


def test_own_command_can_be_repeated(folder, capsys):
    words = ["text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "tokens.en"]
    assert main(words) == main(words) == 0
    Path("tokens.en").write_text("edited\n")
    assert main(words) == 2
    assert "docmt --force" in capsys.readouterr().err
    assert main(["--force", *words]) == 0
    assert Path("tokens.en").read_text() != "edited\n"


def test_force_never_replaces_an_input(folder, capsys):
    words = ["text", "tokenize", "--settings", "{}", "--lang", "en", "--input", "a.en", "--out", "a.en"]
    assert main(["--force", *words]) == 2
    assert "is an input" in capsys.readouterr().err
    assert main(["config", "schema", "--out", "schema.json"]) == main(["config", "schema", "--out", "schema.json"]) == 0


@pytest.mark.parametrize("kind", ["files", "folders"])
def test_checks_grow_with_the_files(kind, tmp_path, monkeypatch):
    steps = []

    def count_entries(path, scan=os.scandir):
        with scan(path) as entries:
            steps.extend(names := list(entries))
        return contextlib.nullcontext(iter(names))

    monkeypatch.setattr(os, "scandir", count_entries)
    monkeypatch.setattr(os, "stat", lambda *words, stat=os.stat, **more: steps.append(words) or stat(*words, **more))
    counts = []
    for n in (10, 40):
        paths = [tmp_path / str(n) / str(number) for number in range(n)]
        paths[0].parent.mkdir()
        for path in paths:
            path.mkdir() if kind == "folders" else path.touch()
        steps.clear()
        assert set(_input_files([paths])) == set(paths)
        counts.append(len(steps))
    assert counts[1] < 6 * counts[0]
