"""List the metrics of docmt, which docmt/evaluation/metrics.py declares, inside docs/evaluation.md.

Prints the table. With `--write`, replaces it in docs/evaluation.md (`make docs` does that).
"""

from pathlib import Path

from marked_page import print_or_write, replace_between_marks

from docmt.evaluation.metrics import METRICS

PAGE = Path(__file__).parents[1] / "docs/evaluation.md"
NAME = "scripts/list_metrics.py"


def metrics_table() -> str:
    """The metrics as a Markdown table."""
    lines = ["| metric | segment | how | needs |", "|---|---|---|---|"]
    for name, metric in METRICS.items():
        segment, needs = (metric.unit or "–").removesuffix("s"), ", ".join(metric.needs) or "–"
        lines.append(f"| `{name}` | {segment} | {metric.about} | {needs} |")
    return "\n".join(lines) + "\n"


def updated_page(page: str) -> str:
    """The page with the current metrics."""
    return replace_between_marks(page, NAME, metrics_table())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, metrics_table, purpose="List all metrics of docmt.")
