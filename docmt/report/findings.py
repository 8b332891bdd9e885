"""Box above the first table: at most three sentences on the scores, as in a paper's abstract."""

from collections.abc import Sequence

import pandas as pd

from docmt.evaluation.metrics import find_metric
from docmt.report.dataframes import Record, column, keep, records, select
from docmt.report.differences import LEVELS, Difference, Differences
from docmt.report.footnotes import differing_signatures
from docmt.report.numbers import format_number, format_p, format_score
from docmt.report.score_cells import MIN_BLEU, is_above_chance, no_system_translates
from docmt.report.score_tables import choose_metrics
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey, contrastive_scores, name_suites, translation_scores

MAX_FORCED = 50  # name systems with a larger percentage of sentences at the length limit
MAX_NAMED = 4  # maximum number of tests or phenomena in a sentence, followed by the number of others


def key_findings(
    summary: pd.DataFrame,
    settings: ReportSettings,
    differences: Differences,
    updates_note: str = "",
    *,
    generated: Sequence[str] = (),
) -> list[str]:
    """Return at most three sentences: best system against the baseline, contrastive sets, limitations.

    `updates_note` is the footnote on systems with more or fewer updates. `generated` lists datasets with generated
    text.
    """
    results = [_best_systems(summary, settings, differences), _contrasts(summary, settings)]
    limits = _limits(summary, settings, updates_note, generated) if any(results) else ""
    return [sentence for sentence in (*results, limits) if sentence]


def _best_systems(summary: pd.DataFrame, settings: ReportSettings, differences: Differences) -> str:
    """Return a sentence on the best system per test against the baseline, by the main table's first metric."""
    names, _ = choose_metrics(summary, settings)
    if not names:
        return ""
    name, metric = names[0], find_metric(names[0])
    rows = select(translation_scores(summary), metric=names)  # of the main table
    if no_system_translates(rows):
        return f"No system translates yet: all BLEU scores are below {MIN_BLEU}."
    scored = keep(rows, (column(rows, "metric") == name) & column(rows, "mean").notna())
    parts = []
    tests = scored.groupby(["dataset", "test"], sort=False)
    for _, members in tests:
        ranked = sorted(records(members), key=lambda row: row["mean"], reverse=not metric.lower_is_better)
        dataset, test = ranked[0]["dataset"], ranked[0]["test"]
        if _are_incomparable(ranked):
            continue
        leaders, value = _leaders(_best(ranked, metric.digits), metric.digits, settings)
        scope = f" on {dataset}/{test}" if len(tests) > 1 else ""
        if len(ranked) == 1:
            parts.append(f"{leaders[0]} has {value} {name}{scope}")
        elif len(leaders) > 1:
            parts.append(f"{_join(leaders)} are level with {value} {name}{scope}")
        else:
            leads = ranked[0]["system"] == settings.baseline
            other = ranked[1] if leads else ranked[0]
            tested = differences.get((settings.baseline, other["system"], ScoreKey(dataset, test, name)))
            base = settings.label(settings.baseline or "")
            subject = (
                f"and {settings.label(other['system'])} differs from it" if leads else f"which differs from {base}"
            )
            against = _against(tested, subject, metric.digits, is_study_tested=settings.baseline is not None)
            parts.append(f"{leaders[0]} has the best {name}{scope}, {value}{against}")
    return f"{_join(parts, ', and ')}." if parts else ""


def _against(tested: Difference | None, subject: str, digits: int, *, is_study_tested: bool) -> str:
    """Return the difference from the baseline with its interval and test."""
    if tested is None:
        return " (not tested)" if is_study_tested else " (not tested, as report.baseline names no system)"
    if tested.is_zero(digits):
        return f", {subject} by less than {10**-digits:.{digits}f}"
    ends = [tested.difference + side * (tested.half_width or 0) for side in (0, -1, 1)]
    points, low, high = (format_number(end, digits=digits, sign="+") for end in ends)
    p_value = format_p(tested.highest_p, levels=[level for level, _ in LEVELS])
    interval = "" if tested.half_width is None else f"95 % interval {low} to {high}, "
    verdict = "" if tested.mark else ", not significant"
    return f", {subject} by {points} ({interval}{p_value}{verdict})"


