"""File name patterns, since a role in a split can have many files."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from docmt.current_run import planned_digest
from docmt.errors import UserError
from docmt.languages import find_tags, language_of

MARKS = "._/-"
"""Characters between the words of a file name."""


def is_pattern(name: str | PurePath) -> bool:
    """True if a name is a pattern."""
    return "*" in str(name)


def matching_names(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the sorted matches of a pattern (`*` also matches `/`). A plain name is returned unchanged."""
    if not is_pattern(pattern):
        return [pattern]
    return sorted(name for name in names if fnmatchcase(name, pattern))


def matching_files(path: Path) -> list[tuple[str, Path]]:
    """Return the sorted matches of a pattern, with their names below the last folder without `*`.

    Hidden files and folders are left out unless the pattern contains such a name. A plain path is returned unchanged,
    even if there is no such file.
    """
    if not is_pattern(path):
        return [(path.name, path)]
    # Search below the longest prefix without a pattern.
    n_plain = 0
    while not is_pattern(path.parts[n_plain]):
        n_plain += 1
    folder = Path(*path.parts[:n_plain])
    pattern = "/".join(path.parts[n_plain:])
    # A pattern without a folder does not enter folders, since it would walk through all results.
    paths = _files_below(folder) if "/" in pattern or n_plain else folder.glob(pattern)
    accepts_hidden = "/." in f"/{pattern}"
    names = []
    for file in paths:
        name = file.relative_to(folder).as_posix()
        if file.is_file() and (accepts_hidden or "/." not in f"/{name}"):
            names.append(name)
    return [(name, folder / name) for name in matching_names(pattern, names)]


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder. Linked folders are entered if they are elsewhere, and each of them once."""
    root = folder.resolve()
    entered: set[Path] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        yield from (Path(parent, name) for name in names)
        to_enter = []
        for name in sorted(folders):
            path = Path(parent, name)
            if path.is_symlink():
                target = path.resolve()
                if target in entered or target.is_relative_to(root) or root.is_relative_to(target):
                    continue
                entered.add(target)
            to_enter.append(name)
        folders[:] = to_enter


def existing_files(path: Path) -> list[tuple[str, Path]]:
    """Return `matching_files`. Raises UserError if there are none, or if some were added during the run."""
    files = matching_files(path)
    if not files:
        raise UserError(f"{path}: matches no file")
    added = [file for _, file in files if planned_digest(file) is None]
    if added and len(added) < len(files):  # files that docmt has fetched are never planned
        raise UserError(f"{added[0]}: was added after this run was planned: start the run again to use it")
    return files


def paired_files(paths: Sequence[Path], languages: Sequence[str]) -> list[tuple[str, Path, Path]]:
    """Return name and both files for pairs of matches that differ only in the language.

    Leading zeros are ignored, for example in `show.02.de.srt` and `show.2.en.srt`. Two plain paths are a pair.
    """
    src: dict[str, tuple[str, Path]] = {}
    tgt: dict[str, tuple[str, Path]] = {}
    for side, path in zip((src, tgt), paths, strict=True):
        for file_name, file in existing_files(path):
            name = _without_tags(file_name, languages)
            key = re.sub(r"(?<!\d)0+(?=\d)", "", name)
            if side.setdefault(key, (name, file)) != (name, file):
                raise UserError(f"{file}: differs from another match of {path} only in the language: rename it")
    if not any(map(is_pattern, paths)):
        ((name, src_file),), ((_, tgt_file),) = src.values(), tgt.values()
        return [(name, src_file, tgt_file)]
    for side, other, where in ((src, tgt, paths[1]), (tgt, src, paths[0])):
        for key, (_, file) in side.items():
            if key not in other:
                raise UserError(f"{file}: has no counterpart among {where}")
    return [(name, file, tgt[key][1]) for key, (name, file) in src.items()]


def _without_tags(name: str, languages: Sequence[str]) -> str:
    """Return a file name without its tags of some languages, in any spelling (`en`, `eng`, `en-US`).

    Both languages can be in both names: `dev.en-de.en` and `dev.en-de.de`.
    """
    codes = [language_of(lang) for lang in languages]
    for code, start, end in reversed(list(find_tags(name))):
        if language_of(code) not in codes:
            continue
        before = name[:start]
        after = name[end:]
        if (not before or before[-1] in MARKS) and (not after or after[0] in MARKS):
            name = before[:-1] + after
    return name
