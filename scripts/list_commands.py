"""List all `docmt` commands as Markdown lists inside docs/commands.md.

Prints the lists. With `--write`, replaces them in docs/commands.md (`make docs` does that).
"""

import functools
import inspect
import operator
from pathlib import Path

from marked_page import print_or_write, replace_between_marks

from docmt.cli.main import app
from docmt.commands import leaves

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/commands.md"
NAME = "scripts/list_commands.py"


def usage(words: tuple[str, ...]) -> str:
    """Show the usage of a command in one line. `…` are its options."""
    command = functools.reduce(operator.getitem, words, app)
    if isinstance(command.usage, str):
        return command.usage.removeprefix("Usage: ")
    names = [one.name for one in command.assemble_argument_collection() if one.name != "*"]  # a dataclass of options
    arguments = [name for name in names if not name.startswith("-")]
    return " ".join([*(words[1:] or ("docmt", *words)), *arguments, *(["…"] if len(arguments) < len(names) else [])])


def lists() -> str:
    """A list per group of commands, in alphabetical order."""
    rows: dict[str, list[str]] = {}
    for words, command in leaves(app):
        purpose = (inspect.getdoc(command) or "").partition("\n\n")[0].replace("\n", " ")
        rows.setdefault(f"docmt {words[0]}" if words[1:] else "docmt", []).append(f"- `{usage(words)}`: {purpose}")
    return "\n\n".join("\n".join([f"## `{group}`", "", *rows[group]]) for group in rows) + "\n"


def updated_page(page: str) -> str:
    """The page with the current commands."""
    return replace_between_marks(page, NAME, lists())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, lists, purpose="List all commands of docmt.")
