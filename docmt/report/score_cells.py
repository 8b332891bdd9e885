"""Score table cells: means over seeds, published numbers, significance marks, best scores in bold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlencode

import pandas as pd

from docmt.evaluation.metrics import METRICS
from docmt.evaluation.scoring import Metric
from docmt.report.dataframes import Record, is_missing, means, records, select
from docmt.report.differences import UNTESTED, Difference, Differences, describe_marks, few_segments_footnote
from docmt.report.footnotes import differing_signatures, signatures_footnote
from docmt.report.numbers import MISSING, format_count, format_score
from docmt.report.publications import PublishedNumber, find_published
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey
from docmt.report.tables import BOLD_NOTE, Cell, Column, Table, group, label

NAN = float("nan")
MIN_BLEU = 1  # below this, systems do not translate, and no score is highlighted
# Rows below the systems, with names that a system cannot have
CHANCE = "(chance)"
ITEMS = "(items)"
TESTS = {"p": "p", "p (sign test)": "sign_p", "p (randomization)": "randomization_p"}  # in CSV files


@dataclass(frozen=True)
class Layout:
    """Score table layout.

    Attributes:
        labels: `summarize` columns that identify a table row, by heading. The last column is `system`.
        column: `summarize` column that identifies a table column.
        metrics: metrics by heading, in column order.
        find_key: returns a cell's score key from its row and column, or None if the cell cannot have a score.
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


@dataclass
class ScoreCell:
    """A score over seeds as in `summarize`, with its signs. Without a score, the mean is NaN.

    Attributes:
        names: row and column, by `summarize` column.
        published: published number with its source.
        test: paired test against the baseline, and its significance mark.
        unlike: signature parts that differ from the other scores in the column, and the parts of these scores.
    """

    names: Record = field(default_factory=dict)
    key: ScoreKey | None = None
    mean: float = NAN
    sd: float = NAN
    seeds: int = 0
    n: float | None = None
    chance: float = NAN
    low: float = NAN
    high: float = NAN
    signatures: tuple[str, ...] = ()
    published: float | None = None
    source: str = ""
    test: Difference | None = None
    mark: str = ""
    unlike: tuple[str, str] | None = None
    is_best: bool = False

    @property
    def is_at_chance(self) -> bool:
        """True if the interval or deviation of an accuracy includes guessing."""
        return self.low <= self.chance <= self.high

    @property
    def is_above_chance(self) -> bool:
        """True if an accuracy's interval (without an interval, the accuracy) is above chance."""
        low = self.low
        if is_missing(low):
            low = self.mean
        return is_missing(self.chance) or low > self.chance


# Cells by row labels, the last of which is the system, and by heading
ScoreCells = dict[tuple[str, ...], dict[str, ScoreCell]]


def place_cells(rows: pd.DataFrame, layout: Layout) -> ScoreCells:
    """Return the cells of a table in the order of its rows.

    Groups are in order of first appearance. Systems have the same order in all groups.
    """
    names = list(layout.labels.values())
    scores: dict[tuple[str, ...], dict[str, Record]] = {}
    for row in records(rows):
        labels = tuple(row[name] for name in names)
        scores.setdefault(labels, {})[row[layout.column]] = row
    groups = list(dict.fromkeys(labels[:-1] for labels in scores))
    systems = list(dict.fromkeys(labels[-1] for labels in scores))
    last_column = "n"
    if layout.last == CHANCE:
        last_column = "chance"
    last_values = means(rows, last_column, by=[*names[:-1], layout.column])
    cells: ScoreCells = {}
    for of_group in groups:
        for system in systems:
            labels = (*of_group, system)
            if labels in scores:
                cells[labels] = {}
                for heading in layout.metrics:
                    cells[labels][heading] = _score_cell(labels, heading, scores[labels].get(heading), layout)
        if layout.last is not None:
            last_cells: dict[str, ScoreCell] = {}
            for heading in layout.metrics:
                value = last_values.get((*of_group, heading), NAN)
                if layout.last == CHANCE:
                    last_cells[heading] = ScoreCell(mean=value)
                else:
                    last_cells[heading] = ScoreCell(n=value)
            cells[*of_group, layout.last] = last_cells
    return cells


def _score_cell(labels: tuple[str, ...], heading: str, row: Record | None, layout: Layout) -> ScoreCell:
    names = dict(zip(layout.labels.values(), labels, strict=True)) | {layout.column: heading}
    cell = ScoreCell(names, layout.find_key(names))
    if row is not None:
        for name in ("mean", "sd", "seeds", "n", "chance", "low", "high", "signatures"):
            setattr(cell, name, row[name])
    return cell


