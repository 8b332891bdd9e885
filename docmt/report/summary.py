"""Means and deviations over seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from docmt.evaluation.metrics import ACCURACIES, ACCURACY
from docmt.report.dataframes import column, keep
from docmt.report.score_files import KEY

GROUP = [name for name in KEY if name != "seed"]


class ScoreKey(NamedTuple):
    """What was scored, and by which metric; on a contrastive test set also the phenomenon."""

    dataset: str
    test: str
    metric: str
    phenomenon: str | None = None


def summarize(scores: pd.DataFrame, *, extra: Sequence[str] = ()) -> pd.DataFrame:
    """One row per score, over all seeds.

    Args:
        scores: the long table.
        extra: further columns to keep, the same for all seeds of a score.

    Returns:
        The columns of `GROUP` and `extra`, and mean, sd (sample deviation; missing for one seed), seeds (with a value),
        n, chance, low and high (the interval of the score file for one seed, else mean ± sd).
    """
    table = scores.groupby([*GROUP, *extra], sort=False, dropna=False, as_index=False).agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        seeds=("value", "count"),
        n=("n", "max"),
        chance=("chance", "mean"),
        low=("low", "mean"),
        high=("high", "mean"),
    )
    several = table["seeds"] > 1
    table.loc[several, "low"] = table["mean"] - table["sd"]
    table.loc[several, "high"] = table["mean"] + table["sd"]
    return table


def translation_scores(summary: pd.DataFrame) -> pd.DataFrame:
    """The rows on whole translations, without rows on single pronouns or cases."""
    return keep(summary, ~column(summary, "metric").isin(ACCURACIES) & column(summary, "kind").isna())


def contrastive_scores(summary: pd.DataFrame, *, by: str | None = None, metric: str = ACCURACY) -> pd.DataFrame:
    """The rows with contrastive or generative accuracy: over whole phenomena, or by `distance` or `kind`."""
    rows = keep(summary, column(summary, "metric") == metric)
    if by is None:
        return keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
    return keep(rows, column(rows, by).notna())


def name_suites(rows: pd.DataFrame) -> pd.DataFrame:
    """Add a column `suite`: the phenomenon where it is unambiguous within its dataset, else test and phenomenon."""
    phenomena = rows["phenomenon"].fillna("all")
    pairs = pd.DataFrame({"dataset": rows["dataset"], "test": rows["test"], "phenomenon": phenomena})
    tests = pairs.groupby(["dataset", "phenomenon"])["test"].transform("nunique") if len(pairs) else pairs["test"]
    names = [
        phenomenon if count == 1 else f"{test}: {phenomenon}"
        for phenomenon, test, count in zip(phenomena, pairs["test"], tests, strict=True)
    ]
    return rows.assign(suite=pd.Series(names, index=rows.index, dtype="string"))
