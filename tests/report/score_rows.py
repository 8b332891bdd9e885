"""Rows for the long table, trainings, paired tests and whole reports."""

import json
import math

import pandas as pd

from docmt.cli.main import main
from docmt.report.differences import Difference
from docmt.report.input_files import History
from docmt.report.score_files import COLUMNS, TYPES


def score(system, value, **keys):
    """s-BLEU of a run, or the score that the keys specify."""
    row = {"dataset": "d", "system": system, "seed": 1, "test": "t", "metric": "s-BLEU", "value": value, "n": 9}
    return row | {"signature": "x"} | keys


def accuracy(system, value, **keys):
    """Contrastive accuracy of a run on a phenomenon, with its interval."""
    row = score(system, value, test="pronoun", metric="contrastive accuracy", phenomenon="pronoun")
    return row | {"low": value - 5, "high": value + 5, "chance": 50.0} | keys


def of_seeds(system, *values, **keys):
    """Scores of a system with seeds from 1."""
    return [score(system, value, seed=seed, **keys) for seed, value in enumerate(values, start=1)]


def history(system, seed=1, *, dataset="d", **columns):
    """History of a run, with measurements at some updates (`step`)."""
    return History(dataset, system, seed, pd.DataFrame(columns, dtype="float64"))


def training(system, seed=1):
    """A history of 200 updates with the lowest loss at update 150."""
    losses = [3.0 + seed, math.nan, 1.0 + seed, 2.0 + seed]
    below = [7.0, 6.0, 5.0, math.nan]
    return history(system, seed, step=[50, 100, 150, 200], dev_loss=losses, below_uniform_cross=below)


def difference(system, p, **keys):
    """A paired test of a system against `base` by s-BLEU, or by the metric that the keys specify."""
    values = {"dataset": "d", "test": "t", "system": system, "baseline": "base", "metric": "s-BLEU", "phenomenon": None}
    values |= {"difference": 1.0, "p": p, "sign_p": 0.5, "randomization_p": 0.001, "n": 99, "method": "bootstrap"}
    return Difference(**values | keys)


def render_report(folder, *files, options=None, study=None, **settings):
    """Page text that the commands generate from score files. `folder/out` has it with its tables and figures.

    `options` are the other files by option.
    """
    scores = str(folder / "scores.csv")
    assert main(["report", "collect", "--scores", *map(str, files), "--out", scores]) == 0
    arguments = ["--settings", json.dumps(settings), "--study", json.dumps(study or {}), "--out", str(folder / "out")]
    arguments += [word for name, paths in (options or {}).items() for word in (f"--{name}", *map(str, paths))]
    assert main(["report", "render", "--scores", scores, *arguments]) == 0
    return (folder / "out/report.html").read_text(encoding="utf-8")


def write_scores(path, rows, **provenance):
    """A score file."""
    path.write_text(json.dumps({"provenance": provenance, "scores": list(rows)}), encoding="utf-8")
    return path


def best_cells(table):
    """Row and column of the best scores in a table."""
    return {(i, j) for i, row in enumerate(table.cells) for j, cell in enumerate(row) if cell.is_best}


def cell_links(table):
    """Links of a table's cells to the reader, by row and column."""
    return {(i, j): cell.link for i, row in enumerate(table.cells) for j, cell in enumerate(row) if cell.link}


def long_table(rows):
    """Long table with some rows."""
    return pd.DataFrame(rows).reindex(columns=COLUMNS).astype(TYPES)
