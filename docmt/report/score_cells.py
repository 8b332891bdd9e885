"""Score table cells: means over seeds, published numbers, significance marks, best scores in bold.

A table begins as a frame with one row per cell (`place_cells`). Three functions add columns to the frame:
`add_published`, `add_marks` and `add_best`. `score_table` turns the frame into a table.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from docmt.evaluation.metrics import METRICS
from docmt.evaluation.scoring import Metric
from docmt.report.dataframes import Record, is_missing, means, records
from docmt.report.differences import UNTESTED, Difference, Differences, describe_marks, few_segments_footnote
from docmt.report.footnotes import differing_signatures, signatures_footnote
from docmt.report.numbers import MISSING, format_count, format_score
from docmt.report.publications import PublishedNumber, find_published
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey
from docmt.report.tables import Cell, Column, Table, group, label, number

NAN = float("nan")
MIN_BLEU = 1  # below this, systems do not translate, and no score is highlighted
CHANCE, ITEMS = "(chance)", "(items)"  # not names that a system can have
TESTS = {"p": "p", "p (sign test)": "sign_p", "p (randomization)": "randomization_p"}  # in CSV files


@dataclass(frozen=True)
class Layout:
    """Score table layout.

    Attributes:
        labels: `summarize` columns that identify a table row, by heading. The last column is `system`.
        column: `summarize` column that identifies a table column.
        metrics: metrics by heading, in column order.
        find_key: returns a cell's score key, or None if the cell cannot have a score.
        averaged: scores that are averaged in a column, by heading.
        facts: system properties, by heading. These columns follow the labels.
        find_items: returns the reader's filters for a cell's items. None: the table has no links.
        last: row below every system group, `CHANCE` or `ITEMS`.
    """

    labels: Mapping[str, str]
    column: str
    metrics: Mapping[str, Metric]
    find_key: Callable[[Record], ScoreKey | None]
    averaged: Mapping[str, Sequence[ScoreKey]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    find_items: Callable[[Record], dict[str, str]] | None = None
    last: str | None = None

    @property
    def groups(self) -> list[str]:
        """Columns that group the rows: systems on the same test."""
        return list(self.labels.values())[:-1]


def place_cells(rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return a table's frame with one row per cell, row by row. Cells without a score have missing values.

    Adds `key` (`ScoreKey`) and `is_at_chance` (True if the interval or deviation of an accuracy includes guessing).
    Groups are in order of first appearance. Systems have the same order in all groups.
    """
    names = [*layout.labels.values(), layout.column]
    scored = rows.drop_duplicates(names, keep="last")
    labels = list(dict.fromkeys(scored[names[:-1]].itertuples(index=False, name=None)))
    systems, groups = list(dict.fromkeys(scored["system"])), list(dict.fromkeys(label[:-1] for label in labels))
    labels.sort(key=lambda label: (groups.index(label[:-1]), systems.index(label[-1])))
    every = pd.DataFrame([(*label, heading) for label in labels for heading in layout.metrics], columns=names)
    cells = every.astype({name: scored[name].dtype for name in names}).merge(scored, how="left", on=names)
    bounds = cells[["low", "chance", "high"]].astype("float64").itertuples(index=False)
    signatures = [value if isinstance(value, tuple) else () for value in cells["signatures"]]
    return cells.assign(
        seeds=cells["seeds"].fillna(0).astype("int64"),
        signatures=signatures,
        key=[layout.find_key(cell) for cell in records(cells)],
        is_at_chance=[bool((low <= chance) & (chance <= high)) for low, chance, high in bounds],
    )


def published_number(settings: ReportSettings, system: str, key: ScoreKey) -> PublishedNumber | None:
    """Return the published number that the settings match with a score, or None."""
    dataset = settings.published_dataset(key.dataset, key.test)
    return find_published(settings.published.get(system), dataset, metric=key.metric, phenomenon=key.phenomenon)


def add_published(cells: pd.DataFrame, layout: Layout, settings: ReportSettings) -> pd.DataFrame:
    """Add `published` (the published number) and `source`."""
    values: list[tuple[float | None, str]] = []
    for cell in records(cells):
        keys = layout.averaged.get(cell[layout.column], [cell["key"]] if cell["key"] else [])
        numbers = [number for key in keys if (number := published_number(settings, cell["system"], key))]
        # An average over some published numbers is not comparable with the study's average over all scores.
        if keys and len(numbers) == len(keys):
            source = f"{numbers[0].paper}, {numbers[0].table}, “{numbers[0].label}”"
            values.append((sum(number.value for number in numbers) / len(numbers), source))
        else:
            values.append((None, ""))
    published, sources = zip(*values, strict=True)
    return cells.assign(published=pd.Series(published, dtype="object"), source=sources)


