"""Rows for tables and figures: means and deviations over seeds, distance ranges, selected rows, headings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from docmt.evaluation.contrastive_accuracy import range_of, wilson_interval
from docmt.evaluation.metrics import ACCURACIES, ACCURACY, GENERATIVE
from docmt.report.dataframes import column, keep, select
from docmt.report.score_files import KEY
from docmt.report.settings import PaperTable, ReportSettings, ScoreFigure, shows

GROUP = [name for name in KEY if name != "seed"]
AVERAGE = "average"  # dataset and test name for means over tests
MIN_ITEMS = 10  # per range. With fewer items, intervals would extend from nearly 0 to nearly 100
# System properties from the config, by name in `PaperTable.columns`
PaperColumns = Mapping[str, Mapping[str, str]]


class ScoreKey(NamedTuple):
    """Score identity: test and metric, and the phenomenon on a contrastive test set."""

    dataset: str
    test: str
    metric: str
    phenomenon: str | None = None


def summarize(scores: pd.DataFrame, *, extra: Sequence[str] = ()) -> pd.DataFrame:
    """Return one row per score, over all seeds.

    Args:
        scores: the long table.
        extra: additional columns to keep, with equal values for all seeds.

    Returns:
        The columns in `GROUP` and `extra`, and mean, sd (sample deviation, missing with a single seed), seeds (number
        of values), n, chance, low and high (the score file's interval with a single seed, otherwise mean ± sd), and
        signatures (for all seeds, without duplicates).
    """
    table = scores.groupby([*GROUP, *extra], sort=False, dropna=False, as_index=False).agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        seeds=("value", "count"),
        n=("n", "max"),
        chance=("chance", "mean"),
        low=("low", "mean"),
        high=("high", "mean"),
        signatures=("signature", lambda signatures: tuple(dict.fromkeys(signatures.dropna()))),
    )
    several = table["seeds"] > 1
    table.loc[several, "low"] = table["mean"] - table["sd"]
    table.loc[several, "high"] = table["mean"] + table["sd"]
    return table


def pool_distances(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the long table with a row per distance range instead of a row per distance.

    Ranges with fewer than `MIN_ITEMS` items are left out.
    """
    whole = keep(scores, column(scores, "distance").isna())
    rows = scores.dropna(subset=["distance", "value"])
    ranges = list(map(range_of, rows["distance"]))
    rows = rows.assign(distance=ranges, right=rows["value"] * rows["n"] / 100, guessed=rows["chance"] * rows["n"])
    pooled = rows.groupby(KEY, sort=False, dropna=False, as_index=False).agg(
        right=("right", "sum"),
        n=("n", "sum"),
        guessed=("guessed", lambda values: values.sum(skipna=False)),
        signature=("signature", "first"),
    )
    pooled = keep(pooled, column(pooled, "n") >= MIN_ITEMS)
    # Intervals for single distances cannot be pooled, so the interval is computed from the pooled counts.
    lows = []
    highs = []
    for right, n in zip(pooled["right"], pooled["n"], strict=True):
        low, high = wilson_interval(right, n)
        lows.append(100 * low)
        highs.append(100 * high)
    pooled = pooled.assign(value=100 * pooled["right"] / pooled["n"], chance=pooled["guessed"] / pooled["n"])
    pooled = pooled.assign(low=lows, high=highs)
    types = dict(scores.dtypes) | {"distance": "string"}
    return pd.concat([whole, pooled.drop(columns=["right", "guessed"])], ignore_index=True).astype(types)


def translation_scores(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the rows on whole translations, without rows on single pronouns or cases."""
    return keep(summary, ~column(summary, "metric").isin(ACCURACIES) & column(summary, "kind").isna())


def contrastive_scores(summary: pd.DataFrame, *, by: str | None = None, metric: str = ACCURACY) -> pd.DataFrame:
    """Return the rows with contrastive or generative accuracy: over whole phenomena, or by `distance` or `kind`."""
    rows = select(summary, metric=metric)
    if by is None:
        return keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
    return keep(rows, column(rows, by).notna())


def score_keys(rows: pd.DataFrame) -> list[ScoreKey]:
    """Return test, metric and phenomenon by row."""
    phenomena = rows["phenomenon"].astype(object).where(rows["phenomenon"].notna(), None)
    return list(map(ScoreKey, rows["dataset"], rows["test"], rows["metric"], phenomena))


def name_suites(rows: pd.DataFrame) -> pd.DataFrame:
    """Add a column `suite`: the phenomenon if it is unambiguous within its dataset, otherwise test and phenomenon."""
    whole = "all"
    if whole in set(rows["phenomenon"]):
        whole = "whole suite"
    named = rows.assign(suite=rows["phenomenon"].fillna(whole))
    is_unambiguous = named.groupby(["dataset", "suite"])["test"].transform("nunique") == 1
    return named.assign(suite=named["suite"].where(is_unambiguous, named["test"] + ": " + named["suite"]))


def choose_rows(scores: pd.DataFrame, layout: PaperTable | ScoreFigure) -> pd.DataFrame:
    """Return the rows for a table's or figure's systems, tests and metrics, in the order of its systems."""
    accuracies = pd.concat([contrastive_scores(scores, metric=metric) for metric in ACCURACIES])
    rows = pd.concat([translation_scores(scores), keep(accuracies, column(accuracies, "phenomenon").notna())])
    rows = select(rows, metric=layout.metrics, system=layout.systems)
    is_shown = [shows(layout, dataset, test) for dataset, test in zip(rows["dataset"], rows["test"], strict=True)]
    rows = keep(rows, pd.Series(is_shown, index=rows.index, dtype="bool"))
    return rows.sort_values("system", key=lambda systems: systems.map(layout.systems.index), kind="stable")


def describe_missing(scored: Iterable[str], layout: PaperTable | ScoreFigure, settings: ReportSettings) -> str:
    """Return a note on systems of a table or figure without a score, or an empty text."""
    scored = set(scored)
    missing = [system for system in dict.fromkeys(layout.systems) if system not in scored]
    if not missing:
        return ""
    return f"No score: {', '.join(map(settings.label, missing))}."


def name_columns(rows: pd.DataFrame, layout: PaperTable | ScoreFigure) -> dict[ScoreKey, str]:
    """Return column headings, ordered by test as scored (the average last), then by metric."""
    suites = dict(zip(score_keys(rows), name_suites(rows)["suite"], strict=True))
    tests = list(dict.fromkeys((key.dataset, key.test) for key in suites))
    keys = sorted(
        suites,
        key=lambda key: (key.test == AVERAGE, tests.index((key.dataset, key.test)), layout.metrics.index(key.metric)),
    )
    among = [key for key in keys if key.test != AVERAGE]
    return {key: _heading(key, suites[key], among=among) for key in keys}


def _heading(key: ScoreKey, suite: str, *, among: Sequence[ScoreKey]) -> str:
    """Return the shortest unambiguous heading. A test is named only if there are several, as fully as needed."""
    datasets = {other.dataset for other in among}
    if key.metric in ACCURACIES:
        heading = suite
        if key.metric == GENERATIVE:
            heading += " (generative)"
        if len(datasets) > 1:
            heading = f"{key.dataset}: {heading}"
        return heading
    tests = {(other.dataset, other.test) for other in among if other.metric not in ACCURACIES}
    if key.test != AVERAGE and len(tests) == 1:
        return key.metric
    if key.test == AVERAGE or len(datasets) == 1:
        return f"{key.test}: {key.metric}"
    if len(datasets) == len(tests):
        return f"{key.dataset}: {key.metric}"
    return f"{key.dataset}/{key.test}: {key.metric}"
