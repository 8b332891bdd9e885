"""Commands, each declared once: a typed function beside the code that it calls.

The parameters of the function are the options of the command, and its docstring is the help. cyclopts makes the command
line from them: it imports in 70 ms, reads Google docstrings, takes lists after one option, and raises its errors
instead of ending the process.
"""

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter
from cyclopts.validators import Number

from docmt.files import check_can_write
from docmt.settings import Settings

# Characters of a line of an example, which terminals of 80 columns show unbroken.
EXAMPLE_WIDTH = 74
MIRROR_VARIABLE = "DOCMT_MIRROR"


def option(help: str, **keywords: Any) -> Parameter:
    """The annotation of an option that several commands share: its help and other properties."""
    return Parameter(help=help, **keywords)


def written(help: str) -> Parameter:
    """The annotation of a file to write: whether it can be is seen before the work, which can take hours."""
    return option(help, validator=lambda _, path: None if path is None else check_can_write(path))


OutFile = Annotated[Path, written("file to write.")]
SrcLang = Annotated[str, option("source language code.")]
TgtLang = Annotated[str, option("target language code.")]
Jobs = Annotated[int, option("number of processes.")]
Threads = Annotated[int, option("CPU threads.")]
Mirror = Annotated[Path | None, option("folder with the files of the catalog.", env_var=MIRROR_VARIABLE)]
Positive = Annotated[int, Parameter(validator=Number(gte=1))]


def settings_at(where: str) -> Parameter:
    """The annotation of an option that takes settings; `where` is their place in the config."""

    def convert(settings: type[Settings], tokens: Sequence[Any]) -> Settings:
        return settings.from_argument(tokens[0].value, where=where)

    help = f"keys of section `{where}` as JSON or @FILE. `docmt config manual` lists them."
    return option(help, converter=convert, accepts_keys=False, n_tokens=1, metavar="JSON", show_default=False)


def as_argument(settings: Any) -> str:
    """Settings as one line of JSON with sorted keys: equal settings are equal text."""
    return json.dumps(settings, sort_keys=True, ensure_ascii=False, default=lambda part: part.model_dump(mode="json"))


class CommandGroup(App):
    """A group of commands, to be filled by its method `command`, or a command without a group."""

    def command(self, obj: Any = None, name: Any = None, **keywords: Any) -> Any:
        """Add a function as a command; what its docstring has under `Example:` ends the help."""
        if inspect.isfunction(obj):
            keywords.setdefault("help_epilogue", example_of(obj))
        return super().command(obj, name, **keywords)

    def default(self, obj: Any = None, **keywords: Any) -> Any:
        """Make a function the command itself."""
        if inspect.isfunction(obj) and self.help_epilogue is None:
            self.help_epilogue = example_of(obj)
        return super().default(obj, **keywords)


def example_of(command: Callable[..., Any]) -> str | None:
    """The example in the docstring of a command, wrapped so that it can be pasted into a shell."""
    found = re.search(r"^Example:\n((?: +\S.*\n?)+)", inspect.getdoc(command) or "", re.MULTILINE)
    if found is None:
        return None
    line = " ".join(found[1].split())
    words = textwrap.wrap(line, EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "Example:\n  " + " \\\n    ".join(words)


def option_words(name: str, value: Any) -> list[str]:
    """The words of an option by the name of its parameter; none if it has no value (None, empty text, empty list)."""
    if value in (None, "", []):
        return []
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, Settings | Mapping):
        value = as_argument(value)
    items = [str(item) for item in ([value] if isinstance(value, str | int | float | Path) else value)]
    if any(item.startswith("-") for item in items):  # which would be taken for options
        return [f"{flag}={item}" for item in items]
    return [flag, *items]


def leaves(app: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Callable[..., Any]]]:
    """All commands below an app: the words that call them, and their functions."""
    for name in app:
        if name.startswith("-"):
            continue
        if (function := app[name].default_command) is not None:
            yield (*words, name), function
        yield from leaves(app[name], (*words, name))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the same keys, which become the header."""
    import tabulate  # here, because most commands print no table

    print(tabulate.tabulate(rows, headers="keys", intfmt=",", missingval="", tablefmt="simple"))
