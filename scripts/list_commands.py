"""List all `docmt` commands with their options, as Markdown tables inside docs/files.md.

Prints the tables; with `--write`, replaces them in docs/files.md (`make docs` does that).
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from marked_page import print_or_write, replace_between_marks

from docmt.cli.main import GROUPS, build_parser

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/files.md"
NAME = "scripts/list_commands.py"


def leaves(parser: argparse.ArgumentParser, purpose: str) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """All commands below a parser that have no commands below themselves, each with its purpose."""
    # argparse has no public way to ask for subcommands and their help.
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not actions:
        yield parser, purpose
    for action in actions:
        purposes = {choice.dest: choice.help or "" for choice in action._choices_actions}
        for name, command in action.choices.items():
            yield from leaves(command, purposes[name])


def value_of(action: argparse.Action) -> str:
    """The placeholder for the value of an option, empty for a switch."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        words = [action.metavar] if isinstance(action.metavar, str) else list(action.metavar)
    elif action.choices is not None:
        words = ["{" + ",".join(str(choice) for choice in action.choices) + "}"]
    else:
        words = [action.dest.upper()]
    if isinstance(action.nargs, int):
        words = (words * action.nargs)[: action.nargs]
    return " ".join(words) + (" …" if action.nargs in ("+", "*") else "")


def call_of(action: argparse.Action) -> str:
    """An option with the placeholder of its value, or the placeholder of an argument."""
    option = max(action.option_strings, key=len, default="")
    return " ".join(filter(None, [option, value_of(action)]))


def usage(parser: argparse.ArgumentParser) -> str:
    """Show in one line how a command is called; argparse's own line depends on the version of Python."""
    alternatives = {
        action: group
        for group in parser._mutually_exclusive_groups
        if group.required
        for action in group._group_actions
    }
    parts = [parser.prog]
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        is_needed = action.required if action.option_strings else action.nargs not in ("?", "*")
        if action not in alternatives:
            parts.append(call_of(action) if is_needed else f"[{call_of(action)}]")
        elif action is alternatives[action]._group_actions[0]:
            parts.append(f"({' | '.join(call_of(other) for other in alternatives[action]._group_actions)})")
    return " ".join(parts)


def tables() -> str:
    """A table for each group of commands, in the order of `docmt --help`."""
    blocks = []
    for group in GROUPS:
        rows = [
            f"| `{usage(command)}` | {' '.join(purpose.split())} |".replace(" | -", r" \| -")
            for command, purpose in leaves(build_parser(group), "")
            if command.prog.split()[1] == group
        ]
        blocks.append("\n".join([f"### `docmt {group}`", "", "| call | purpose |", "|---|---|", *rows]))
    return "\n\n".join(blocks) + "\n"


def updated_page(page: str) -> str:
    """The page with today's commands."""
    return replace_between_marks(page, NAME, tables())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, tables, purpose="List all commands of docmt with their options.")
