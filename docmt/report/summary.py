"""Means and deviations over seeds."""

from collections.abc import Sequence

import pandas as pd

from docmt.evaluation.metrics import ACCURACIES, ACCURACY
from docmt.report.frames import column, keep
from docmt.report.score_files import KEY

GROUP = [name for name in KEY if name != "seed"]


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
    """The rows on whole translations, without those on single pronouns or cases."""
    return keep(summary, ~column(summary, "metric").isin(ACCURACIES) & column(summary, "kind").isna())


def contrastive_scores(summary: pd.DataFrame, *, by: str | None = None, metric: str = ACCURACY) -> pd.DataFrame:
    """The rows on contrastive test sets, or those of generative accuracy: over whole phenomena, or by a key.

    The key is `distance` or `kind`.
    """
    rows = keep(summary, column(summary, "metric") == metric)
    if by is None:
        return keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
    return keep(rows, column(rows, by).notna())
