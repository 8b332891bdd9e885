"""The table of claims: what is claimed, what was reported, what was measured, and the verdict."""

from collections.abc import Sequence
from statistics import fmean, stdev

import pandas as pd

from docmt.evaluation.metrics import find_metric
from docmt.report.claims.claim import Claim
from docmt.report.claims.judging import CONFIDENCE, MANY_SEEDS, POWER, Finding, Judgment, judge
from docmt.report.input_files import History
from docmt.report.settings import ReportSettings
from docmt.report.tables import MISSING, Table, format_score

HEADER = ["Claim", "Paper", "Reported", "Measured", "Difference", "Verdict"]
WIDTHS = (30, 16, 24, 34, 26, 10)  # characters of the columns in plain text
CAPTION = (
    "Measured: mean ± sample deviation over seeds. Difference: of the relation, mean and "
    f"{CONFIDENCE:.0%} interval, with the smallest difference that matters; where it decides nothing, the smallest "
    f"effect that {MANY_SEEDS} seeds would show ({POWER:.0%} power). docs/claims.md explains the verdicts."
)
UNDECIDED = ("cannot be told", "untestable here")
HISTORY_DIGITS = 3


def claims_table(
    scores: pd.DataFrame, histories: Sequence[History], settings: ReportSettings, *, names: Sequence[str] | None = None
) -> Table | None:
    """Judge the claims of the settings, or only those named; None without any."""
    chosen = names or list(settings.claims)
    if not chosen:
        return None
    judgments = [judge(name, settings.claims, scores, histories) for name in chosen]
    return Table(
        key="claims",
        title="Claims",
        caption=CAPTION,
        header=HEADER,
        rows=[_row(judgment, settings) for judgment in judgments],
        values=pd.DataFrame([record for judgment in judgments for record in _records(judgment)]),
        n_labels=len(HEADER),
        widths=WIDTHS,
    )


def _row(judgment: Judgment, settings: ReportSettings) -> list[str]:
    claim = judgment.claim
    only = [*map(str, claim.distances), *filter(None, (claim.phenomenon, claim.kind))]
    what = f"{claim.metric}, {claim.test}" + (f" ({', '.join(only)})" if only else "")
    if claim.is_of_history:
        what = claim.metric if claim.at == "best" else f"{claim.metric} at {claim.at}"
        what = f"first update with {what} of at most {claim.reaches:g}" if claim.reaches is not None else what
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
        ", ".join(filter(None, (claim.paper, claim.place))) or MISSING,
        claim.reported or MISSING,
        f"{what}: {'; '.join(measured)}",
        "; ".join(_difference(claim, finding) for finding in judgment.findings),
        judgment.verdict,
    ]


def _difference(claim: Claim, finding: Finding) -> str:
    digits = _digits(claim)
    relation = finding.comparison.text + (
        f", margin {claim.margin:g}" if claim.margin and finding.comparison.kind != "within" else ""
    )
    if finding.verdict == "not run":
        return f"{relation}: {len(finding.seeds)} of {claim.min_seeds} seeds"
    shown = f", {MANY_SEEDS} seeds show {finding.shown:.{digits}f}" if finding.verdict in UNDECIDED else ""
    return f"{relation}: {finding.mean:.{digits}f} [{finding.low:.{digits}f}, {finding.high:.{digits}f}]{shown}"


def _digits(claim: Claim) -> int:
    if claim.reaches is not None:
        return 0
    return HISTORY_DIGITS if claim.is_of_history else find_metric(claim.metric).digits


def _records(judgment: Judgment) -> list[dict]:
    """One record per comparison."""
    claim = judgment.claim
    names = ("statement", "paper", "place", "reported", "metric", "test")
    facts = {"claim": judgment.name, "verdict": judgment.verdict, "control": claim.control}
    facts |= {name: getattr(claim, name) for name in names}
    return [
        facts
        | {
            "relation": finding.comparison.text,
            "margin": claim.margin,
            "relation_verdict": finding.verdict,
            "seeds": len(finding.seeds),
            "difference": finding.mean,
            "sd": finding.sd,
            "low": finding.low,
            "high": finding.high,
            "shown": finding.shown,
        }
        for finding in judgment.findings
    ]