def add_marks(cells: pd.DataFrame, layout: Layout, differences: Differences, baseline: str | None) -> pd.DataFrame:
    """Add `tested` (the paired test against the baseline) and `marks` (significance, and † for incomparable scores).

    Also adds `incomparable` (signature parts that differ from the other scores in the column) and `is_mixed`. If some
    scores on a test and metric were computed in another way, their paired tests have no marks.
    """
    incomparable: dict[Any, tuple[str, str]] = {}
    mixed: set[Any] = set()
    for _, members in cells.groupby([*layout.groups, layout.column], sort=False):
        if parts := differing_signatures(dict(zip(members.index, members["signatures"], strict=True))):
            incomparable |= parts
            mixed.update(members.index)
    tested: list[Difference | None] = []
    marks = []
    for i, cell in zip(cells.index, records(cells), strict=True):
        test = differences.get((baseline, cell["system"], cell["key"])) if cell["key"] else None
        mark = ""
        if test and i not in mixed and not is_missing(cell["mean"]):
            mark = "" if test.is_zero(layout.metrics[cell[layout.column]].digits) else test.mark
        tested.append(test)
        marks.append(tuple(filter(None, [mark, "†" if i in incomparable else ""])))
    reasons = pd.Series([incomparable.get(i) for i in cells.index], dtype="object")
    is_mixed = [i in mixed for i in cells.index]
    return cells.assign(tested=pd.Series(tested, dtype="object"), marks=marks, incomparable=reasons, is_mixed=is_mixed)


