"""Scores laid out as systems by columns, published numbers in columns of their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from docmt.report.publications import PublishedNumber
from docmt.report.settings import ReportSettings
from docmt.report.tables import MISSING, Table, blank_repeats, format_score

GUESSING = "(guessing)"  # not a name that a system can have
NAN = float("nan")

Label = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """A score of ours, possibly missing, beside the published one."""

    mean: float = NAN
    sd: float = NAN
    seeds: int = 0
    n: int | None = None
    published: PublishedNumber | None = None


Grid = dict[Label, dict[str, Cell]]


def build_grid(
    rows: pd.DataFrame,
    settings: ReportSettings,
    *,
    by: Sequence[str],
    column: str,
    columns: Sequence[str],
    names: Sequence[str],
    lookup: Callable[[Label, str], PublishedNumber | None],
    key: str,
    title: str,
    caption: str,
    digits: int,
    compare: bool = True,
    chance: bool = False,
) -> Table:
    """A table of mean ± deviation.

    Args:
        rows: of `summarise`, one per cell.
        settings: how systems are called.
        by: columns of `rows` that name a row of the table; the last one is `system`.
        column: the column of `rows` that names a column of the table.
        columns: names of the table's columns, in order.
        names: headings of `by`.
        lookup: the published number of a row and a column.
        key, title, caption: of the table.
        digits: after the point.
        compare: stress the best system of each group.
        chance: end each group with the accuracy of guessing.
    """
    grid = _collect(rows, by=by, column=column, columns=columns, lookup=lookup)
    best = _best_cells(grid, columns) if compare else set()
    if chance:
        grid = _with_chance(grid, rows, by=by, column=column, columns=columns)
    published = [name for name in columns if any(cells[name].published for cells in grid.values())]
    header = [*names, "Seeds"]
    for name in columns:
        header += [name, "published"] if name in published else [name]
    lines, stressed = [], set()
    for i, (label, cells) in enumerate(grid.items()):
        lines.append(_format_line(label, cells, settings=settings, published=published, digits=digits))
        stressed |= {(i, header.index(name)) for name in columns if (label, name) in best}
    shown, breaks = blank_repeats(lines, len(by) - 1)
    return Table(
        key=key,
        title=title,
        caption=caption + _describe_published(grid, settings),
        header=header,
        rows=shown,
        values=_values(grid, by, columns),
        n_labels=len(by),
        best=frozenset(stressed),
        muted=frozenset(i for i, label in enumerate(grid) if label[-1] == GUESSING),
        breaks=breaks,
    )


def _collect(
    rows: pd.DataFrame,
    *,
    by: Sequence[str],
    column: str,
    columns: Sequence[str],
    lookup: Callable[[Label, str], PublishedNumber | None],
) -> Grid:
    """Rows stay together by group, in the order of their first appearance."""
    found = {(tuple(getattr(row, name) for name in by), getattr(row, column)): row for row in rows.itertuples()}
    systems = list(dict.fromkeys(rows["system"]))
    labels = list(dict.fromkeys(label for label, _ in found))
    groups = list(dict.fromkeys(label[:-1] for label in labels))
    labels.sort(key=lambda label: (groups.index(label[:-1]), systems.index(label[-1])))
    grid: Grid = {}
    for label in labels:
        grid[label] = {}
        for name in columns:
            row, number = found.get((label, name)), lookup(label, name)
            ours = {} if row is None else {"mean": row.mean, "sd": row.sd, "seeds": row.seeds, "n": row.n}
            grid[label][name] = Cell(**ours, published=number)
    return grid


def _best_cells(grid: Grid, columns: Sequence[str]) -> set[tuple[Label, str]]:
    """The highest means of each group and column in which at least two systems have one."""
    best = set()
    for group in {label[:-1] for label in grid}:
        members = [label for label in grid if label[:-1] == group]
        for name in columns:
            means = {label: grid[label][name].mean for label in members if pd.notna(grid[label][name].mean)}
            if len(means) > 1:
                best |= {(label, name) for label, mean in means.items() if mean == max(means.values())}
    return best


def _with_chance(grid: Grid, rows: pd.DataFrame, *, by: Sequence[str], column: str, columns: Sequence[str]) -> Grid:
    extended: Grid = {}
    for group in dict.fromkeys(label[:-1] for label in grid):
        extended |= {label: cells for label, cells in grid.items() if label[:-1] == group}
        members = rows
        for name, value in zip(by, group, strict=False):
            members = members[members[name] == value]
        means = members.groupby(column)["chance"].mean()
        extended[*group, GUESSING] = {name: Cell(mean=means.get(name, NAN)) for name in columns}
    return extended


def _format_line(
    label: Label, cells: dict[str, Cell], *, settings: ReportSettings, published: Sequence[str], digits: int
) -> list[str]:
    seeds = max(cell.seeds for cell in cells.values())
    line = [*label[:-1], settings.labels.get(label[-1], label[-1]), str(seeds) if seeds else MISSING]
    for name, cell in cells.items():
        line.append(format_score(cell.mean, cell.sd, digits=digits))
        if name in published:
            line.append(format_score(cell.published.value if cell.published else NAN, digits=digits))
    return line


def _source(number: PublishedNumber) -> str:
    return f"{number.paper}, {number.table}, “{number.label}”"


def _describe_published(grid: Grid, settings: ReportSettings) -> str:
    """Which row of which published table stands beside which system of ours."""
    pairs = dict.fromkeys(
        f"{settings.labels.get(label[-1], label[-1])}: {_source(cell.published)}"
        for label, cells in grid.items()
        for cell in cells.values()
        if cell.published
    )
    return f" Published beside {'; '.join(pairs)}." if pairs else ""


def _values(grid: Grid, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The full-precision values; columns without any value are left out."""
    rows: list[dict[str, Any]] = []
    for label, cells in grid.items():
        row: dict[str, Any] = dict(zip(by, label, strict=True))
        for name in columns:
            cell = cells[name]
            row |= {name: cell.mean, f"{name} sd": cell.sd, f"{name} seeds": cell.seeds, f"{name} n": cell.n}
            row[f"{name} published"] = cell.published.value if cell.published else None
        sources = dict.fromkeys(_source(cell.published) for cell in cells.values() if cell.published)
        rows.append(row | {"source": "; ".join(sources) or None})
    return pd.DataFrame(rows).dropna(axis=1, how="all")
