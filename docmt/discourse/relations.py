"""Relation inventories: the fine relations of a treebank, and the coarse classes that models learn."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from docmt.errors import UserError
from docmt.settings import Settings, nearest


class InventoryFile(Settings):
    """One file of `docmt/discourse/relations/`."""

    title: str
    """The treebank."""
    source: str
    """Publication that describes names and classes."""
    same_unit: str | None
    """The class that joins the parts of an interrupted unit; null when the treebank has none."""
    suffixes: list[str] = []
    """Suffixes that do not change the class; each is removed once, in this order."""
    classes: dict[str, list[str]]
    """The fine relations of each coarse class; case is ignored."""


@dataclass(frozen=True)
class Inventory:
    """The relations of a treebank.

    Attributes:
        classes: coarse classes, sorted.
        same_unit: class of interrupted units, None when there is none.
        class_of: coarse class of each lower-cased fine relation.
        suffixes: suffixes of fine relations that do not change the class.
    """

    name: str
    classes: tuple[str, ...]
    same_unit: str | None
    class_of: dict[str, str]
    suffixes: tuple[str, ...] = ()

    def coarse(self, fine: str) -> str:
        """Look up the coarse class of a fine relation; a coarse class maps to itself.

        Raises:
            UserError: the relation is unknown; the message suggests the nearest known one.
        """
        name = fine.lower()
        found = self.class_of.get(name)
        for suffix in self.suffixes:
            name = name.removesuffix(suffix)
            found = found or self.class_of.get(name)
        if found is None:
            raise UserError(f"relation {fine!r} is not one of {self.name}; {nearest(fine, list(self.class_of))}")
        return found


def inventory_names() -> list[str]:
    """List the available inventories, sorted."""
    folder = resources.files("docmt.discourse") / "relations"
    return sorted(file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml"))


@cache
def load_inventory(name: str) -> Inventory:
    """Load the inventory of a treebank; raises UserError when there is none of this name."""
    if name not in inventory_names():
        raise UserError(f"unknown relation inventory {name!r}; {nearest(name, inventory_names())}")
    text = (resources.files("docmt.discourse") / "relations" / f"{name}.yaml").read_text(encoding="utf-8")
    file = InventoryFile.load(yaml.safe_load(text), where=f"relations/{name}.yaml")
    class_of = {coarse.lower(): coarse for coarse in file.classes}
    for coarse, fine in file.classes.items():
        for relation in fine:
            if class_of.setdefault(relation.lower(), coarse) != coarse:
                raise UserError(f"relations/{name}.yaml: {relation!r} is in two classes")
    return Inventory(name, tuple(sorted(file.classes)), file.same_unit, class_of, tuple(file.suffixes))
