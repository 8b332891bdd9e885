"""Verdicts on claims from scores over seeds, and the verdict table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Literal

import numpy as np
import pandas as pd

from docmt.evaluation.metrics import find_metric
from docmt.report.claims.claim import Claim, ClaimedDifference, Term
from docmt.report.claims.intervals import (
    CONFIDENCE,
    POWER,
    TAIL,
    ErrorSource,
    error_source,
    half_width,
    holm,
    p_value,
    seeds_needed,
    smallest_effect,
    with_seeds,
)
from docmt.report.dataframes import Record, column, groups, is_missing, keep, records, select
from docmt.report.input_files import History
from docmt.report.numbers import MISSING, format_number, format_score
from docmt.report.settings import ReportSettings
from docmt.report.tables import Table, label

Verdict = Literal["supported", "refuted", "control failed", "inconclusive", "underpowered", "not run"]

AFFORDABLE_SEEDS = 10  # maximum that users can train. Claims that need more seeds are underpowered
HEADER = ["Claim", "Paper", "Reported", "Measured", "Difference", "Verdict", "Corrected"]
WIDTHS = (30, 16, 24, 34, 24, 12, 12)  # column widths in plain text
CAPTION = "Measured: mean ± sample deviation over seeds."
NOTE = (
    f"Difference: mean and {CONFIDENCE:.0%} interval over seeds and test documents, with the margin. "
    f"For undecided claims, the smallest effect that {AFFORDABLE_SEEDS} seeds would show, and the number of seeds that "
    f"would show the measured difference ({POWER:.0%} power). "
    "Corrected: verdict after Holm's correction over the claims in this table."
)
UNDECIDED = ("inconclusive", "underpowered")
HISTORY_DIGITS = 3


@dataclass(frozen=True)
class Score:
    """A run's score."""

    value: float
    groups: Mapping[tuple, np.ndarray] = field(default_factory=dict)  # `group_values` by set of test documents
    is_at_least: bool = False  # value never reached: `value` is the last update


Seeds = Mapping[int, Score]


@dataclass(frozen=True)
class JudgedComparison:
    """Comparison in a claim with its verdict.

    Attributes:
        seeds: seeds that all systems in the comparison have. If there are not enough, all numbers are NaN.
        mean, sd, low, high: statistics and interval for the difference over these seeds. An unknown bound is infinite.
        documents: errors over test documents. Empty if the metric has none, so that the interval covers seeds only.
        p_supported, p_refuted: one-sided p values of the two verdicts.
        detectable: smallest effect that `AFFORDABLE_SEEDS` can show with the same variation of seeds and documents.
        needed: number of seeds that show the measured difference (None: more than `seeds_needed` tries).
    """

    comparison: ClaimedDifference
    verdict: Verdict
    seeds: tuple[int, ...]
    mean: float = math.nan
    sd: float = math.nan
    low: float = math.nan
    high: float = math.nan
    documents: Sequence[ErrorSource] = ()
    p_supported: float = math.nan
    p_refuted: float = math.nan
    detectable: float = math.nan
    needed: int | None = None


@dataclass(frozen=True)
class JudgedClaim:
    """Claim with scores by seed, verdicts by comparison, and the control."""

    name: str
    claim: Claim
    measured: Mapping[Term, Seeds]
    findings: Sequence[JudgedComparison]
    control: "JudgedClaim | None"

    @property
    def verdict(self) -> Verdict:
        """Verdict over all comparisons. If the control is not supported, it decides, then the worst comparison."""
        if self.control is not None and self.control.verdict != "supported":
            return "not run" if self.control.verdict == "not run" else "control failed"
        order: list[Verdict] = ["not run", "refuted", "underpowered", "inconclusive", "supported"]
        return min((finding.verdict for finding in self.findings), key=order.index)

    @property
    def p_supported(self) -> float:
        """P value of "supported": the largest over the comparisons, since all must hold."""
        return max(finding.p_supported for finding in self.findings)

    @property
    def p_refuted(self) -> float:
        """P value of "refuted": the smallest over the comparisons, times their number, since one suffices."""
        return min(1.0, len(self.findings) * min(finding.p_refuted for finding in self.findings))


