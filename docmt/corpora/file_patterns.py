"""Patterns of file names: one role of a split can name many files."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PurePath


def is_pattern(name: str | PurePath) -> bool:
    """Whether a name is a pattern of many files."""
    return "*" in str(name)


def matching_names(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern matches, sorted (`*` also matches `/`); a plain name is returned unchanged."""
    return sorted(name for name in names if fnmatchcase(name, pattern)) if is_pattern(pattern) else [pattern]


def matching_files(path: Path) -> list[tuple[str, Path]]:
    """The files that a pattern matches, sorted, with their names below its last folder without `*`.

    Hidden files, and files in hidden folders, are left out unless the pattern has such a name.
    A plain path is returned unchanged, whether there is such a file or not.
    """
    if not is_pattern(path):
        return [(path.name, path)]
    # The folder to search is the longest beginning of the path without a pattern.
    n_plain = next(n for n, part in enumerate(path.parts) if is_pattern(part))
    folder = Path(*path.parts[:n_plain])
    pattern = "/".join(path.parts[n_plain:])
    # A pattern without a folder does not enter folders: it would walk through all results.
    found = folder.rglob("*") if "/" in pattern or n_plain else folder.glob(pattern)
    names = (file.relative_to(folder).as_posix() for file in found if file.is_file())
    has_hidden = "/." in f"/{pattern}"
    return [(name, folder / name) for name in matching_names(pattern, names) if has_hidden or "/." not in f"/{name}"]
