"""Tables laid out as those of a paper: one row per system, what the config says of it, then tests by metrics."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACIES, GENERATIVE, find_metric
from docmt.files import atomic_writer
from docmt.report import frames
from docmt.report.differences import UNTESTED, Difference, Differences
from docmt.report.frames import keep
from docmt.report.grid import GridShape, Label, build_grid
from docmt.report.publications import PublishedNumber
from docmt.report.results import name_suites, published_number
from docmt.report.settings import LaidOutTable, ReportSettings, ScoreFigure, shows
from docmt.report.summary import contrastive_scores, summarize, translation_scores
from docmt.report.tables import MISSING, Table, escape_markdown, to_latex, to_markdown, to_text

AVERAGE = "average"

Facts = Mapping[str, Mapping[str, str]]


def read_facts(argument: str) -> Facts:
    """Read the value of `--facts`. Raises UserError when it is not JSON of that form."""
    try:
        facts = json.loads(argument)
    except json.JSONDecodeError as error:
        raise UserError(f"--facts: not JSON ({error.msg}): give {{SYSTEM: {{FACT: WORD}}}}") from None
    if not (isinstance(facts, dict) and all(isinstance(words, dict) for words in facts.values())):
        raise UserError("--facts: give {SYSTEM: {FACT: WORD}}")
    return facts


@dataclass(frozen=True)
class Column:
    """A test and a metric; of a contrastive test set with its phenomenon."""

    dataset: str
    test: str
    metric: str
    phenomenon: str | None = None


def laid_out_table(
    scores: pd.DataFrame, name: str, settings: ReportSettings, facts: Facts, differences: Differences = UNTESTED
) -> Table | None:
    """One of the tables that the settings describe, by its name there; None when none of it has been scored.

    The facts are what the config says of each system, by the names of `LaidOutTable.facts`.
    """
    layout = settings.tables[name]
    rows = choose_rows(scores, layout)
    if rows.empty:
        return None
    if layout.average:
        rows = _with_averages(rows)
    headings = name_columns(rows, layout)
    columns = {heading: column for column, heading in headings.items()}

    def lookup(label: Label, heading: str) -> PublishedNumber | None:
        wanted = columns[heading]
        if wanted.test != AVERAGE:
            return published_cell(settings, label[-1], wanted)
        averaged = [column for column in headings if column.metric == wanted.metric and column.test != AVERAGE]
        return _average([published_cell(settings, label[-1], column) for column in averaged])

    def tested(label: Label, heading: str) -> Difference | None:
        cell = columns[heading]
        baseline = layout.baseline or settings.baseline
        return differences.find(
            baseline, cell.dataset, cell.test, label[-1], metric=cell.metric, phenomenon=cell.phenomenon
        )

    digits = max(find_metric(metric).digits for metric in layout.metrics)
    shape = GridShape(
        by=["system"],
        names=["System"],
        column="column",
        columns={heading: replace(find_metric(column.metric), digits=digits) for heading, column in columns.items()},
        lookup=lookup,
        tested=tested,
    )
    table = build_grid(
        summarize(rows.assign(column=[headings[column] for column in columns_of(rows)]), extra=["column"]),
        settings,
        shape,
        key=name,
        title=layout.title,
        caption="In percent; mean and sample deviation over seeds. The best of ours is in bold.",
    )
    table = replace(table, note=layout.note)
    return _insert_facts(table, [facts.get(system, {}) for system in table.values["system"]], layout.facts)


def write_table(prefix: Path, table: Table) -> None:
    """Write a table as `.csv` (full precision), `.md`, `.tex` and `.txt`."""
    words = [text for text in (table.note, table.caption) if text]
    forms = {
        "csv": table.values.to_csv(index=False),
        "md": "\n\n".join([to_markdown(table), *map(escape_markdown, words)]) + "\n",
        "tex": to_latex(table),
        "txt": f"{to_text(table)}\n\n{table.caption}\n",
    }
    for suffix, text in forms.items():
        with atomic_writer(prefix.with_name(f"{prefix.name}.{suffix}")) as file:
            file.write(text)


def choose_rows(scores: pd.DataFrame, layout: LaidOutTable | ScoreFigure) -> pd.DataFrame:
    """The rows of a table's or figure's systems, tests and metrics, in the order of its systems."""
    accuracies = pd.concat([contrastive_scores(scores, metric=metric) for metric in ACCURACIES])
    phenomena = keep(accuracies, frames.column(accuracies, "phenomenon").notna())
    kept = pd.concat([translation_scores(scores), phenomena])
    is_listed = frames.column(kept, "metric").isin(layout.metrics) & frames.column(kept, "system").isin(layout.systems)
    kept = keep(kept, is_listed)
    is_shown = [shows(layout, dataset, test) for dataset, test in zip(kept["dataset"], kept["test"], strict=True)]
    kept = keep(kept, pd.Series(is_shown, index=kept.index, dtype="bool"))
    places = frames.column(kept, "system").map(layout.systems.index)
    return kept.assign(place=places).sort_values("place", kind="stable").drop(columns="place")


def _with_averages(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the mean over tests of each metric of each run that has all of them."""
    tests = rows[["dataset", "test"]].drop_duplicates()
    runs = rows.groupby(["system", "seed", "metric"], sort=False, as_index=False)
    means = runs.agg(value=("value", "mean"), found=("value", "count"))
    means = means[means["found"] == len(tests)].drop(columns="found")
    return pd.concat([rows, means.assign(dataset=AVERAGE, test=AVERAGE)]).astype(dict(rows.dtypes))