def judge(name: str, claims: Mapping[str, Claim], scores: pd.DataFrame, histories: Sequence[History]) -> JudgedClaim:
    """Judge a claim by the long score table and the training histories, if they contain its systems."""
    claim = claims[name]
    measured = {
        term: _from_histories(claim, term, histories) if claim.is_of_history else _from_scores(claim, term, scores)
        for term in claim.terms
    }
    findings = [_compare(claim, difference, measured) for difference in claim.differences]
    control = judge(claim.control, claims, scores, histories) if claim.control else None
    return JudgedClaim(name, claim, measured, findings, control)


def _from_scores(claim: Claim, term: Term, scores: pd.DataFrame) -> dict[int, Score]:
    wanted = {"system": term.system, "dataset": term.dataset or claim.dataset, "test": claim.test}
    wanted |= {"metric": claim.metric, "phenomenon": claim.phenomenon, "kind": claim.kind}
    wanted |= {"distance": claim.distances or None}
    rows = select(scores, **{name: value for name, value in wanted.items() if value is not None})
    rows = rows.dropna(subset="value")
    is_split = bool(claim.distances) or claim.kind is not None
    if not is_split:
        rows = keep(rows, column(rows, "distance").isna() & column(rows, "kind").isna())
        # A suite with several phenomena has a row for the whole suite first, then one row per phenomenon.
        rows = rows.drop_duplicates("seed")
    return {int(seed): _join(records(of_seed)) for seed, of_seed in groups(rows, "seed")}


def _join(rows: Sequence[Record]) -> Score:
    """Return the score over several item groups."""
    sizes = [float(row["n"]) for row in rows]
    shares = [size / sum(sizes) for size in sizes]
    value = sum(share * row["value"] for share, row in zip(shares, rows, strict=True))
    groups = {}
    for share, row in zip(shares, rows, strict=True):
        if is_missing(row["groups"]):
            return Score(value)
        values = np.array(row["groups"].split(), dtype="float64")
        # Scores of systems on the same reference text have the same groups. Every distance has other items.
        groups[str(row["data"]), str(row["distance"]), len(values)] = share * values
    return Score(value, groups)


def _from_histories(claim: Claim, term: Term, histories: Sequence[History]) -> dict[int, Score]:
    dataset = term.dataset or claim.dataset
    return {
        history.seed: value
        for history in histories
        if history.system == term.system and dataset in (None, history.dataset)
        if (value := _read_history(history.table, claim)) is not None
    }


def _read_history(table: pd.DataFrame, claim: Claim) -> Score | None:
    """Return a column at an update, or the update that reaches a value. None if it was not measured."""
    name, at = claim.metric, claim.step
    needed = "dev_loss" if at == "best" and claim.first_step_below is None else name
    rows = [row for row in records(table) if not is_missing(row.get(needed, math.nan))]
    if claim.first_step_below is not None and rows:
        reached = [row["step"] for row in rows if row[name] <= claim.first_step_below]
        return Score(min(reached, default=rows[-1]["step"]), is_at_least=not reached)
    if at == "best":  # for equal losses the first, because a training keeps these weights
        rows = sorted(rows, key=lambda row: row["dev_loss"])[:1]
    elif at != "last":
        rows = [row for row in rows if row["step"] == at]
    value = rows[-1].get(name, math.nan) if rows else math.nan
    return None if is_missing(value) else Score(float(value))


