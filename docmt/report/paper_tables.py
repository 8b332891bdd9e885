"""Tables laid out as in a paper: one row per system, facts about it from the config, then tests by metrics."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from docmt.errors import UserError
from docmt.evaluation.metrics import ACCURACIES, GENERATIVE, find_metric
from docmt.evaluation.score_rows import WARNING
from docmt.report.dataframes import column, keep, select
from docmt.report.differences import UNTESTED, Differences
from docmt.report.score_tables import Grid, build_grid
from docmt.report.settings import PaperTable, ReportSettings, ScoreFigure, shows
from docmt.report.summary import (
    ScoreKey,
    contrastive_scores,
    name_suites,
    score_keys,
    summarize,
    translation_scores,
)
from docmt.report.tables import Table

AVERAGE = "average"  # dataset and test of means over tests

# Facts about each system from the config, by the names of `PaperTable.facts`
PaperColumns = Mapping[str, Mapping[str, str]]


def read_paper_columns(argument: str) -> PaperColumns:
    """Read the value of `--paper-columns`."""
    try:
        columns = json.loads(argument)
    except json.JSONDecodeError as error:
        raise UserError(f"--paper-columns: not JSON ({error.msg}): give {{SYSTEM: {{COLUMN: WORD}}}}") from None
    if not (isinstance(columns, dict) and all(isinstance(words, dict) for words in columns.values())):
        raise UserError("--paper-columns: give {SYSTEM: {COLUMN: WORD}}")
    return columns


def paper_table(
    scores: pd.DataFrame,
    name: str,
    settings: ReportSettings,
    paper_columns: PaperColumns,
    differences: Differences = UNTESTED,
) -> Table | None:
    """One of the tables that the settings describe, by its name there; None when none of it has been scored."""
    layout = settings.tables[name]
    rows = choose_rows(scores, layout)
    if rows.empty:
        return None
    if layout.average:
        # The mean over tests of each metric of each run that has all of them.
        tests = rows[["dataset", "test"]].drop_duplicates()
        places = rows["dataset"] + "/" + rows["test"]
        signatures = [
            "|".join(f"{part} on {place}" for part in signature.split("|") if not part.startswith(WARNING))
            for signature, place in zip(rows["signature"].fillna(""), places, strict=True)
        ]
        runs = rows.assign(signature=signatures).groupby(["system", "seed", "metric"], sort=False, as_index=False)
        # The sum of segments tells averages over other segments apart, the signatures those computed otherwise.
        means = runs.agg(
            value=("value", "mean"),
            n=("n", "sum"),
            n_tests=("value", "count"),
            signature=("signature", lambda found: "|".join(sorted(found))),
        )
        means = means[means["n_tests"] == len(tests)].drop(columns="n_tests")
        # Without `astype`, pandas would turn the columns that averages lack into objects.
        rows = pd.concat([rows, means.assign(dataset=AVERAGE, test=AVERAGE)]).astype(dict(rows.dtypes))
    headings = name_columns(rows, layout)
    keys = {heading: key for key, heading in headings.items()}
    digits = max(find_metric(metric).digits for metric in layout.metrics)
    grid = Grid(
        {"System": "system"},
        "column",
        {heading: replace(find_metric(key.metric), digits=digits) for heading, key in keys.items()},
        lambda _, heading: keys[heading],
        averaged={
            heading: [key for key in headings if key.metric == average.metric and key.test != AVERAGE]
            for heading, average in keys.items()
            if average.test == AVERAGE
        },
        facts={
            fact: {system: words[fact] for system, words in paper_columns.items() if words.get(fact) is not None}
            for fact in layout.facts
        },
        baseline=layout.baseline or settings.baseline,
    )
    return build_grid(
        summarize(rows.assign(column=[headings[key] for key in score_keys(rows)]), extra=["column"]),
        grid,
        settings,
        key=name,
        title=layout.title,
        unit="In percent",
        caption="",
        note=layout.note,
        differences=differences,
    )


def choose_rows(scores: pd.DataFrame, layout: PaperTable | ScoreFigure) -> pd.DataFrame:
    """The rows of a table's or figure's systems, tests and metrics, in the order of its systems."""
    accuracies = pd.concat([contrastive_scores(scores, metric=metric) for metric in ACCURACIES])
    kept = pd.concat([translation_scores(scores), keep(accuracies, column(accuracies, "phenomenon").notna())])
    kept = select(kept, metric=layout.metrics, system=layout.systems)
    is_shown = [shows(layout, dataset, test) for dataset, test in zip(kept["dataset"], kept["test"], strict=True)]
    kept = keep(kept, pd.Series(is_shown, index=kept.index, dtype="bool"))
    return kept.sort_values("system", key=lambda systems: systems.map(layout.systems.index), kind="stable")


def name_columns(rows: pd.DataFrame, layout: PaperTable | ScoreFigure) -> dict[ScoreKey, str]:
    """Headings of columns: by test in the order of scoring, the average last, and then by metric."""
    suites = dict(zip(score_keys(rows), name_suites(rows)["suite"], strict=True))
    tests = list(dict.fromkeys((key.dataset, key.test) for key in suites))
    keys = sorted(
        suites,
        key=lambda key: (key.test == AVERAGE, tests.index((key.dataset, key.test)), layout.metrics.index(key.metric)),
    )
    plain = [key for key in keys if key.test != AVERAGE]
    return {key: _heading(key, suites[key], among=plain) for key in keys}


def _heading(key: ScoreKey, suite: str, *, among: Sequence[ScoreKey]) -> str:
    """The shortest unambiguous heading: a test is named only among several, and only as fully as needed."""
    datasets = {other.dataset for other in among}
    if key.metric in ACCURACIES:
        suite += " (generative)" if key.metric == GENERATIVE else ""
        return suite if len(datasets) == 1 else f"{key.dataset}: {suite}"
    tests = {(other.dataset, other.test) for other in among if other.metric not in ACCURACIES}
    if key.test != AVERAGE and len(tests) == 1:
        return key.metric
    if key.test == AVERAGE or len(datasets) == 1:
        return f"{key.test}: {key.metric}"
    test = key.dataset if len(datasets) == len(tests) else f"{key.dataset}/{key.test}"
    return f"{test}: {key.metric}"
