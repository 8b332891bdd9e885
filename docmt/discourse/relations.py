"""Relation inventories: fine relations in treebanks, and the coarse classes that models learn."""

from functools import cache, cached_property
from importlib import resources

import yaml

from docmt.errors import UserError
from docmt.settings import Settings, nearest

FOLDER = resources.files("docmt.discourse") / "inventories"


class Inventory(Settings):
    """Relations in a treebank, from `docmt/discourse/inventories/NAME.yaml`."""

    name: str
    title: str
    """The treebank."""
    source: str
    """Publication with names and classes."""
    suffixes: list[str] = []
    """Suffixes without influence on the class, removed once in this order."""
    classes: dict[str, list[str]]
    """Coarse class → fine relations. Case is ignored."""

    @cached_property
    def class_of(self) -> dict[str, str]:
        """Lower-cased relation → coarse class."""
        class_by_name = {coarse.lower(): coarse for coarse in self.classes}
        for coarse, fine in self.classes.items():
            for relation in fine:
                if class_by_name.setdefault(relation.lower(), coarse) != coarse:
                    raise UserError(f"inventories/{self.name}.yaml: {relation!r} is in two classes")
        return class_by_name

    def coarse(self, fine: str) -> str:
        """Return the coarse class for a fine relation. A coarse class maps to itself."""
        name = fine.lower()
        coarse_class = self.class_of.get(name)
        for suffix in self.suffixes:
            name = name.removesuffix(suffix)
            coarse_class = coarse_class or self.class_of.get(name)
        if coarse_class is None:
            raise UserError(f"relation {fine!r} is not one of {self.name}; {nearest(fine, list(self.class_of))}")
        return coarse_class


def inventory_names() -> list[str]:
    """Return the sorted names of the inventories."""
    return sorted(file.name.removesuffix(".yaml") for file in FOLDER.iterdir() if file.name.endswith(".yaml"))


@cache
def load_inventory(name: str) -> Inventory:
    """Load an inventory by name."""
    if name not in inventory_names():
        raise UserError(f"unknown relation inventory {name!r}; {nearest(name, inventory_names())}")
    values = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return Inventory.load({"name": name, **values}, where=f"inventories/{name}.yaml")