def _compare(claim: Claim, comparison: ClaimedDifference, measured: Mapping[Term, Seeds]) -> JudgedComparison:
    sides = [measured[term] for term in comparison.weights]
    seeds = tuple(sorted(set.intersection(*(set(side) for side in sides))))
    if len(seeds) < claim.min_seeds:
        return JudgedComparison(comparison, "not run", seeds)
    differences = [
        comparison.difference({term: measured[term][seed].value for term in comparison.weights}) for seed in seeds
    ]
    runs = [[measured[term][seed] for seed in seeds] for term in comparison.weights]
    documents = _document_errors(list(comparison.weights.values()), runs)
    # Differences are taken seed by seed, so that all systems count with the same seeds.
    mean, sd = fmean(differences), stdev(differences)
    sources = with_seeds(sd, len(seeds), documents)
    half = float(half_width(sources))
    low, high = mean - half, mean + half
    # If a training never reached the value, one bound is unknown. Only longer training could find it, not more
    # seeds.
    for term, weight in comparison.weights.items():
        if any(measured[term][seed].is_at_least for seed in seeds):
            low, high = (low, math.inf) if weight > 0 else (-math.inf, high)
    verdict = decide(comparison, low, high, margin=claim.margin)
    least, most = claimed_range(comparison, claim.margin)
    needed = seeds_needed(min(abs(mean - least), abs(mean - most)), sd, documents)
    if verdict == "inconclusive" and (needed is None or needed > AFFORDABLE_SEEDS) and math.isfinite(high - low):
        verdict = "underpowered"

    def p_beyond(distance: float, bound: float) -> float:
        if math.isinf(distance):  # a range without this limit
            return float(distance < 0)
        return 1.0 if math.isinf(bound) else p_value(distance, sources)

    if half:
        p_supported = max(p_beyond(mean - least, low), p_beyond(most - mean, high))
        p_refuted = min(p_beyond(least - mean, high), p_beyond(mean - most, low))
    else:
        p_supported, p_refuted = float(verdict != "supported"), float(verdict != "refuted")
    return JudgedComparison(
        comparison,
        verdict,
        seeds,
        mean,
        sd,
        low,
        high,
        documents=documents,
        p_supported=p_supported,
        p_refuted=p_refuted,
        detectable=smallest_effect(with_seeds(sd, AFFORDABLE_SEEDS, documents)),
        needed=needed,
    )


def _document_errors(weights: Sequence[int], sides: Sequence[Sequence[Score]]) -> list[ErrorSource]:
    """Return a mean difference's error over test documents, by set of documents. `sides` contains runs by term."""
    if not all(run.groups for side in sides for run in side):
        return []
    # Systems mostly fail on the same documents, so that most variation cancels. With other documents, nothing cancels.
    differences: dict[tuple, np.ndarray] = {}
    for weight, side in zip(weights, sides, strict=True):
        for run in side:
            for documents, values in run.groups.items():
                differences[documents] = differences.get(documents, 0.0) + weight * values / len(side)
    return [error_source(values) for values in differences.values()]


def claimed_range(comparison: ClaimedDifference, margin: float) -> tuple[float, float]:
    """Return the range of differences where a comparison holds. `above` must exceed the lower bound."""
    bound = comparison.bound
    return {"above": (margin, math.inf), "not below": (-margin, math.inf), "within": (-bound, bound)}[comparison.kind]


def decide(comparison: ClaimedDifference, low: float, high: float, *, margin: float) -> Verdict:
    """Return the verdict on a comparison whose difference is between `low` and `high`."""
    least, most = claimed_range(comparison, margin)
    if high < least or low > most:
        return "refuted"
    holds = low > least if comparison.kind == "above" else least <= low and high <= most
    return "supported" if holds else "inconclusive"


def claims_table(
    scores: pd.DataFrame, histories: Sequence[History], settings: ReportSettings, *, names: Sequence[str] | None = None
) -> Table | None:
    """Judge all claims in the settings, or the named claims. None without any."""
    selection = names or list(settings.claims)
    if not selection:
        return None
    judgments = [judge(name, settings.claims, scores, histories) for name in selection]
    corrected = correct(judgments)
    return Table(
        "claims",
        "Claims",
        pd.DataFrame(
            [_row(judgment, verdict, settings) for judgment, verdict in zip(judgments, corrected, strict=True)],
            columns=HEADER,
        ),
        [label(heading) for heading in HEADER],
        caption=CAPTION,
        note=NOTE,
        full=pd.DataFrame(
            record
            for judgment, verdict in zip(judgments, corrected, strict=True)
            for record in _records(judgment, verdict)
        ),
        widths=WIDTHS,
    )


