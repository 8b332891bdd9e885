"""Means and deviations over seeds."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from docmt.evaluation.contrastive_accuracy import wilson_interval
from docmt.evaluation.metrics import ACCURACIES, ACCURACY
from docmt.report.dataframes import column, keep, select
from docmt.report.distances import range_of
from docmt.report.score_files import KEY

GROUP = [name for name in KEY if name != "seed"]


class ScoreKey(NamedTuple):
    """The identity of a score: test and metric; on a contrastive test set also the phenomenon."""

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
        The columns of `GROUP` and `extra`, and mean, sd (sample deviation, missing with a single seed), seeds (number
        of values), n, chance, low and high (the interval of the score file with a single seed, else mean ± sd), and
        signatures (of all seeds, each once).
    """
    table = scores.groupby([*GROUP, *extra], sort=False, dropna=False, as_index=False).agg(
        mean=("value", "mean"),
        sd=("value", "std"),
        seeds=("value", "count"),
        n=("n", "max"),
        chance=("chance", "mean"),
        low=("low", "mean"),
        high=("high", "mean"),
        signatures=("signature", lambda found: tuple(dict.fromkeys(found.dropna()))),
    )
    several = table["seeds"] > 1
    table.loc[several, "low"] = table["mean"] - table["sd"]
    table.loc[several, "high"] = table["mean"] + table["sd"]
    return table


def pool_distances(scores: pd.DataFrame) -> pd.DataFrame:
    """The long table with one row per range of distances in place of one row per distance."""
    whole = keep(scores, column(scores, "distance").isna())
    rows = scores.dropna(subset=["distance", "value"])
    names = [range_of(distance) for distance in rows["distance"]]
    rows = rows.assign(distance=names, right=rows["value"] * rows["n"] / 100, guessed=rows["chance"] * rows["n"])
    pooled = rows.groupby(KEY, sort=False, dropna=False, as_index=False).agg(
        right=("right", "sum"),
        n=("n", "sum"),
        guessed=("guessed", lambda values: values.sum(skipna=False)),
        signature=("signature", "first"),
    )
    # Intervals of single distances cannot be pooled: the pooled counts give the interval.
    bounds = [wilson_interval(right, n) for right, n in zip(pooled["right"], pooled["n"], strict=True)]
    pooled = pooled.assign(value=100 * pooled["right"] / pooled["n"], chance=pooled["guessed"] / pooled["n"])
    pooled = pooled.assign(low=[100 * low for low, _ in bounds], high=[100 * high for _, high in bounds])
    types = dict(scores.dtypes) | {"distance": "string"}
    return pd.concat([whole, pooled.drop(columns=["right", "guessed"])], ignore_index=True).astype(types)


def translation_scores(summary: pd.DataFrame) -> pd.DataFrame:
    """The rows on whole translations, without rows on single pronouns or cases."""
    return keep(summary, ~column(summary, "metric").isin(ACCURACIES) & column(summary, "kind").isna())


def contrastive_scores(summary: pd.DataFrame, *, by: str | None = None, metric: str = ACCURACY) -> pd.DataFrame:
    """The rows with contrastive or generative accuracy: over whole phenomena, or by `distance` or `kind`."""
    rows = select(summary, metric=metric)
    if by is None:
        return keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
    return keep(rows, column(rows, by).notna())


def score_keys(rows: pd.DataFrame) -> list[ScoreKey]:
    """The scored test, metric and phenomenon of each row."""
    phenomena = rows["phenomenon"].astype(object).where(rows["phenomenon"].notna(), None)
    return [ScoreKey(*key) for key in zip(rows["dataset"], rows["test"], rows["metric"], phenomena, strict=True)]


def name_suites(rows: pd.DataFrame) -> pd.DataFrame:
    """Add a column `suite`: the phenomenon where it is unambiguous within its dataset, else test and phenomenon."""
    whole = "whole suite" if "all" in set(rows["phenomenon"]) else "all"
    named = rows.assign(suite=rows["phenomenon"].fillna(whole))
    is_unambiguous = named.groupby(["dataset", "suite"])["test"].transform("nunique") == 1
    return named.assign(suite=named["suite"].where(is_unambiguous, named["test"] + ": " + named["suite"]))
