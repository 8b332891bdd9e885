"""Every command's help has an example, and every example is a call that the command accepts."""

import shlex

import pytest

from docmt.cli.main import GROUPS, build_parser
from docmt.cli.options import CommandParser, read_examples


def leaf_commands(parser):
    """The parsers of all commands below one, itself if it has none."""
    if "commands" not in vars(parser):
        return [parser]
    return [leaf for command in parser.commands.choices.values() for leaf in leaf_commands(command)]


def group_parser(name):
    [groups] = [action for action in build_parser(name)._actions if action.dest == "command"]
    return groups.choices[name]


@pytest.mark.parametrize("name", GROUPS)
def test_every_command_has_an_example_in_its_help(name):
    for command in leaf_commands(group_parser(name)):
        shown = command.format_help()
        assert f"\n  {command.prog}" in shown or f"Example: {command.prog} " in shown, command.prog


@pytest.mark.parametrize("example", read_examples())
def test_examples_are_accepted(example):
    _, *words = shlex.split(example)
    assert build_parser(words[0]).parse_args(words).run


def test_a_long_example_can_be_pasted_into_a_shell():
    parser = CommandParser(prog="docmt train")
    shown = parser.format_help().partition("example:\n")[2]
    [line] = [line for line in read_examples() if line.startswith("docmt train ")]
    assert "\\\n" in shown
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(line)  # as a shell joins lines


def test_a_group_lists_its_commands_without_their_examples():
    assert "example" not in group_parser("text").format_help()
