"""Draw the imports between packages of docmt, as a Mermaid diagram inside docs/architecture.md.

Prints the diagram. With `--write`, replaces it in docs/architecture.md (`make docs` does that).

The arrows are a transitive reduction, so there is no arrow for an import that other arrows imply. There are no arrows
for base modules, because every package may import them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from marked_page import print_or_write, replace_between_marks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
NAME = "scripts/draw_architecture.py"

Graph = dict[str, set[str]]
"""Packages that a package imports."""


def imported_names(file: Path) -> Iterator[str]:
    """First names below `docmt` in a file's imports, at any depth."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "docmt" and len(parts) > 1:
                yield parts[1]


def read_graph(folder: Path) -> Graph:
    """Imports between packages (folders with an `__init__.py`) in a folder."""
    packages = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    graph: Graph = {name: set() for name in packages}
    for name in packages:
        for file in sorted((folder / name).rglob("*.py")):
            graph[name] |= {other for other in imported_names(file) if other in graph and other != name}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    """All direct and indirect imports of a package."""
    packages: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - packages
        packages |= new
        waiting += new
    return packages


def reduce_graph(graph: Graph) -> Graph:
    """The graph without arrows that other arrows imply. Raises ValueError if packages import in a circle."""
    for name in graph:
        if name in reachable(graph, name):
            raise ValueError(f"docmt.{name} imports itself through other packages")
    return {
        name: {other for other in targets if not any(other in reachable(graph, via) for via in targets - {other})}
        for name, targets in graph.items()
    }


def draw(graph: Graph) -> str:
    """The diagram. An arrow points from a package to a package that imports it, in the direction of the data."""
    arrows = [
        f"    {source} --> {target}" for target, sources in reduce_graph(graph).items() for source in sorted(sources)
    ]
    return "\n".join(["```mermaid", "flowchart LR", *sorted(arrows), "```"]) + "\n"


def diagram() -> str:
    """The diagram of the current packages."""
    return draw(read_graph(ROOT / "docmt"))


def updated_page(page: str) -> str:
    """The page with the current diagram."""
    return replace_between_marks(page, NAME, diagram())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, diagram, purpose="Draw which package of docmt imports which.")
