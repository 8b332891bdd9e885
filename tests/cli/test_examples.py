"""Every command's help has an example, and the command accepts it."""

import shlex

import pytest

from docmt.cli.main import app
from docmt.cli.translate import EXAMPLES
from docmt.commands import example_of, leaves

COMMANDS = {" ".join(words): command for words, command in leaves(app)}
CALLS = {name: (example_of(command) or "").partition("\n")[2].replace("\\\n", "") for name, command in COMMANDS.items()}
CALLS["translate"] = next(line for line in EXAMPLES.splitlines() if line.startswith("  docmt translate")).partition(
    "   "
)[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_in_its_help(name, capsys):
    app([*name.split(), "--help"], exit_on_error=False, result_action="return_value")
    assert f"\n  docmt {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_contains_the_whole_description(name, capsys):
    app([*name.split(), "--help"], exit_on_error=False, result_action="return_value")
    description = COMMANDS[name].__doc__.partition("\n\nExample:")[0].partition("\n\nArgs:")[0]
    assert " ".join(description.split()) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_accepted(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(CALLS[name])
    assert program == "docmt"
    for word in words:
        if word.startswith("@"):
            (tmp_path / word[1:]).write_text('{"model": {}, "training": {}}' if name == "train" else "{}")
    command, _, unused, _ = app.parse_known_args(words)
    assert command is COMMANDS[name]
    assert not unused


def test_long_example_can_be_pasted():
    example = example_of(COMMANDS["train"])
    assert " \\\n" in example
    assert max(map(len, example.splitlines())) <= 80
    words = shlex.split(example.partition("\n")[2].replace("\\\n", ""))  # as a shell joins lines
    assert words[:3] == ["docmt", "train", "--settings"]


def test_a_group_lists_its_commands_without_their_examples(capsys):
    app(["text", "--help"], exit_on_error=False, result_action="return_value")
    output = capsys.readouterr().out
    assert "tokenize" in output
    assert "Example" not in output