def correct(judgments: Sequence[JudgedClaim]) -> list[str]:
    """Return the claims' verdicts after Holm's correction over all judged claims.

    The probability of any wrong "supported" is then at most 5 %, and so is the probability of any wrong "refuted".
    """
    tested = [judgment for judgment in judgments if judgment.verdict not in ("not run", "control failed")]
    verdicts = {judgment.name: "undecided" for judgment in tested}
    for verdict, ps in (
        ("supported", [judgment.p_supported for judgment in tested]),
        ("refuted", [judgment.p_refuted for judgment in tested]),
    ):
        for judgment, p in zip(tested, holm(ps), strict=True):
            if judgment.verdict == verdict and p <= TAIL:
                verdicts[judgment.name] = verdict
    return [verdicts.get(judgment.name, MISSING) for judgment in judgments]


def _row(judgment: JudgedClaim, corrected: str, settings: ReportSettings) -> list[str]:
    claim = judgment.claim
    only = [*map(str, claim.distances), *filter(None, (claim.phenomenon, claim.kind))]
    what = f"{claim.metric}, {claim.test}" + (f" ({', '.join(only)})" if only else "")
    if claim.is_of_history:
        what = claim.metric if claim.step == "best" else f"{claim.metric} at {claim.step}"
        what = (
            f"first update with {what} of at most {claim.first_step_below:g}"
            if claim.first_step_below is not None
            else what
        )
    measured = []
    for term in claim.terms:
        runs = judgment.measured[term].values()
        values = [run.value for run in runs]
        mean, deviation = fmean(values) if values else None, stdev(values) if len(values) > 1 else None
        name = settings.label(term.system) + (f" on {term.dataset}" if term.dataset else "")
        bound = "at least " if any(run.is_at_least for run in runs) else ""
        measured.append(f"{name} {bound}{format_score(mean, deviation, digits=_digits(claim))} ({len(values)})")
    if judgment.control is not None:
        measured.append(f"control {judgment.control.name}: {judgment.control.verdict}")
    return [
        f"{claim.statement} ({claim.remark})" if claim.remark else claim.statement,
        ", ".join(filter(None, (claim.paper, claim.source))) or MISSING,
        claim.reported or MISSING,
        f"{what}: {'; '.join(measured)}",
        "; ".join(_difference(claim, finding) for finding in judgment.findings),
        judgment.verdict,
        corrected,
    ]


def _difference(claim: Claim, finding: JudgedComparison) -> str:
    digits = _digits(claim)
    comparison = finding.comparison.text + (
        f", margin {claim.margin:g}" if claim.margin and finding.comparison.kind != "within" else ""
    )
    if finding.verdict == "not run":
        return f"{comparison}: {len(finding.seeds)} of {claim.min_seeds} seeds"
    values = (finding.mean, finding.low, finding.high, finding.detectable)
    mean, low, high, effect = (format_number(value, digits=digits) for value in values)
    only = "" if finding.documents else " (seeds only)"
    power = ""
    if finding.verdict in UNDECIDED:
        power = (
            f", {AFFORDABLE_SEEDS} seeds show {effect}, {finding.needed or 'no number of'} seeds show the difference"
        )
    return f"{comparison}: {mean} [{low}, {high}]{only}{power}"


def _digits(claim: Claim) -> int:
    if claim.first_step_below is not None:
        return 0
    return HISTORY_DIGITS if claim.is_of_history else find_metric(claim.metric).digits


def _records(judgment: JudgedClaim, corrected: str) -> list[dict]:
    """Return one record per comparison."""
    claim = judgment.claim
    names = ("statement", "paper", "source", "reported", "metric", "test")
    facts = {"claim": judgment.name, "verdict": judgment.verdict, "corrected": corrected, "control": claim.control}
    facts |= {name: getattr(claim, name) for name in names}
    return [
        facts
        | {
            "comparison": finding.comparison.text,
            "margin": claim.margin,
            "comparison_verdict": finding.verdict,
            "seeds": len(finding.seeds),
            "difference": finding.mean,
            "sd": finding.sd,
            "low": finding.low,
            "high": finding.high,
            "document_error": math.hypot(*(float(source.error) for source in finding.documents)),
            "p_supported": finding.p_supported,
            "p_refuted": finding.p_refuted,
            "shown": finding.detectable,
            "seeds_needed": finding.needed,
        }
        for finding in judgment.findings
    ]
