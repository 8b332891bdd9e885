"""Declaration of commands as typed functions, next to the code that they call.

The parameters of a function are the options of its command, and the docstring is the help. cyclopts builds the command
line from both. It imports in 70 ms, reads Google docstrings, accepts lists after one option, and raises exceptions
instead of ending the process.
"""

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from cyclopts.validators import Number

from docmt.errors import UserError
from docmt.outputs import Output
from docmt.provenance import job_facts_path
from docmt.settings import Settings

# Maximum line length of an example, so that terminals with 80 columns do not break it.
EXAMPLE_WIDTH = 74
MIRROR_VARIABLE = "DOCMT_MIRROR"


def option(help: str, **keywords: Any) -> Parameter:
    """Return the annotation of an option that several commands share."""
    return Parameter(help=help, **keywords)


if TYPE_CHECKING:
    OptionalFile = Path | None
else:

    class OptionalFile:
        """Type of an option with at most one file. A rule passes the option without a file if it has no such input.

        For an option without values, cyclopts makes an empty instance of its type, which must be None here.
        """

        def __new__(cls) -> None:
            return None


def optional_file(help: str) -> Parameter:
    """Return the annotation of an `OptionalFile`."""

    def convert(_: Any, tokens: Sequence[Any]) -> Path:
        if len(tokens) > 1:
            raise ValueError(f"{tokens[0].keyword}: {len(tokens)} files: pass at most one")
        return Path(tokens[0].value)

    return option(help, converter=convert, accepts_keys=False, n_tokens=-1, metavar="PATH")


OutFile = Annotated[Path, option("file to write."), Output()]
OutFolder = Annotated[Path, Output(is_folder=True)]
SharedFolder = Annotated[Path, Output(is_folder=True, keeps_content=True)]
OutWithJobFacts = Annotated[OutFile, Output(lambda out, _: [out, job_facts_path(out)])]
SrcLang = Annotated[str, option("source language code.")]
TgtLang = Annotated[str, option("target language code.")]
Jobs = Annotated[int, option("number of processes.", validator=Number(gte=1))]
# torch crashes if it cannot start its threads.
Threads = Annotated[int, option("CPU threads.", validator=Number(gte=1, lte=1024))]
Mirror = Annotated[Path | None, option("folder with the files of the catalog.", env_var=MIRROR_VARIABLE)]
ModelFingerprint = Annotated[
    str | None,
    option("refuse a model that was trained with another fingerprint. The workflow passes it. Default: accept all."),
]
Positive = Annotated[int, Parameter(validator=Number(gte=1))]
Shard = Annotated[int, option("shard of the documents to process, from 1.")]
NumberOfShards = Annotated[int, option("number of shards.")]


def check_shard(shard: int, n_shards: int) -> None:
    """Raise UserError for a shard that does not exist."""
    if not 1 <= shard <= n_shards:
        raise UserError(f"--shard {shard} --n-shards {n_shards}: the shard must be a number from 1 to {n_shards}")


def files_by_name(option: str, arguments: Sequence[str] | None, *, form: str) -> dict[str, list[Path]]:
    """Return the files in arguments `NAME=FILE`, by name. `form` is such as `DATASET/SUITE=FILE`."""
    files: dict[str, list[Path]] = {}
    for argument in arguments or []:
        name, _, path = argument.partition("=")
        if not path or [bool(word) for word in name.split("/")] != [True] * len(form.split("/")):
            raise UserError(f"{option} {argument}: expected {form}")
        files.setdefault(name, []).append(Path(path))
    return files


def settings_at(where: str, help: str = "") -> Parameter:
    """Return the annotation of a settings option. `where` is the config section, or a name in errors, with `help`."""

    def convert(settings: type[Settings], tokens: Sequence[Any]) -> Settings:
        return settings.from_argument(tokens[0].value, where=where)

    help = help or f"keys of section `{where}` as JSON or @FILE. `docmt config manual` lists them."
    return option(help, converter=convert, accepts_keys=False, n_tokens=1, metavar="JSON", show_default=False)


def as_argument(settings: Any, *, sort_keys: bool = True) -> str:
    """Return settings as one line of JSON. With sorted keys, equal settings give equal text."""
    text = json.dumps(
        settings, sort_keys=sort_keys, ensure_ascii=False, default=lambda part: part.model_dump(mode="json")
    )
    # Snakemake's report writes parameters into a script, which `</script>` would end.
    return text.replace("<", "\\u003c")


class CommandGroup(App):
    """A group of commands, added with the method `command`, or a single command."""

    @App.help.setter
    def help(self, value: str) -> None:
        """Set the description of a group. The help of a single command is its docstring."""
        if self.default_command is None:
            self._help = value

    def default(self, obj: Any = None, **keywords: Any) -> Any:
        """Make a function the only command. `command` also calls this, for the group that it makes of a function.

        The section `Example:` in the docstring ends the help.
        """
        if inspect.isfunction(obj):
            self.help_epilogue = self.help_epilogue or example_of(obj)
            join_lines(obj)
        return super().default(obj, **keywords)


def join_lines(command: Callable[..., Any]) -> None:
    """Join the lines of paragraphs and arguments in a docstring, because cyclopts prints its line breaks."""
    command.__doc__ = re.sub(r"(?<=[^:\n])\n(?: {8})?(?=\S)", " ", inspect.getdoc(command) or "")


def example_of(command: Callable[..., Any]) -> str | None:
    """Return the example in a command docstring, wrapped so that you can paste it into a shell."""
    match = re.search(r"^Example:\n((?: +\S.*\n?)+)", inspect.getdoc(command) or "", re.MULTILINE)
    if match is None:
        return None
    line = " ".join(match[1].split())
    words = textwrap.wrap(line, EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "Example:\n  " + " \\\n    ".join(words)


def option_words(name: str, value: Any) -> list[str]:
    """Return the command-line words for a parameter. None, empty text and empty lists give no words."""
    if value in (None, "", []):
        return []
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, Settings | Mapping):
        value = as_argument(value)
    items = [str(item) for item in ([value] if isinstance(value, str | int | float | Path) else value)]
    if any(item.startswith("-") for item in items):  # would be parsed as options
        return [f"{flag}={item}" for item in items]
    return [flag, *items]


def leaves(app: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Callable[..., Any]]]:
    """Yield the words and the function of all commands in an app."""
    for name in app:
        if name.startswith("-"):
            continue
        function = app[name].default_command
        if function is not None:
            yield (*words, name), function
        yield from leaves(app[name], (*words, name))


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a table. Their common keys are the header."""
    import tabulate  # here, because most commands print no table

    print(tabulate.tabulate(rows, headers="keys", intfmt=",", missingval="", tablefmt="simple"))