def _are_incomparable(rows: Sequence[Record]) -> bool:
    """True if some scores on a test were computed in another way, so that the table highlights no score."""
    return bool(differing_signatures({row["system"]: row["signatures"] for row in rows}))


def _best(ranked: Sequence[Record], digits: int) -> list[Record]:
    """Return the rows with the best displayed score."""
    return [row for row in ranked if round(row["mean"], digits) == round(ranked[0]["mean"], digits)]


def _leaders(best: Sequence[Record], digits: int, settings: ReportSettings) -> tuple[list[str], str]:
    """Return the labels for the systems with the best displayed score, and the score."""
    labels = [settings.label(row["system"]) for row in best]
    if len(labels) > 1:
        labels = [f"“{label}”" if "," in label else label for label in labels]
    return labels, format_score(best[0]["mean"], best[0]["sd"] if len(best) == 1 else None, digits=digits)


def _contrasts(summary: pd.DataFrame, settings: ReportSettings) -> str:
    """Return a sentence on the best systems by phenomenon, and on phenomena where no system is above chance."""
    rows = name_suites(contrastive_scores(summary))
    n_datasets, n_systems = len(set(rows["dataset"])), len(set(rows["system"]))
    suites: dict[tuple[str, str], list[str]] = {}  # by names and verb
    at_chance, led_by_chance, incomparable = [], [], []
    for _, members in rows.groupby(["dataset", "suite"], sort=False):
        ranked = sorted(records(keep(members, column(members, "mean").notna())), key=lambda row: -row["mean"])
        if not ranked:
            continue
        first = ranked[0]
        suite = f"{first['suite']} of {first['dataset']}" if n_datasets > 1 else str(first["suite"])
        # Systems with the same accuracy can have intervals of different widths.
        best = [row for row in _best(ranked, 1) if _is_above_chance(row)]
        if _are_incomparable(ranked):
            incomparable.append(suite)
        elif not any(map(_is_above_chance, ranked)):
            at_chance.append(suite)
        elif not best:
            led_by_chance.append(suite)
        else:
            leaders, value = _leaders(best, 1, settings)
            verb = "leads in" if n_systems > 1 else "is above chance in"
            if len(best) > 1:
                verb = "lead in" if len(best) < len(ranked) else "are level in"
            suites.setdefault((_join(leaders), verb), []).append(f"{suite} ({value} %)")
    parts = [f"{leaders} {verb} {_join(names)}" for (leaders, verb), names in suites.items()]
    parts += [f"no system is clearly above chance in {_join(at_chance)}"] if at_chance else []
    parts += [f"the best system is not clearly above chance in {_join(led_by_chance)}"] if led_by_chance else []
    parts += [f"scores are not comparable in {_join(incomparable)}"] if incomparable else []
    return f"On contrastive sets, where context decides, {_join(parts, ', and ')}." if parts else ""


def _is_above_chance(row: Record) -> bool:
    return is_above_chance(row["mean"], row["low"], row["chance"])


def _limits(summary: pd.DataFrame, settings: ReportSettings, updates_note: str, generated: Sequence[str]) -> str:
    is_forced = (column(summary, "metric") == "length-limited sentences") & (column(summary, "mean") > MAX_FORCED)
    forced = [settings.label(system) for system in sorted(set(keep(summary, is_forced)["system"]))]
    reasons = [f"most sentences of {_join(forced)} reach the length limit"] if forced else []
    if updates_note:
        reasons.append("trainings differ in length (see the note)")
    if generated:
        reasons.append(f"the text of {_join(generated)} is generated and says nothing about other text")
    if max(summary["seeds"], default=0) == 1:
        reasons.append("one seed does not show how much trainings vary")
    return f"These results are limited, since {_join(reasons, ', and ')}." if reasons else ""


def _join(parts: Sequence[str], conjunction: str = " and ") -> str:
    """Join names to an enumeration. The number of omitted names is added."""
    names = [*parts[:MAX_NAMED], *([f"{len(parts) - MAX_NAMED} more"] if len(parts) > MAX_NAMED else [])]
    *most, last = names or [""]
    return f"{', '.join(most)}{conjunction}{last}" if most else last