def published_number(settings: ReportSettings, system: str, key: ScoreKey) -> PublishedNumber | None:
    """Return the published number that the settings match with a score, or None."""
    dataset = settings.published_dataset(key.dataset, key.test)
    return find_published(settings.published.get(system), dataset, metric=key.metric, phenomenon=key.phenomenon)


def add_published(cells: Iterable[ScoreCell], layout: Layout, settings: ReportSettings) -> None:
    """Add published numbers and their sources."""
    for cell in cells:
        if cell.key is None:
            continue
        keys = layout.averaged.get(cell.names[layout.column], [cell.key])
        numbers = []
        for key in keys:
            number = published_number(settings, cell.names["system"], key)
            if number is not None:
                numbers.append(number)
        # An average over some published numbers is not comparable with the study's average over all scores.
        if numbers and len(numbers) == len(keys):
            cell.published = sum(number.value for number in numbers) / len(numbers)
            cell.source = f"{numbers[0].paper}, {numbers[0].table}, “{numbers[0].label}”"


def add_marks(column: Sequence[ScoreCell], metric: Metric, differences: Differences, baseline: str | None) -> None:
    """Add paired tests with marks, and differing signature parts, to the scores of a group in a column.

    Scores that were computed in another way than the baseline's have no marks.
    """
    differing = differing_signatures({i: cell.signatures for i, cell in enumerate(column)})
    of_baseline = next((differing.get(i) for i, cell in enumerate(column) if cell.names["system"] == baseline), None)
    for i, cell in enumerate(column):
        cell.unlike = differing.get(i)
        if cell.key is None:
            continue
        cell.test = differences.get((baseline, cell.names["system"], cell.key))
        is_same_test = cell.unlike == of_baseline and not is_missing(cell.mean)
        if cell.test and is_same_test and not cell.test.is_zero(metric.digits):
            cell.mark = cell.test.mark


def add_best(column: Sequence[ScoreCell], metric: Metric) -> None:
    """Mark a group's best displayed score in a column if it is above chance and all scores are comparable.

    Tied scores are all best, unless the whole group is tied.
    """
    scored = [cell for cell in column if not is_missing(cell.mean)]
    has_unlike = any(cell.unlike for cell in column)
    if not scored or has_unlike or not is_comparable(metric, [cell.n for cell in scored]):
        return
    scores = [round(cell.mean, metric.digits) for cell in scored]
    best = max(scores)
    if metric.lower_is_better:
        best = min(scores)
    if scores.count(best) < len(scores):
        for cell, score in zip(scored, scores, strict=True):
            if score == best:
                cell.is_best = cell.is_above_chance


def compare_systems(
    cells: Iterable[ScoreCell], layout: Layout, differences: Differences, baseline: str | None, *, has_best: bool = True
) -> dict[tuple[str, ...], list[ScoreCell]]:
    """Add marks and best scores to cells. Returns the cells by group and heading."""
    columns: dict[tuple[str, ...], list[ScoreCell]] = {}
    for cell in cells:
        *of_group, _, heading = cell.names.values()
        columns.setdefault((*of_group, heading), []).append(cell)
    for (*_, heading), column in columns.items():
        add_marks(column, layout.metrics[heading], differences, baseline)
        if has_best:
            add_best(column, layout.metrics[heading])
    return columns


def no_system_translates(rows: pd.DataFrame) -> bool:
    """True if rows from `summarize` have BLEU scores, and all are below `MIN_BLEU`."""
    # External metrics, such as BLEURT, have other scales.
    metrics = [name for name in METRICS if "BLEU" in name]
    highest = select(rows, metric=metrics)["mean"].max()
    return bool(highest < MIN_BLEU)  # NaN without scores


def is_comparable(metric: Metric, sizes: Iterable[float | None]) -> bool:
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
        differences = UNTESTED
        compare = False
    cells = place_cells(rows, layout)
    of_systems: list[ScoreCell] = []
    for labels, row in cells.items():
        if labels[-1] != layout.last:
            of_systems += row.values()
    add_published(of_systems, layout, settings)
    compare_systems(of_systems, layout, differences, baseline or settings.baseline, has_best=compare)
    tests = [cell.test for cell in of_systems if cell.test]
    notes = [note]
    if any(cell.is_best for cell in of_systems):
        notes.append(BOLD_NOTE)
    notes.append(describe_marks(tests, settings))
    if any(cell.is_at_chance for cell in of_systems):
        notes.append("°: at chance, as the interval or deviation includes it.")
    notes.append(few_segments_footnote(tests))
    notes += _signature_notes(cells, settings)
    sources: dict[str, None] = {}  # in order, without duplicates
    for cell in of_systems:
        if cell.source:
            sources[f"{settings.label(cell.names['system'])}: {cell.source}"] = None
    if sources:
        notes.append(f"Published: {', '.join(sources)}.")
    caption = f"{unit}."
    if any(cell.seeds > 1 for cell in of_systems):
        caption = f"{unit}, mean ± sample deviation over seeds."
    frame = pd.DataFrame(list(cells), columns=list(layout.labels.values()))
    return Table(
        key,
        title,
        frame.assign(is_muted=frame["system"] == layout.last),
        _columns(cells, layout, settings),
        caption=caption,
        note=" ".join(filter(None, notes)),
        full=_full_values(cells, layout),
        is_long=is_long,
    )


