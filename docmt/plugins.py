"""Additions of installed packages to docmt, found through Python entry points."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from docmt.errors import UserError
from docmt.settings import nearest

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Registry(Generic[Entry]):
    """The entries of docmt and of installed packages, by name.

    Attributes:
        group: of entry points; the name of an entry point is the name of its entry.
        what: an entry is, for messages.
        types: of valid entries, for `isinstance`.
        built_in: entries of docmt.
    """

    group: str
    what: str
    types: Any
    built_in: Mapping[str, Entry]

    def find(self, name: str) -> Entry:
        """The entry of a name. Raises ValueError that names the nearest known one."""
        # Other packages are only imported for names that docmt does not have: a broken one must not break these.
        found = self.built_in.get(name) or self.all.get(name)
        if found is None:
            article = "an" if self.what[0] in "aeiou" else "a"
            raise ValueError(f"must be {article} {self.what} ({nearest(name, list(self.all))})")
        return found

    def packages(self, names: Iterable[str]) -> list[str]:
        """The installed packages that add entries of some names."""
        added = {*names} - self.built_in.keys()
        return [point.dist.name for point in entry_points(group=self.group) if point.name in added and point.dist]

    @cached_property
    def all(self) -> dict[str, Entry]:
        """All entries. Raises UserError when packages clash, fail to import, or give something else."""
        loaded, owners = dict(self.built_in), dict.fromkeys(self.built_in, "docmt")
        for point in entry_points(group=self.group):
            package = point.dist.name if point.dist else point.module
            where = f"{self.what} {point.name!r} of package {package}"
            if point.name in loaded:
                raise UserError(
                    f"{where}: {owners[point.name]} has one of the same name: rename one or uninstall the package"
                )
            try:
                entry = point.load()
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise UserError(
                    f"{where}: {point.value} cannot be imported ({reason}): repair or uninstall the package"
                ) from error
            if not isinstance(entry, self.types):
                names = " or ".join(kind.__name__ for kind in getattr(self.types, "__args__", (self.types,)))
                raise UserError(f"{where}: {point.value} must be a {names}, not {entry!r}")
            loaded[point.name], owners[point.name] = entry, package
        return loaded
