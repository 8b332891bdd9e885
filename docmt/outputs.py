"""Outputs of a command: which options name them, and whether the command may write them.

`check_outputs` runs before every command. An output is never an input of the same command. Existing data are only
replaced if docmt wrote them (`docmt.checksums`), or with `docmt --force`.
"""

import contextlib
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from docmt import checksums
from docmt.errors import UserError
from docmt.files import UNFINISHED
from docmt.settings import Settings, read_argument

MANIFEST = "manifest.json"
"""File in a folder of instances, all of whose files are read."""
SPLIT_FILE = re.compile(r"(?P<prefix>.+?)\.([a-z]{2,3}|documents\.tsv|discourse\.jsonl|counts\.json)")
"""Name pattern for files of a split, which commands also read by their prefix."""


@dataclass(frozen=True)
class Output:
    """Annotation of an option that names an output.

    Attributes:
        paths: function from the value and all arguments of the command to the written files and folders. Default: the
            value.
        is_folder: True if the paths can be folders, which are replaced.
        keeps_content: True if the command replaces nothing but its own content in an existing file or folder.
    """

    paths: Callable[[Any, Mapping[str, Any]], Iterable[Path]] | None = None
    is_folder: bool = False
    keeps_content: bool = False


def suffixed(*suffixes: str, option: str = "") -> Output:
    """Return the annotation of a path without suffix. `option` contains more suffixes, such as language codes."""

    def paths(path: Path, arguments: Mapping[str, Any]) -> list[Path]:
        # The command reports languages that are the same.
        unique = dict.fromkeys([*suffixes, *arguments.get(option, ())])
        return [path.with_name(f"{path.name}.{suffix}") for suffix in unique]

    return Output(paths)


def options_of(owner: Callable[..., Any], arguments: Mapping[str, Any]) -> Iterator[tuple[Any, Output | None]]:
    """Yield the values of a command's options, also of grouped options, with the annotations of outputs."""
    hints = get_type_hints(owner, include_extras=True)
    for name, value in arguments.items():
        if is_dataclass(value):
            yield from options_of(type(value), vars(value))
        else:
            yield value, output_annotation(hints[name])


def output_annotation(hint: Any) -> Output | None:
    """Return the last annotation of an output in a type, which can be a union with None."""
    annotations = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Output)]
    inner = (output_annotation(part) for part in get_args(hint))
    return annotations[-1] if annotations else next(filter(None, inner), None)


def check_outputs(
    command: Callable[..., Any], arguments: Mapping[str, Any], words: Sequence[str], *, force: bool
) -> None:
    """Raise UserError if a command would replace one of its inputs, or data that docmt did not write.

    Args:
        command: function of the command.
        arguments: its arguments by name, with defaults.
        words: words of the command line, which contain the names of files with settings (`@FILE`).
        force: accept data that docmt did not write.
    """
    options = list(options_of(command, arguments))
    outputs: list[tuple[Path, Output]] = []
    for value, output in options:
        if output is None or value is None:
            continue
        try:
            paths = output.paths(value, arguments) if output.paths else [value]
        except ValueError:  # without a name, to which a suffix could be added
            raise UserError(f"{value}: is a folder, not a file") from None
        outputs += [(path, output) for path in paths]
    identities = [_identity(path) for path, _ in outputs]
    for number, (path, _) in enumerate(outputs):
        if identities[number] in identities[:number]:
            raise UserError(f"{path}: is the output for two inputs or purposes: choose different names")
    if not any(os.path.lexists(path) for path, _ in outputs):
        inputs = {}  # absent files cannot be inputs
    else:
        values = [value for value, output in options if output is None]
        values += [f"@{word.partition('@')[2]}" for word in words if "@" in word]
        inputs = {_identity(path): path for path in _input_files(values)}
    for (path, output), identity in zip(outputs, identities, strict=True):
        if path.exists() and identity in inputs:
            raise UserError(f"{path}: is an input of this command and would be overwritten: choose another output")
        _check_writable(path, output)
        if output.keeps_content or not path.exists():
            continue
        for file in inputs.values() if path.is_dir() else ():
            if _is_inside(file, path):
                raise UserError(f"{path}: contains the input {file}, which would be deleted: choose another folder")
        foreign = None if force else next(_foreign_files(path), None)
        if foreign is not None:
            raise UserError(
                f"{foreign}: would be lost, because docmt did not write it, or it was changed since: choose another "
                "output, or move it away; `docmt --force COMMAND …` replaces it"
            )


def _check_writable(path: Path, output: Output) -> None:
    if path.suffix == ".gz":
        raise UserError(f"{path}: docmt does not compress its outputs: remove .gz from the name")
    if path.is_symlink() and not path.exists():
        raise UserError(f"{path}: is a link to a missing file: remove it, or choose another output")
    if path.is_dir() and not output.is_folder:
        raise UserError(f"{path}: is a folder, not a file")
    if path.exists() and not (path.is_dir() or path.is_file()):
        raise UserError(f"{path}: is a device or a pipe, not a file: choose another output")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir():
        raise UserError(f"{path}: cannot be written, because {parent} is a file")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"{path}: cannot be written: {parent} is read-only")


def _identity(path: Path) -> Hashable:
    """Return device and inode, or the resolved path of a missing file."""
    try:
        facts = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return facts.st_dev, facts.st_ino


def _is_inside(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _input_files(values: Iterable[Any]) -> Iterator[Path]:
    """Yield the existing files and folders that are named in arguments, also relative to the folders among them."""
    names = {name for value in values for name in _names(value)}
    prefixes = {name for name in names if isinstance(name, Path)}
    # Settings name files in a folder that an option names.
    folders = [Path(), *(Path(name) for name in names if os.path.isdir(name))]
    for path in prefixes | {folder / word for folder in folders for word in names - prefixes}:
        if os.path.exists(path):
            yield path
        if os.path.exists(path / MANIFEST):
            yield from path.iterdir()
    for folder in {prefix.parent for prefix in prefixes}:
        for file in folder.glob("*.*"):
            split = SPLIT_FILE.fullmatch(file.name)
            if split and folder / split["prefix"] in prefixes:
                yield file


def _names(value: Any) -> Iterator[str | Path]:
    """Yield the paths in an argument, and the texts that can be paths."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, str) and value.startswith(("{", "@")):
        yield value.removeprefix("@")
        with contextlib.suppress(UserError):  # the command reports it
            yield from _names(read_argument(value, where=""))
    elif isinstance(value, str):
        yield from filter(None, (value, value.partition("=")[2]))  # NAME=FILE
    elif isinstance(value, Settings):
        yield from _names(vars(value))
    elif isinstance(value, Mapping):
        yield from _names([*value.values()])
    elif isinstance(value, Sequence):
        for part in value:
            yield from _names(part)


def _foreign_files(path: Path) -> Iterator[Path]:
    """Yield a file, or the files in a folder, that differ from what docmt wrote."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        is_temporary = any(UNFINISHED.fullmatch(part) for part in file.relative_to(path).parts[:-1])
        is_record = file.parent.name == checksums.FOLDER and file.suffix in (checksums.VERIFIED, checksums.EDITABLE)
        is_folder = file.is_dir() and not file.is_symlink()
        if not (is_temporary or is_record or is_folder or checksums.is_unchanged(file)):
            yield file