def _columns(cells: ScoreCells, layout: Layout, settings: ReportSettings) -> list[Column]:
    """Return columns for labels, facts and seeds, and a column per score, followed by the published score if any."""

    def row_of(labels: Record) -> dict[str, ScoreCell]:
        return cells[tuple(labels[name] for name in layout.labels.values())]

    def show_seeds(labels: Record) -> Cell:
        seeds = max(cell.seeds for cell in row_of(labels).values())
        if not seeds:
            return Cell(MISSING)
        return Cell(str(seeds))

    def show_score(labels: Record, *, heading: str, digits: int) -> Cell:
        cell = row_of(labels)[heading]
        if labels["system"] == ITEMS:
            return Cell(format_count(cell.n))
        link = ""
        if layout.find_items and cell.names and not is_missing(cell.mean):
            link = urlencode({"view": "items", "a": labels["system"], **layout.find_items(cell.names)})
        signs = []
        if cell.mark:
            signs.append(cell.mark)
        if cell.unlike:
            signs.append("†")
        if cell.is_at_chance:
            signs.append("°")
        return Cell(
            format_score(cell.mean, cell.sd, digits=digits),
            tuple(signs),
            is_best=cell.is_best,
            is_at_chance=cell.is_at_chance,
            link=link,
        )

    def show_published(labels: Record, *, heading: str, digits: int) -> Cell:
        return Cell(format_score(row_of(labels)[heading].published, digits=digits))

    *groups, (system, name) = layout.labels.items()
    columns = [group(name, heading) for heading, name in groups]
    columns.append(label(name, system, form=settings.label, short=settings.short_labels))
    for heading, words in layout.facts.items():
        columns.append(label(name, heading, form=lambda system, words=words: words.get(system, MISSING), is_fact=True))
    columns.append(Column("Seeds", show_seeds, scope=lambda seeds: f"{seeds} seed{'s' * (seeds != '1')}"))
    for heading, metric in layout.metrics.items():
        columns.append(Column(heading, partial(show_score, heading=heading, digits=metric.digits)))
        if any(row[heading].published is not None for row in cells.values()):
            columns.append(Column("published", partial(show_published, heading=heading, digits=metric.digits)))
    return columns


def _full_values(cells: ScoreCells, layout: Layout) -> pd.DataFrame:
    """Return the values in full precision after labels and facts, without empty columns."""
    labels: list[Record] = []
    rows: list[Record] = []
    for names, row in cells.items():
        record: Record = dict(zip(layout.labels.values(), names, strict=True))
        for heading, words in layout.facts.items():
            record[heading] = words.get(names[-1])
        labels.append(record)
        values: Record = {}
        for name, cell in row.items():
            n_items = None
            if cell.n is not None and not is_missing(cell.n):
                n_items = round(cell.n)
            values[name] = cell.mean
            values[f"{name} sd"] = cell.sd
            values[f"{name} seeds"] = cell.seeds
            values[f"{name} n"] = n_items
            for test, attribute in TESTS.items():
                values[f"{name} {test}"] = getattr(cell.test, attribute, None)
            values[f"{name} published"] = cell.published
        sources = dict.fromkeys(cell.source for cell in row.values() if cell.source)
        values["source"] = "; ".join(sources) or None
        rows.append(values)
    return pd.concat([pd.DataFrame(labels), pd.DataFrame(rows).dropna(axis=1, how="all")], axis=1)


def _signature_notes(cells: ScoreCells, settings: ReportSettings) -> list[str]:
    """Return notes on scores that are not comparable, on missing scores and on suspect translations."""
    notes = []
    remarks = []
    for (*groups, system), row in cells.items():
        title = f"{'/'.join(groups)} {settings.label(system)}".lstrip()
        signatures = {}
        for heading, cell in row.items():
            signatures[heading] = cell.signatures
            if cell.unlike:
                ours, theirs = cell.unlike
                notes.append(f"† {title}, {heading}: not comparable, computed with {ours}; the others with {theirs}.")
        if any(signatures.values()):
            remarks.append((title, signatures))
    return [*notes, signatures_footnote(remarks)]