def add_best(cells: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Add `is_best`: True for a group's best displayed score if it is above chance and all scores are comparable.

    Tied scores are all best, unless the whole group is tied.
    """
    best = []
    for _, members in cells.groupby([*layout.groups, layout.column], sort=False):
        metric, scored = layout.metrics[members[layout.column].iloc[0]], members.dropna(subset=["mean"])
        if not any(members["is_mixed"]) and is_comparable(metric, scored["n"]):
            rounded = pd.Series([round(mean, metric.digits) for mean in scored["mean"]], scored.index, dtype="float64")
            leaders = scored[rounded == (rounded.min() if metric.lower_is_better else rounded.max())]
            is_above = map(is_above_chance, leaders["mean"], leaders["low"], leaders["chance"])
            best += [
                i for i, above in zip(leaders.index, is_above, strict=True) if above and len(leaders) < len(scored)
            ]
    return cells.assign(is_best=cells.index.isin(best))


def is_above_chance(mean: float, low: float, chance: float) -> bool:
    """True if an accuracy's interval (without an interval, the accuracy) is above chance."""
    return is_missing(chance) or (mean if is_missing(low) else low) > chance


def no_system_translates(rows: pd.DataFrame) -> bool:
    """True if rows from `summarize` have BLEU scores, and all are below `MIN_BLEU`."""
    # External metrics, such as BLEURT, have other scales.
    metrics = {name for name in METRICS if "BLEU" in name}
    scores = [row["mean"] for row in records(rows) if row["metric"] in metrics and not is_missing(row["mean"])]
    return max(scores, default=MIN_BLEU) < MIN_BLEU


def is_comparable(metric: Metric, sizes: Iterable[int | None]) -> bool:
    """True if scores have the same segments. For example, instances can be sentences in one system only."""
    return metric.unit != "instances" or len({size for size in sizes if not is_missing(size)}) <= 1


def score_table(
    rows: pd.DataFrame,
    layout: Layout,
    settings: ReportSettings,
    differences: Differences = UNTESTED,
    *,
    key: str,
    title: str,
    unit: str,
    note: str = "",
    baseline: str | None = None,
    compare: bool = True,
    is_long: bool = False,
) -> Table:
    """Build a table with mean ± deviation from rows of `summarize`, one row per cell.

    The caption contains the unit. The note explains all signs, missing scores and marks, and names the sources of
    published numbers. With `compare`, the best systems in every group are highlighted. If no system translates yet,
    nothing is tested or highlighted.
    """
    if no_system_translates(rows):
        differences, compare = UNTESTED, False
    cells = add_published(place_cells(rows, layout), layout, settings)
    cells = add_marks(cells, layout, differences, baseline or settings.baseline)
    cells = add_best(cells, layout) if compare else cells.assign(is_best=False)
    tested = [test for test in cells["tested"] if test]
    named = zip(cells["system"], cells["source"], strict=True)
    sources = dict.fromkeys(f"{settings.label(system)}: {source}" for system, source in named if source)
    notes = [
        note,
        "Bold: best." if any(cells["is_best"]) else "",
        describe_marks(tested, settings),
        "°: at chance, as the interval or deviation includes it." if any(cells["is_at_chance"]) else "",
        few_segments_footnote(tested),
        *_signature_notes(cells, layout, settings),
        f"Published: {', '.join(sources)}." if sources else "",
    ]
    frame = _pivot(cells, rows, layout)
    return Table(
        key,
        title,
        frame,
        [*_label_columns(layout, settings), *_score_columns(cells, layout)],
        caption=f"{unit}{', mean ± sample deviation over seeds' if max(cells['seeds']) > 1 else ''}.",
        note=" ".join(filter(None, notes)),
        full=_full_values(frame, layout),
        is_long=is_long,
    )


def _pivot(cells: pd.DataFrame, rows: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return one row per table row, with `cells` by heading. Groups end with the row `layout.last`."""
    values_below = means(rows, "chance" if layout.last == CHANCE else "n", by=[*layout.groups, layout.column])
    lines: list[Record] = []
    for name, members in itertools.groupby(records(cells), key=lambda cell: tuple(cell[by] for by in layout.groups)):
        of_group = dict(zip(layout.groups, name, strict=True))
        for system, of_system in itertools.groupby(members, key=lambda cell: cell["system"]):
            by_heading = {cell[layout.column]: cell for cell in of_system}
            lines.append(of_group | {"system": system, "cells": by_heading, "is_muted": False})
        if layout.last is not None:
            values = {heading: values_below.get((*name, heading)) for heading in layout.metrics}
            by_heading = {
                heading: {"mean" if layout.last == CHANCE else "n": value} for heading, value in values.items()
            }
            lines.append(of_group | {"system": layout.last, "cells": by_heading, "is_muted": True})
    return pd.DataFrame(lines)


def _label_columns(layout: Layout, settings: ReportSettings) -> list[Column]:
    *groups, (system, name) = layout.labels.items()
    return [
        *(group(column, heading) for heading, column in groups),
        label(name, system, form=settings.label, short=settings.short_labels),
        *(
            label("system", heading, form=lambda system, words=words: words.get(system, MISSING), is_fact=True)
            for heading, words in layout.facts.items()
        ),
    ]


def _score_columns(cells: pd.DataFrame, layout: Layout) -> list[Column]:
    """Return the seeds column and a column per score, followed by the published score if any."""

    def format_seeds(row: Record) -> str:
        seeds = max(cell.get("seeds", 0) for cell in row["cells"].values())
        return str(seeds) if seeds else MISSING

    columns = [Column("Seeds", format_seeds, scope=lambda seeds: f"{seeds} seed{'s' * (seeds != '1')}")]
    published = set(cells.loc[cells["published"].notna(), layout.column])
    for heading, metric in layout.metrics.items():
        columns.append(Column(heading, partial(_score_cell, heading=heading, metric=metric, layout=layout)))
        if heading in published:
            form = partial(_format_published, heading=heading, digits=metric.digits)
            columns.append(number("cells", "published", form=form))
    return columns


def _score_cell(row: Record, *, heading: str, metric: Metric, layout: Layout) -> Cell:
    cell = row["cells"][heading]
    if row["system"] == ITEMS:
        return Cell(format_count(cell["n"]))
    score = format_score(cell["mean"], cell.get("sd"), digits=metric.digits)
    link = ""
    if layout.find_items and not row["is_muted"] and not is_missing(cell["mean"]):
        link = urlencode({"view": "items", "a": row["system"], **layout.find_items(cell)})
    is_best, is_at_chance = cell.get("is_best", False), cell.get("is_at_chance", False)
    marks = (*cell.get("marks", ()), *(["°"] if is_at_chance else []))
    return Cell(score, marks, is_best=is_best, is_at_chance=is_at_chance, link=link)


def _format_published(cells: Mapping[str, Record], *, heading: str, digits: int) -> str:
    return format_score(cells[heading].get("published"), digits=digits)


def _full_values(frame: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the values in full precision after labels and facts, without empty columns."""
    rows: list[dict[str, Any]] = []
    for cells in frame["cells"]:
        values: dict[str, Any] = {}
        for name in layout.metrics:
            cell = cells[name]
            n = cell.get("n")
            values |= {name: cell.get("mean", NAN), f"{name} sd": cell.get("sd", NAN)}
            values |= {f"{name} seeds": cell.get("seeds", 0), f"{name} n": None if is_missing(n) else round(n)}
            values |= {f"{name} {test}": getattr(cell.get("tested"), kind, None) for test, kind in TESTS.items()}
            values[f"{name} published"] = cell.get("published")
        sources = dict.fromkeys(cell["source"] for cell in cells.values() if cell.get("source"))
        rows.append(values | {"source": "; ".join(sources) or None})
    facts = {heading: [words.get(name) for name in frame["system"]] for heading, words in layout.facts.items()}
    labels = frame[list(layout.labels.values())]
    return pd.concat([labels, pd.DataFrame(facts), pd.DataFrame(rows).dropna(axis=1, how="all")], axis=1)


def _signature_notes(cells: pd.DataFrame, layout: Layout, settings: ReportSettings) -> list[str]:
    """Return notes on scores that are not comparable, on missing scores and on suspect translations."""
    notes, remarks = [], []
    by_row = [*layout.groups, "system"]
    for names, members in itertools.groupby(records(cells), key=lambda cell: tuple(cell[name] for name in by_row)):
        title = " ".join(filter(None, ("/".join(names[:-1]), settings.label(names[-1]))))
        of_row = list(members)
        for cell in of_row:
            if cell["incomparable"]:
                ours, theirs = cell["incomparable"]
                name = cell[layout.column]
                notes.append(f"† {title}, {name}: not comparable, computed with {ours}; the others with {theirs}.")
        if any(cell["signatures"] for cell in of_row):
            remarks.append((title, {cell[layout.column]: cell["signatures"] for cell in of_row}))
    return [*notes, signatures_footnote(remarks)]