def columns_of(rows: pd.DataFrame) -> list[Column]:
    """The column of each row."""
    phenomena = rows["phenomenon"].astype(object).where(rows["phenomenon"].notna(), None)
    return [Column(*key) for key in zip(rows["dataset"], rows["test"], rows["metric"], phenomena, strict=True)]


def name_columns(rows: pd.DataFrame, layout: LaidOutTable | ScoreFigure) -> dict[Column, str]:
    """Columns with their headings: by test in the order of scoring, the average last, and then by metric."""
    suites = dict(zip(columns_of(rows), name_suites(rows)["suite"], strict=True))
    tests = list(dict.fromkeys((column.dataset, column.test) for column in suites))
    columns = sorted(
        suites,
        key=lambda column: (
            column.test == AVERAGE,
            tests.index((column.dataset, column.test)),
            layout.metrics.index(column.metric),
        ),
    )
    plain = [column for column in columns if column.test != AVERAGE]
    return {column: _heading(column, suites[column], among=plain) for column in columns}


def _heading(column: Column, suite: str, *, among: Sequence[Column]) -> str:
    """The shortest unambiguous heading: a test is named only among several, and only as fully as needed."""
    datasets = {other.dataset for other in among}
    if column.metric in ACCURACIES:
        suite += " (generative)" if column.metric == GENERATIVE else ""
        return suite if len(datasets) == 1 else f"{column.dataset}: {suite}"
    tests = {(other.dataset, other.test) for other in among if other.metric not in ACCURACIES}
    if column.test != AVERAGE and len(tests) == 1:
        return column.metric
    if column.test == AVERAGE or len(datasets) == 1:
        return f"{column.test}: {column.metric}"
    test = column.dataset if len(datasets) == len(tests) else f"{column.dataset}/{column.test}"
    return f"{test}: {column.metric}"


def published_cell(settings: ReportSettings, system: str, column: Column) -> PublishedNumber | None:
    """The published number that the settings match with a system in a column, or None."""
    return published_number(
        settings, column.dataset, column.test, system, metric=column.metric, phenomenon=column.phenomenon
    )


def _average(numbers: Sequence[PublishedNumber | None]) -> PublishedNumber | None:
    """The mean of published numbers when none is missing."""
    given = [number for number in numbers if number is not None]
    if not given or len(given) < len(numbers):
        return None
    return replace(given[0], dataset=AVERAGE, value=sum(number.value for number in given) / len(given))


def _insert_facts(table: Table, facts: Sequence[Mapping[str, str]], names: Sequence[str]) -> Table:
    """Insert columns of words after the system's name."""
    lines = [
        [row[0], *(fact.get(name, MISSING) for name in names), *row[1:]]
        for row, fact in zip(table.rows, facts, strict=True)
    ]
    values = table.values.copy()
    for place, name in enumerate(names, start=1):
        values.insert(place, name, [fact.get(name) for fact in facts])
    return replace(
        table,
        header=[table.header[0], *names, *table.header[1:]],
        rows=lines,
        values=values,
        n_labels=table.n_labels + len(names),
        best=frozenset((i, j + len(names)) for i, j in table.best),
    )
