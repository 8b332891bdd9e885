"""Scores laid out as systems by columns, with separate columns for published numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from docmt.evaluation.metrics import Metric
from docmt.report.differences import Difference, describe_marks
from docmt.report.frames import column, is_missing, keep, means, records
from docmt.report.publications import PublishedNumber
from docmt.report.settings import ReportSettings
from docmt.report.tables import MISSING, Table, blank_repeats, format_score

GUESSING = "(guessing)"  # not a name that a system can have
NAN = float("nan")

Label = tuple[str, ...]


@dataclass(frozen=True)
class GridShape:
    """How rows of `summarize` become a table.

    Attributes:
        by: columns of the rows that name a row of the table; the last one is `system`.
        names: headings of `by`.
        column: the column of the rows that names a column of the table.
        columns: the metric of each of the table's columns, by heading and in order.
        lookup: the published number of a row and a column.
        tested: how a row differs from the baseline in a column.
    """

    by: Sequence[str]
    names: Sequence[str]
    column: str
    columns: Mapping[str, Metric]
    lookup: Callable[[Label, str], PublishedNumber | None]
    tested: Callable[[Label, str], Difference | None] = lambda *_: None


@dataclass(frozen=True)
class Cell:
    """A score of ours, possibly missing, beside the published one."""

    mean: float = NAN
    sd: float = NAN
    seeds: int = 0
    n: int | None = None
    published: PublishedNumber | None = None
    tested: Difference | None = None


Grid = dict[Label, dict[str, Cell]]


def build_grid(
    rows: pd.DataFrame,
    settings: ReportSettings,
    shape: GridShape,
    *,
    key: str,
    title: str,
    caption: str,
    compare: bool = True,
    chance: bool = False,
) -> Table:
    """A table of mean ± deviation, from rows of `summarize`, one per cell.

    The sources of published numbers are added to the caption. `compare` highlights the best system of each group;
    `chance` ends each group with the accuracy of guessing.
    """
    grid = _collect(rows, shape)
    best = _best_cells(grid, shape.columns) if compare else set()
    if chance:
        grid = _with_chance(grid, rows, shape)
    published = [name for name in shape.columns if any(cells[name].published for cells in grid.values())]
    header = [*shape.names, "Seeds"]
    for name in shape.columns:
        header += [name, "published"] if name in published else [name]
    lines, stressed = [], set()
    for i, (label, cells) in enumerate(grid.items()):
        lines.append(_format_line(label, cells, shape.columns, settings=settings, published=published))
        stressed |= {(i, header.index(name)) for name in shape.columns if (label, name) in best}
    shown, breaks = blank_repeats(lines, len(shape.by) - 1)
    return Table(
        key=key,
        title=title,
        caption=caption + describe_marks(_tests(grid), settings) + _describe_published(grid, settings),
        header=header,
        rows=shown,
        values=_values(grid, shape),
        n_labels=len(shape.by),
        best=frozenset(stressed),
        muted=frozenset(i for i, label in enumerate(grid) if label[-1] == GUESSING),
        breaks=breaks,
    )


def _collect(rows: pd.DataFrame, shape: GridShape) -> Grid:
    """Rows stay together by group, in the order of their first appearance."""
    found = {(tuple(row[name] for name in shape.by), row[shape.column]): row for row in records(rows)}
    systems = list(dict.fromkeys(rows["system"]))
    labels = list(dict.fromkeys(label for label, _ in found))
    groups = list(dict.fromkeys(label[:-1] for label in labels))
    labels.sort(key=lambda label: (groups.index(label[:-1]), systems.index(label[-1])))
    grid: Grid = {}
    for label in labels:
        grid[label] = {}
        for name in shape.columns:
            row = found.get((label, name), {})
            ours = {field: row[field] for field in ("mean", "sd", "seeds", "n") if row}
            grid[label][name] = Cell(**ours, published=shape.lookup(label, name), tested=shape.tested(label, name))
    return grid


def _best_cells(grid: Grid, columns: Mapping[str, Metric]) -> set[tuple[Label, str]]:
    """The best means of each group and column in which at least two systems have one."""
    best = set()
    for group in {label[:-1] for label in grid}:
        members = [label for label in grid if label[:-1] == group]
        for name, metric in columns.items():
            scores = {label: grid[label][name].mean for label in members if not is_missing(grid[label][name].mean)}
            if len(scores) > 1:
                wanted = min(scores.values()) if metric.lower_is_better else max(scores.values())
                best |= {(label, name) for label, score in scores.items() if score == wanted}
    return best


def _with_chance(grid: Grid, rows: pd.DataFrame, shape: GridShape) -> Grid:
    extended: Grid = {}
    for group in dict.fromkeys(label[:-1] for label in grid):
        extended |= {label: cells for label, cells in grid.items() if label[:-1] == group}
        members = rows
        for name, value in zip(shape.by, group, strict=False):
            members = keep(members, column(members, name) == value)
        chances = means(members, "chance", by=shape.column)
        extended[*group, GUESSING] = {name: Cell(mean=chances.get(name, NAN)) for name in shape.columns}
    return extended


def _format_line(
    label: Label,
    cells: Mapping[str, Cell],
    columns: Mapping[str, Metric],
    *,
    settings: ReportSettings,
    published: Sequence[str],
) -> list[str]:
    seeds = max(cell.seeds for cell in cells.values())
    line = [*label[:-1], settings.label(label[-1]), str(seeds) if seeds else MISSING]
    for name, cell in cells.items():
        digits = columns[name].digits
        mark = f" {cell.tested.mark}" if cell.tested and cell.tested.mark else ""
        line.append(format_score(cell.mean, cell.sd, digits=digits) + mark)
        if name in published:
            line.append(format_score(cell.published.value if cell.published else NAN, digits=digits))
    return line


def _tests(grid: Grid) -> list[Difference]:
    return [cell.tested for cells in grid.values() for cell in cells.values() if cell.tested]


def _source(number: PublishedNumber) -> str:
    return f"{number.paper}, {number.table}, “{number.label}”"


def _describe_published(grid: Grid, settings: ReportSettings) -> str:
    """Which row of which published table is shown beside which system of ours."""
    pairs = dict.fromkeys(
        f"{settings.label(label[-1])}: {_source(cell.published)}"
        for label, cells in grid.items()
        for cell in cells.values()
        if cell.published
    )
    return f" Published beside {'; '.join(pairs)}." if pairs else ""


def _values(grid: Grid, shape: GridShape) -> pd.DataFrame:
    """The full-precision values; columns without any value are left out."""
    rows: list[dict[str, Any]] = []
    for label, cells in grid.items():
        row: dict[str, Any] = dict(zip(shape.by, label, strict=True))
        for name, cell in cells.items():
            row |= {name: cell.mean, f"{name} sd": cell.sd, f"{name} seeds": cell.seeds, f"{name} n": cell.n}
            row[f"{name} p"] = cell.tested.p if cell.tested else None
            row[f"{name} p (sign test)"] = cell.tested.sign_p if cell.tested else None
            row[f"{name} p (randomization)"] = cell.tested.randomization_p if cell.tested else None
            row[f"{name} published"] = cell.published.value if cell.published else None
        sources = dict.fromkeys(_source(cell.published) for cell in cells.values() if cell.published)
        rows.append(row | {"source": "; ".join(sources) or None})
    return pd.DataFrame(rows).dropna(axis=1, how="all")
