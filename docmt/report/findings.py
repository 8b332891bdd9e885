"""Box above the first table: at most three sentences on the scores, as in a paper's abstract."""

import math
from collections.abc import Sequence

import pandas as pd

from docmt.evaluation.metrics import find_metric
from docmt.report.dataframes import column, keep, select
from docmt.report.differences import LEVELS, UNTESTED, Differences
from docmt.report.numbers import format_number, format_p, format_score
from docmt.report.score_cells import (
    MIN_BLEU,
    Layout,
    ScoreCell,
    compare_systems,
    no_system_translates,
    place_cells,
)
from docmt.report.score_tables import choose_metrics, contrastive_layout, translation_layout
from docmt.report.settings import ReportSettings
from docmt.report.summary import contrastive_scores, name_suites, translation_scores

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
    sentences = list(filter(None, (_best_systems(summary, settings, differences), _contrasts(summary, settings))))
    if sentences:
        limits = _limits(summary, settings, updates_note, generated)
        if limits:
            sentences.append(limits)
    return sentences


def _best_systems(summary: pd.DataFrame, settings: ReportSettings, differences: Differences) -> str:
    """Return a sentence on the best system per test against the baseline, by the main table's first metric."""
    names, _ = choose_metrics(summary, settings)
    if not names:
        return ""
    rows = select(translation_scores(summary), metric=names)  # of the main table
    if no_system_translates(rows):
        return f"No system translates yet: all BLEU scores are below {MIN_BLEU}."
    name = names[0]
    digits = find_metric(name).digits
    columns = _columns(select(rows, metric=name), translation_layout([name]), settings, differences)
    parts = []
    for (dataset, test, _), cells in columns.items():
        if any(cell.unlike for cell in cells):
            continue
        best = [cell for cell in cells if cell.is_best] or cells
        labels = _labels(best, settings)
        value = _describe_score(best, digits)
        scope = ""
        if len(columns) > 1:
            scope = f" on {dataset}/{test}"
        if len(cells) == 1:
            parts.append(f"{labels[0]} has {value} {name}{scope}")
        elif len(best) > 1:
            parts.append(f"{_join(labels)} are level with {value} {name}{scope}")
        else:
            difference = _describe_difference(cells, settings, digits)
            parts.append(f"{labels[0]} has the best {name}{scope}, {value}{difference}")
    if not parts:
        return ""
    return f"{_join(parts, ', and ')}."


def _describe_score(leaders: Sequence[ScoreCell], digits: int) -> str:
    """Return the score of equally good systems, with its deviation if it is the score of a single system."""
    if len(leaders) > 1:
        return format_score(leaders[0].mean, digits=digits)
    return format_score(leaders[0].mean, leaders[0].sd, digits=digits)


def _columns(
    rows: pd.DataFrame, layout: Layout, settings: ReportSettings, differences: Differences = UNTESTED
) -> dict[tuple[str, ...], list[ScoreCell]]:
    """Return the scores by group and heading as in the table, the best scores first. Empty columns are left out."""
    of_systems = []
    for row in place_cells(rows, layout).values():
        for cell in row.values():
            if cell.names and not math.isnan(cell.mean):
                of_systems.append(cell)
    columns = compare_systems(of_systems, layout, differences, settings.baseline)
    for (*_, heading), scores in columns.items():
        scores.sort(key=lambda cell: cell.mean, reverse=not layout.metrics[heading].lower_is_better)
    return columns


