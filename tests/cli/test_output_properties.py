"""Properties of all command outputs, which are collected from function annotations."""

import inspect
import os
import types
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from docmt.cli.main import app
from docmt.commands import OptionalFile, leaves
from docmt.errors import UserError
from docmt.files import write_lines
from docmt.outputs import check_outputs, output_annotation

WRITING_NAMES = {"out", "history", "checkpoints", "into", "relations"}
KEEPING = {
    ("config manual", "into"),
    ("corpora fetch", "out"),
    ("init", "folder"),
    ("models fetch", "out"),
    ("train", "checkpoints"),
}
"""Outputs that keep existing content, so that they need not refuse foreign content."""
COMMANDS = {" ".join(words): command for words, command in leaves(app)}


def bare_type(hint):
    """A type without annotations and without None."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        return bare_type(next(part for part in get_args(hint) if part is not type(None)))
    return hint


def make_value(hint, path):
    """A value with this type that contains a path. None if the type cannot contain a path."""
    kind = bare_type(hint)
    parts = [part for part in get_args(kind) if part is not Ellipsis]
    if kind is Path or kind is OptionalFile:
        return Path(path)
    if kind is str:
        return str(path)
    if get_origin(kind) is Literal or not parts:
        return None
    if bare_type(parts[0]) is str:
        return [f"name={path}"]
    values = [make_value(part, path) for part in parts]
    return values if values[0] is not None else None


class Call:
    """Command arguments by option."""

    def __init__(self, command):
        self.command = command
        self.hints = {}
        self.groups = {}
        for name, hint in get_type_hints(command, include_extras=True).items():
            kind = bare_type(hint)
            if inspect.isclass(kind) and is_dataclass(kind):
                self.groups[name] = kind
                self.hints |= get_type_hints(kind, include_extras=True)
            elif name != "return":
                self.hints[name] = hint
        self.outputs = {name for name, hint in self.hints.items() if output_annotation(hint)}
        self.inputs = {name for name, hint in self.hints.items() if make_value(hint, "path") is not None}
        self.inputs -= self.outputs | {"languages"}

    def arguments(self, **values):
        values = {"languages": ["en", "de"], "files": (), **values}
        arguments = {name: values.get(name) for name in self.hints if name in self.command.__annotations__}
        for name, kind in self.groups.items():
            group = object.__new__(kind)
            for field in get_type_hints(kind):
                object.__setattr__(group, field, values.get(field))
            arguments[name] = group
        return arguments

    def written_paths(self, name, **values):
        output = output_annotation(self.hints[name])
        paths = output.paths or (lambda value, _: [value])
        return [Path(path) for path in paths(values[name], self.arguments(**values))]

    def check(self, *, force=False, **values):
        check_outputs(self.command, self.arguments(**values), [], force=force)


CALLS = {words: Call(command) for words, command in COMMANDS.items()}
OUTPUTS = [(words, name) for words, call in CALLS.items() for name in sorted(call.outputs)]
REPLACED = [output for output in OUTPUTS if output not in KEEPING]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def output_value(call, name):
    return make_value(call.hints[name], "new/result.txt")


def test_writing_options_are_annotated():
    assert len(OUTPUTS) > 45
    for call in CALLS.values():
        assert WRITING_NAMES & call.hints.keys() <= call.outputs | {"relations"}
    assert {name for words, name in OUTPUTS if words == "discourse count-trees"} == {"out", "relations"}
    assert set(OUTPUTS) >= KEEPING


@pytest.mark.parametrize(("words", "name"), OUTPUTS)
@pytest.mark.parametrize("force", [False, True])
def test_no_output_is_an_input(words, name, force):
    call = CALLS[words]
    value = output_value(call, name)
    for path in call.written_paths(name, **{name: value}):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_lines(path, ["docmt wrote this"])  # which is no reason to replace an input
        Path("link").symlink_to(path)
        Path("copy").hardlink_to(path)
        for option in call.inputs:
            for spelling in (path, f"./new/../{path}", path.absolute(), "link", "copy"):
                values = {name: value, option: make_value(call.hints[option], spelling)}
                if words == "translate" and option == "files":
                    values["files"] = (Path(spelling),)
                with pytest.raises(UserError, match=r"is an input|contains the input"):
                    call.check(force=force, **values)
        for link in ("link", "copy"):
            Path(link).unlink()


@pytest.mark.parametrize(("words", "name"), REPLACED)
@pytest.mark.parametrize("kind", ["file", "changed", "link", "dangling link", "pipe"])
def test_foreign_file_is_kept(words, name, kind):
    call = CALLS[words]
    values = {name: output_value(call, name)}
    for path in call.written_paths(name, **values):
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "file":
            path.write_text("mine")
        elif kind == "changed":
            write_lines(path, ["docmt wrote this"])
            call.check(**values)
            path.write_text("mine")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            Path("mine").write_text("mine")
            path.symlink_to(Path("missing" if kind == "dangling link" else "mine").absolute())
        with pytest.raises(UserError):
            call.check(**values)
        if kind in ("file", "changed", "link"):
            call.check(force=True, **values)
        path.unlink()
    call.check(**values)


@pytest.mark.parametrize(("words", "name"), REPLACED)
def test_foreign_folder_is_kept(words, name):
    call = CALLS[words]
    values = {name: output_value(call, name)}
    is_folder = output_annotation(call.hints[name]).is_folder
    for path in call.written_paths(name, **values):
        (path / "thesis").mkdir(parents=True)
        (path / "thesis/chapter.tex").write_text("mine")
        with pytest.raises(UserError) as error:
            call.check(**values)
        assert "\n" not in str(error.value)
        (path / "thesis/chapter.tex").unlink()
        if not is_folder and words != "translate":
            with pytest.raises(UserError, match="is a folder"):
                call.check(force=True, **values)
        (path / "thesis").rmdir()
        path.rmdir()


@pytest.mark.parametrize(("words", "name"), [output for output in REPLACED if output[0] != "translate"])
def test_working_folder_is_no_output(words, name):
    for part in ("mine", "tables/mine"):
        Path(part).parent.mkdir(exist_ok=True)
        Path(part).write_text("mine")
    call = CALLS[words]
    with pytest.raises(UserError):
        call.check(**{name: make_value(call.hints[name], ".")})


@pytest.mark.parametrize("words", [words for words, call in CALLS.items() if len(call.outputs) > 1])
def test_outputs_differ(words):
    call = CALLS[words]
    with pytest.raises(UserError, match="for two inputs or purposes"):
        call.check(**{name: Path("result") for name in call.outputs})
