"""Verdicts on claims from scores over seeds, and the verdict table."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from docmt.report.claims.measuring import Score, Seeds, measure
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
    comparisons: Sequence[JudgedComparison]
    control: "JudgedClaim | None"

    @property
    def verdict(self) -> Verdict:
        """Verdict over all comparisons. If the control is not supported, it decides, then the worst comparison."""
        if self.control is not None and self.control.verdict != "supported":
            if self.control.verdict == "not run":
                return "not run"
            return "control failed"
        order: list[Verdict] = ["not run", "refuted", "underpowered", "inconclusive", "supported"]
        return min((judged.verdict for judged in self.comparisons), key=order.index)

    @property
    def p_supported(self) -> float:
        """P value of "supported": the largest over the comparisons, since all must hold."""
        return max(judged.p_supported for judged in self.comparisons)

    @property
    def p_refuted(self) -> float:
        """P value of "refuted": the smallest over the comparisons, times their number, since one suffices."""
        return min(1.0, len(self.comparisons) * min(judged.p_refuted for judged in self.comparisons))


def judge(name: str, claims: Mapping[str, Claim], scores: pd.DataFrame, histories: Sequence[History]) -> JudgedClaim:
    """Judge a claim by the long score table and the training histories, if they contain its systems."""
    claim = claims[name]
    measured = {term: measure(claim, term, scores, histories) for term in claim.terms}
    comparisons = [_compare(claim, difference, measured) for difference in claim.differences]
    control = None
    if claim.control:
        control = judge(claim.control, claims, scores, histories)
    return JudgedClaim(name, claim, measured, comparisons, control)


def _compare(claim: Claim, comparison: ClaimedDifference, measured: Mapping[Term, Seeds]) -> JudgedComparison:
    seeds_of_terms = [set(measured[term]) for term in comparison.weights]
    seeds = tuple(sorted(set.intersection(*seeds_of_terms)))
    if len(seeds) < claim.min_seeds:
        return JudgedComparison(comparison, "not run", seeds)
    # Differences are taken seed by seed, so that all systems count with the same seeds.
    differences = []
    runs: dict[Term, list[Score]] = {}
    for seed in seeds:
        scores = {}
        for term in comparison.weights:
            run = measured[term][seed]
            runs.setdefault(term, []).append(run)
            scores[term] = run.value
        differences.append(comparison.difference(scores))
    documents = _document_errors(comparison.weights, runs)
    mean, sd = fmean(differences), stdev(differences)
    sources = with_seeds(sd, len(seeds), documents)
    half = float(half_width(sources))
    low, high = mean - half, mean + half
    # If a training never reached the value, one bound is unknown. Only longer training could find it, not more
    # seeds.
    for term, of_term in runs.items():
        if any(run.is_at_least for run in of_term):
            if comparison.weights[term] > 0:
                high = math.inf
            else:
                low = -math.inf
    verdict = decide(comparison, low, high, margin=claim.margin)
    least, most = claimed_range(comparison, claim.margin)
    needed = seeds_needed(min(abs(mean - least), abs(mean - most)), sd, documents)
    if verdict == "inconclusive" and (needed is None or needed > AFFORDABLE_SEEDS) and math.isfinite(high - low):
        verdict = "underpowered"

    def p_beyond(distance: float, bound: float) -> float:
        if math.isinf(distance):  # a range without this limit
            return float(distance < 0)
        if math.isinf(bound):
            return 1.0
        return p_value(distance, sources)

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


def _document_errors(weights: Mapping[Term, int], runs: Mapping[Term, Sequence[Score]]) -> list[ErrorSource]:
    """Return a mean difference's error over test documents, by set of documents."""
    if not all(run.groups for run in itertools.chain.from_iterable(runs.values())):
        return []
    # Systems mostly fail on the same documents, so that most variation cancels. With other documents, nothing cancels.
    differences: dict[tuple, np.ndarray] = {}
    for term, of_term in runs.items():
        for run in of_term:
            for documents, values in run.groups.items():
                difference = weights[term] * values / len(of_term)
                differences[documents] = differences.get(documents, 0.0) + difference
    return list(map(error_source, differences.values()))


def claimed_range(comparison: ClaimedDifference, margin: float) -> tuple[float, float]:
    """Return the range of differences where a comparison holds. `above` must exceed the lower bound."""
    bound = comparison.bound
    return {"above": (margin, math.inf), "not below": (-margin, math.inf), "within": (-bound, bound)}[comparison.kind]


def decide(comparison: ClaimedDifference, low: float, high: float, *, margin: float) -> Verdict:
    """Return the verdict on a comparison whose difference is between `low` and `high`."""
    least, most = claimed_range(comparison, margin)
    if high < least or low > most:
        return "refuted"
    if comparison.kind == "above":
        is_supported = low > least
    else:
        is_supported = least <= low and high <= most
    if is_supported:
        return "supported"
    return "inconclusive"


