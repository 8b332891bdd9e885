"""Rows of the long table for the tests of the report."""

import pandas as pd

from docmt.report.score_files import COLUMNS, TYPES


def score(system, value, **keys):
    """The s-BLEU of a run, or what the keys say."""
    row = {"dataset": "d", "system": system, "seed": 1, "test": "t", "metric": "s-BLEU", "value": value, "n": 9}
    return row | {"signature": "x"} | keys


def accuracy(system, value, **keys):
    """The contrastive accuracy of a run on a phenomenon, with its interval."""
    row = score(system, value, test="pronoun", metric="contrastive accuracy", phenomenon="pronoun")
    return row | {"low": value - 5, "high": value + 5, "chance": 50.0} | keys


def long_table(rows):
    """The long table of some rows."""
    return pd.DataFrame(rows).reindex(columns=COLUMNS).astype(TYPES)
