"""What installed packages add to docmt, found through Python entry points."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from docmt.errors import UserError


def load_plugins(
    group: str, built_in: Mapping[str, Any], *, what: str, types: type | tuple[type, ...]
) -> dict[str, Any]:
    """The entries of docmt and those of installed packages, by name.

    Args:
        group: of entry points; the name of an entry point is the name of its entry.
        built_in: entries of docmt itself.
        what: an entry is, for messages.
        types: of valid entries.

    Raises:
        UserError: two packages give one name, or a package fails to import or gives something else.
    """
    loaded, owners = dict(built_in), dict.fromkeys(built_in, "docmt")
    for point in entry_points(group=group):
        package = point.dist.name if point.dist else point.module
        where = f"{what} {point.name!r} of package {package}"
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
        if not isinstance(entry, types):
            names = " or ".join(kind.__name__ for kind in (types if isinstance(types, tuple) else (types,)))
            raise UserError(f"{where}: {point.value} must be a {names}, not {entry!r}")
        loaded[point.name], owners[point.name] = entry, package
    return loaded
