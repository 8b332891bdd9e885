"""Scores of a claim's systems by seed, from the long score table or the training histories."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from docmt.errors import UserError
from docmt.report.claims.claim import Claim, Term
from docmt.report.dataframes import Record, column, groups, is_missing, keep, records, select
from docmt.report.input_files import History


@dataclass(frozen=True)
class Score:
    """A run's score."""

    value: float
    groups: Mapping[tuple, np.ndarray] = field(default_factory=dict)  # `group_values` by set of test documents
    is_at_least: bool = False  # value never reached: `value` is the last update


Seeds = Mapping[int, Score]


def measure(claim: Claim, term: Term, scores: pd.DataFrame, histories: Sequence[History]) -> Seeds:
    """Return a system's scores by seed. Raises UserError if they are on several datasets."""
    if claim.is_of_history:
        return _from_histories(claim, term, histories)
    return _from_scores(claim, term, scores)


def _from_scores(claim: Claim, term: Term, scores: pd.DataFrame) -> dict[int, Score]:
    rows = select(scores, system=term.system, test=claim.test, metric=claim.metric)
    optional = {
        "dataset": term.dataset or claim.dataset,
        "phenomenon": claim.phenomenon,
        "kind": claim.kind,
        "distance": claim.distances or None,
    }
    for name, value in optional.items():
        if value is not None:
            rows = select(rows, **{name: value})
    rows = rows.dropna(subset="value")
    _check_one_dataset(claim, term, rows["dataset"])
    if not claim.distances and claim.kind is None:
        rows = keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
        # A suite with several phenomena has a row for the whole suite first, then one row per phenomenon.
        rows = rows.drop_duplicates("seed")
    return {int(seed): _join(records(of_seed)) for seed, of_seed in groups(rows, "seed")}


def _join(rows: Sequence[Record]) -> Score:
    """Return the score over several item groups."""
    n_items = sum(row["n"] for row in rows)
    value = sum(row["n"] / n_items * row["value"] for row in rows)
    groups = {}
    for row in rows:
        if is_missing(row["groups"]):  # too few items for an error
            continue
        values = np.array(row["groups"].split(), dtype="float64")
        # Scores of systems on the same reference text have the same groups. Every phenomenon and every distance has
        # other items.
        names = (str(row[name]) for name in ("data", "phenomenon", "distance"))
        groups[*names, len(values)] = row["n"] / n_items * values
    return Score(value, groups)


def _from_histories(claim: Claim, term: Term, histories: Sequence[History]) -> dict[int, Score]:
    dataset = term.dataset or claim.dataset
    scores = {}
    members = []
    for history in histories:
        if history.system == term.system and dataset in (None, history.dataset):
            members.append(history)
    _check_one_dataset(claim, term, [history.dataset for history in members])
    for history in members:
        score = _read_history(history.table, claim)
        if score is not None:
            scores[history.seed] = score
    return scores


def _check_one_dataset(claim: Claim, term: Term, datasets: Iterable[str]) -> None:
    names = sorted(set(datasets))
    if len(names) > 1:
        raise UserError(
            f"report.claims: {claim.statement!r}: {term.system} has scores on {', '.join(names)}: add `dataset`"
        )


def _read_history(table: pd.DataFrame, claim: Claim) -> Score | None:
    """Return a column at an update, or the update that reaches a value. None if it was not measured."""
    name = claim.metric
    needed = name
    if claim.step == "best" and claim.first_step_below is None:
        needed = "dev_loss"
    rows = records(keep(table, column(table, needed).notna()))
    if claim.first_step_below is not None and rows:
        reached = [row["step"] for row in rows if row[name] <= claim.first_step_below]
        return Score(min(reached, default=rows[-1]["step"]), is_at_least=not reached)
    if claim.step == "best":  # for equal losses the first, because a training keeps these weights
        rows = sorted(rows, key=lambda row: row["dev_loss"])[:1]
    elif claim.step != "last":
        rows = [row for row in rows if row["step"] == claim.step]
    if not rows or is_missing(rows[-1].get(name, math.nan)):
        return None
    return Score(float(rows[-1][name]))