def claims_table(
    scores: pd.DataFrame, histories: Sequence[History], settings: ReportSettings, *, names: Sequence[str] | None = None
) -> Table | None:
    """Judge all claims in the settings, or the named claims. None without any."""
    judgments = [judge(name, settings.claims, scores, histories) for name in names or settings.claims]
    if not judgments:
        return None
    rows = []
    full = []
    for judgment, corrected in zip(judgments, correct(judgments), strict=True):
        rows.append(_row(judgment, corrected, settings))
        full += _records(judgment, corrected)
    return Table(
        "claims",
        "Claims",
        pd.DataFrame(rows, columns=HEADER),
        list(map(label, HEADER)),
        caption=CAPTION,
        note=NOTE,
        full=pd.DataFrame(full),
        widths=WIDTHS,
    )


def correct(judgments: Sequence[JudgedClaim]) -> list[str]:
    """Return the claims' verdicts after Holm's correction over all judged claims.

    The probability of any wrong "supported" is then at most 5 %, and so is the probability of any wrong "refuted".
    """
    tested = [judgment for judgment in judgments if judgment.verdict not in ("not run", "control failed")]
    supported_ps = holm([judgment.p_supported for judgment in tested])
    refuted_ps = holm([judgment.p_refuted for judgment in tested])
    verdicts = {}
    for judgment, p_supported, p_refuted in zip(tested, supported_ps, refuted_ps, strict=True):
        verdicts[judgment.name] = "undecided"
        if judgment.verdict == "supported" and p_supported <= TAIL:
            verdicts[judgment.name] = "supported"
        if judgment.verdict == "refuted" and p_refuted <= TAIL:
            verdicts[judgment.name] = "refuted"
    return [verdicts.get(judgment.name, MISSING) for judgment in judgments]


def _row(judgment: JudgedClaim, corrected: str, settings: ReportSettings) -> list[str]:
    claim = judgment.claim
    statement = claim.statement
    if claim.remark:
        statement += f" ({claim.remark})"
    measured = []
    for term in claim.terms:
        measured.append(_describe_runs(term, judgment.measured[term], claim, settings))
    if judgment.control is not None:
        measured.append(f"control {judgment.control.name}: {judgment.control.verdict}")
    differences = [_difference(claim, comparison) for comparison in judgment.comparisons]
    return [
        statement,
        ", ".join(filter(None, (claim.paper, claim.source))) or MISSING,
        claim.reported or MISSING,
        f"{_describe_metric(claim)}: {'; '.join(measured)}",
        "; ".join(differences),
        judgment.verdict,
        corrected,
    ]


def _describe_metric(claim: Claim) -> str:
    if not claim.is_of_history:
        text = f"{claim.metric}, {claim.test}"
        items = [*map(str, claim.distances), *filter(None, (claim.phenomenon, claim.kind))]
        if items:
            text += f" ({', '.join(items)})"
        return text
    if claim.first_step_below is not None:
        return f"first update with {claim.metric} of at most {claim.first_step_below:g}"
    if claim.step == "best":
        return claim.metric
    return f"{claim.metric} at {claim.step}"


def _describe_runs(term: Term, runs: Seeds, claim: Claim, settings: ReportSettings) -> str:
    """Return a system's mean score and number of seeds."""
    values = [run.value for run in runs.values()]
    mean = None
    deviation = None
    if values:
        mean = fmean(values)
    if len(values) > 1:
        deviation = stdev(values)
    name = settings.label(term.system)
    if term.dataset:
        name += f" on {term.dataset}"
    if any(run.is_at_least for run in runs.values()):
        name += " at least"
    return f"{name} {format_score(mean, deviation, digits=_digits(claim))} ({len(values)})"


def _difference(claim: Claim, judged: JudgedComparison) -> str:
    text = judged.comparison.text
    if claim.margin and judged.comparison.kind != "within":
        text += f", margin {claim.margin:g}"
    if judged.verdict == "not run":
        return f"{text}: {len(judged.seeds)} of {claim.min_seeds} seeds"
    number = partial(format_number, digits=_digits(claim))
    text += f": {number(judged.mean)} [{number(judged.low)}, {number(judged.high)}]"
    if not judged.documents:
        text += " (seeds only)"
    if judged.verdict in UNDECIDED:
        needed = judged.needed or "no number of"
        effect = number(judged.detectable)
        text += f", {AFFORDABLE_SEEDS} seeds show {effect}, {needed} seeds show the difference"
    return text


def _digits(claim: Claim) -> int:
    if claim.first_step_below is not None:
        return 0
    if claim.is_of_history:
        return HISTORY_DIGITS
    return find_metric(claim.metric).digits


def _records(judgment: JudgedClaim, corrected: str) -> list[dict]:
    """Return one record per comparison."""
    claim = judgment.claim
    facts = {"claim": judgment.name, "verdict": judgment.verdict, "corrected": corrected, "control": claim.control}
    for name in ("statement", "paper", "source", "reported", "metric", "test"):
        facts[name] = getattr(claim, name)
    rows = []
    for judged in judgment.comparisons:
        row = {
            "comparison": judged.comparison.text,
            "margin": claim.margin,
            "comparison_verdict": judged.verdict,
            "seeds": len(judged.seeds),
            "difference": judged.mean,
            "sd": judged.sd,
            "low": judged.low,
            "high": judged.high,
            "document_error": math.hypot(*(float(source.error) for source in judged.documents)),
            "p_supported": judged.p_supported,
            "p_refuted": judged.p_refuted,
            "shown": judged.detectable,
            "seeds_needed": judged.needed,
        }
        rows.append(facts | row)
    return rows
