"""List data and costs of the papers' configurations inside docs/papers.md, as `docmt config check` prints them.

Prints the table. With `--write`, replaces it in docs/papers.md (`make docs` does that).
"""

from pathlib import Path

from marked_page import print_or_write, replace_between_marks

from docmt.config.artifacts.base import Study
from docmt.config.costs import describe_costs
from docmt.config.loading import load_config, read_config_file

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/papers.md"
NAME = "scripts/list_costs.py"


def costs_table() -> str:
    """The configurations with their data and costs as a Markdown table."""
    lines = ["| config | data | costs |", "|---|---|---|"]
    for path in sorted((ROOT / "config/examples/papers").glob("*.yaml")):
        cells = [line.partition(": ")[2] for line in describe_costs(Study(load_config(read_config_file(path))))]
        lines.append(f"| `{path.stem}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def updated_page(page: str) -> str:
    """The page with the current costs."""
    return replace_between_marks(page, NAME, costs_table())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, costs_table, purpose="List data and costs of the papers' configurations.")
