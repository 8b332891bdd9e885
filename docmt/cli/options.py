"""How the modules of the command line declare commands, and the options that many commands share."""

import argparse
import os
import textwrap
from collections.abc import Callable
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

ALL_KEYS = "`docmt config manual` lists the keys"
EXAMPLE_WIDTH = 110
"""Characters of a line of an example."""


def read_examples() -> list[str]:
    """Calls of commands, a line each, for their help."""
    return (resources.files("docmt.cli") / "examples.txt").read_text(encoding="utf-8").splitlines()


MIRROR_VARIABLE = "DOCMT_MIRROR"
SENTENCE_TREES = ("parser", "chain")
"""Where the tree of sentences comes from."""


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Help texts with defaults, where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is argparse.SUPPRESS or action.required:
            return action.help
        return super()._get_help_string(action)


class CommandParser(argparse.ArgumentParser):
    """The parser of a command or of a group of commands."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **keywords)

    @cached_property
    def commands(self) -> "argparse._SubParsersAction[CommandParser]":
        """The commands of a group."""
        return self.add_subparsers(dest="subcommand", required=True, metavar="COMMAND", parser_class=CommandParser)

    def format_help(self) -> str:
        """The help, with an example where a command has one."""
        text = super().format_help()
        if "commands" in vars(self):
            return text
        for example in (line for line in read_examples() if f"{line} ".startswith(f"{self.prog} ")):
            words = textwrap.wrap(example, EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
            text += "\nexample:\n  " + " \\\n    ".join(words) + "\n"
        return text

    def add_command(self, name: str, run: Callable[[argparse.Namespace], int | None], summary: str) -> "CommandParser":
        """Add a command to a group; it calls `run`, which returns the exit code or None for success."""
        command = self.commands.add_parser(name, help=summary, description=summary)
        command.set_defaults(run=run)
        return command

    def add_paths(self, **purposes: str) -> None:
        """Add required options that take one path each: `out="file to write"` adds `--out`."""
        for name, purpose in purposes.items():
            self.add_argument(f"--{name.replace('_', '-')}", type=Path, required=True, help=purpose)

    def add_settings(self, settings: str) -> None:
        """Add `--settings`, which takes the values of a class of settings."""
        self.add_argument("--settings", default="{}", help=f"{settings} as JSON or @FILE; {ALL_KEYS}")

    def add_mirror(self) -> None:
        """Add `--mirror`."""
        self.add_argument(
            "--mirror",
            metavar="DIR",
            default=os.environ.get(MIRROR_VARIABLE) or None,
            help=f"folder with the files of the catalog; or set ${MIRROR_VARIABLE}",
        )


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows with the same keys, which become the header."""
    import tabulate

    print(tabulate.tabulate(rows, headers="keys", intfmt=",", missingval="", tablefmt="simple"))