def _describe_difference(ranked: Sequence[ScoreCell], settings: ReportSettings, digits: int) -> str:
    """Return the difference between the best system and the baseline with its interval and test."""
    if ranked[0].names["system"] == settings.baseline:
        test = ranked[1].test
        subject = f"and {settings.label(ranked[1].names['system'])} differs from it"
    else:
        test = ranked[0].test
        subject = f"which differs from {settings.label(settings.baseline or '')}"
    if settings.baseline is None:
        return " (not tested, as report.baseline names no system)"
    if test is None:
        return " (not tested)"
    if test.is_zero(digits):
        return f", {subject} by less than {10**-digits:.{digits}f}"
    points = format_number(test.difference, digits=digits, sign="+")
    words = [format_p(test.highest_p, levels=[level for level, _ in LEVELS])]
    if test.half_width is not None:
        low = format_number(test.difference - test.half_width, digits=digits, sign="+")
        high = format_number(test.difference + test.half_width, digits=digits, sign="+")
        words.insert(0, f"95 % interval {low} to {high}")
    if not test.mark:
        words.append("not significant")
    return f", {subject} by {points} ({', '.join(words)})"


def _labels(cells: Sequence[ScoreCell], settings: ReportSettings) -> list[str]:
    """Return the systems' labels, quoted if a list would be ambiguous."""
    labels = [settings.label(cell.names["system"]) for cell in cells]
    if len(labels) == 1:
        return labels
    for i, label in enumerate(labels):
        if "," in label:
            labels[i] = f"“{label}”"
    return labels


def _contrasts(summary: pd.DataFrame, settings: ReportSettings) -> str:
    """Return a sentence on the best systems by phenomenon, and on phenomena where no system is above chance."""
    rows = name_suites(contrastive_scores(summary))
    has_datasets = len(set(rows["dataset"])) > 1
    suites: dict[tuple[str, str], list[str]] = {}  # by systems and verb
    at_chance = []
    led_by_chance = []
    incomparable = []
    for (dataset, name), cells in _columns(rows, contrastive_layout(rows), settings).items():
        suite = name
        if has_datasets:
            suite += f" of {dataset}"
        above = [cell for cell in cells if cell.is_above_chance]
        best = [cell for cell in cells if cell.is_best]
        if any(cell.unlike for cell in cells):
            incomparable.append(suite)
        elif not above:
            at_chance.append(suite)
        elif best or len({round(cell.mean, 1) for cell in cells}) == 1:
            leaders = best or above
            if len(leaders) == 1:
                verb = "leads in" if best else "is above chance in"
            else:
                verb = "lead in" if best else "are level in"
            value = _describe_score(leaders, digits=1)
            suites.setdefault((_join(_labels(leaders, settings)), verb), []).append(f"{suite} ({value} %)")
        else:
            led_by_chance.append(suite)
    parts = [f"{systems} {verb} {_join(names)}" for (systems, verb), names in suites.items()]
    if at_chance:
        parts.append(f"no system is clearly above chance in {_join(at_chance)}")
    if led_by_chance:
        parts.append(f"the best system is not clearly above chance in {_join(led_by_chance)}")
    if incomparable:
        parts.append(f"scores are not comparable in {_join(incomparable)}")
    if not parts:
        return ""
    return f"On contrastive sets, where context decides, {_join(parts, ', and ')}."


def _limits(summary: pd.DataFrame, settings: ReportSettings, updates_note: str, generated: Sequence[str]) -> str:
    is_forced = (column(summary, "metric") == "length-limited sentences") & (column(summary, "mean") > MAX_FORCED)
    forced = [settings.label(system) for system in sorted(set(keep(summary, is_forced)["system"]))]
    reasons = []
    if forced:
        reasons.append(f"most sentences of {_join(forced)} reach the length limit")
    if updates_note:
        reasons.append("trainings differ in length (see the note)")
    if generated:
        reasons.append(f"the text of {_join(generated)} is generated and says nothing about other text")
    if max(summary["seeds"], default=0) == 1:
        reasons.append("one seed does not show how much trainings vary")
    if not reasons:
        return ""
    return f"These results are limited, since {_join(reasons, ', and ')}."


def _join(parts: Sequence[str], conjunction: str = " and ") -> str:
    """Join names to an enumeration. The number of omitted names is added."""
    names = list(parts[:MAX_NAMED])
    if len(parts) > MAX_NAMED:
        names.append(f"{len(parts) - MAX_NAMED} more")
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])}{conjunction}{names[-1]}"
