"""The box above the first table: at most five sentences that sum up a study, made from its scores."""

from collections.abc import Sequence

import pandas as pd

from docmt.evaluation.metrics import find_metric
from docmt.report.dataframes import Record, column, is_missing, keep, records
from docmt.report.differences import Differences
from docmt.report.footnotes import unlike_parts
from docmt.report.score_cells import is_above_chance
from docmt.report.score_tables import choose_metrics
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey, contrastive_scores, name_suites, translation_scores
from docmt.report.tables import format_score

MOST_PERCENT = 50  # of the sentences of a system whose translations reach the length limit, above which it is named
MOST_NAMED = 4  # tests and phenomena that a sentence names; of more, it gives the number
NOUN = "which noun “it” means, as in er, sie or es"
VERB = "the verb left out in “Tom does too”"
CASE = "the case of a noun without its verb, as in “Whom did you see? – Mary.”"
# The choice that the context decides, by phenomenon, and an example of it
PHENOMENA = {
    **dict.fromkeys(("pronoun", "anaphora", "gender"), NOUN),
    **dict.fromkeys(("ellipsis", "ellipsis_vp", "auxiliary"), VERB),
    **dict.fromkeys(("ellipsis_inflection", "inflection"), CASE),
    "structure": "which noun “it” means after a digression, as in er, sie or es",
    "deixis": "the same form of address throughout, not first du, then Sie",
    "formality": "the form of address, as in du or Sie",
    "cohesion": "one rendering of a name or word throughout, not first Julia, then Yulia",
    "lexical_choice": "the word that earlier sentences ask for, as for the “bank” of a river",
}


def key_findings(
    summary: pd.DataFrame,
    settings: ReportSettings,
    differences: Differences,
    updates_note: str = "",
    *,
    generated: Sequence[str] = (),
) -> list[str]:
    """At most five sentences: what was compared, the best system, what contrastive sets test, and caveats.

    `updates_note` is the footnote of systems with more or fewer updates; the text of `generated` datasets is generated.
    """
    sentences = [_compared(summary, settings), _best_systems(summary, settings, differences)]
    sentences += [_contrasts(summary, settings), _caveats(summary, settings, updates_note, generated)]
    return [sentence for sentence in sentences if sentence]


def _compared(summary: pd.DataFrame, settings: ReportSettings) -> str:
    systems = list(dict.fromkeys(summary["system"]))
    sizes = {f"{row['dataset']}/{row['test']}": "" for row in records(translation_scores(summary))}
    for row in records(translation_scores(summary)):
        if find_metric(row["metric"]).unit == "sentences" and not is_missing(row["n"]):
            sizes[f"{row['dataset']}/{row['test']}"] = f" ({row['n']:,} sentences)"
    seeds = sorted({row["seeds"] for row in records(summary) if row["seeds"]})
    if not seeds:
        return ""
    amount = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seed{'s' * (seeds[0] > 1)}"
    subject = f"{len(systems)} systems are compared" if len(systems) > 1 else f"{settings.label(systems[0])} is scored"
    tests = _join([test + size for test, size in sizes.items()]) or "test suites"
    return f"{subject} on {tests}, with {amount}{' each' * (len(systems) > 1)}."


def _best_systems(summary: pd.DataFrame, settings: ReportSettings, differences: Differences) -> str:
    """The best system on each test by the first metric of the main table, against the baseline."""
    rows = translation_scores(summary)
    names, _ = choose_metrics(summary, settings)
    if not names:
        return ""
    name, metric = names[0], find_metric(names[0])
    scored = keep(rows, (column(rows, "metric") == name) & column(rows, "mean").notna())
    parts = []
    tests = scored.groupby(["dataset", "test"], sort=False)
    for _, members in tests:
        ranked = sorted(records(members), key=lambda row: row["mean"], reverse=not metric.lower_is_better)
        dataset, test = ranked[0]["dataset"], ranked[0]["test"]
        if _are_unlike(ranked):
            continue
        best, value = _leaders(ranked, metric.digits, settings)
        place = f" on {dataset}/{test}" if len(tests) > 1 else ""
        if len(ranked) == 1:
            parts.append(f"{best} has {value} {name}{place}")
        elif round(ranked[0]["mean"], metric.digits) == round(ranked[1]["mean"], metric.digits):
            parts.append(f"{best} are level with {value} {name}{place}")
        else:
            leads = ranked[0]["system"] == settings.baseline
            shown = ranked[1] if leads else ranked[0]
            tested = differences.get((settings.baseline, shown["system"], ScoreKey(dataset, test, name)))
            remark = "not tested" if settings.baseline else "not tested, as report.baseline names no system"
            if tested:
                p = tested.highest_p
                p_value = "p < 0.001" if p < 0.001 else f"p = {p:.{2 if p >= 0.01 else 3}f}"
                ends = [tested.difference + side * (tested.half_width or 0) for side in (0, -1, 1)]
                points, low, high = (f"{end:+.{metric.digits}f}".replace("-", "−") for end in ends)
                points += "" if tested.half_width is None else f", 95 % interval {low} to {high}"
                other = settings.label(shown["system"]) if leads else "it"
                remark = f"{other} differs from {settings.label(tested.baseline)} by {points}, {p_value}"
                remark += "" if tested.mark else ": not significant"
            parts.append(f"{best} has the best {name}{place}, {value} ({remark})")
    return f"{_join(parts)}." if parts else ""


def _are_unlike(rows: Sequence[Record]) -> bool:
    """Whether some scores of a test were computed otherwise than the others: the table highlights none of them."""
    return bool(unlike_parts({row["system"]: row["signatures"] for row in rows}))


def _leaders(ranked: Sequence[Record], digits: int, settings: ReportSettings) -> tuple[str, str]:
    """The systems that are best as displayed, and their score."""
    first = ranked[0]
    leaders = [row for row in ranked if round(row["mean"], digits) == round(first["mean"], digits)]
    deviation = first["sd"] if len(leaders) == 1 else None
    labels = [settings.label(row["system"]) for row in leaders]
    if len(labels) > 1:
        labels = [f"“{label}”" if "," in label else label for label in labels]
    return _join(labels), format_score(first["mean"], deviation, digits=digits)


def _contrasts(summary: pd.DataFrame, settings: ReportSettings) -> str:
    """A sentence on contrastive sets, with a line for each: what it tests, and the best system."""
    rows = name_suites(contrastive_scores(summary))
    parts = []
    for _, members in rows.groupby(["dataset", "suite"], sort=False):
        ranked = sorted(records(keep(members, column(members, "mean").notna())), key=lambda row: -row["mean"])
        if not ranked:
            continue
        best, value = _leaders(ranked, 1, settings)
        above = [is_above_chance(row["mean"], row["low"], row["chance"]) for row in ranked]
        about = PHENOMENA.get(str(ranked[0]["phenomenon"]), "")
        verdict = f"{value} %" if len(ranked) == 1 else f"best {best}, {value} %"
        if _are_unlike(ranked):
            verdict = "scores are not comparable"
        elif not above[0]:
            verdict = f"{verdict}, not above guessing" if any(above) or len(ranked) == 1 else "nobody above guessing"
        parts.append(f"{ranked[0]['suite']} ({'; '.join(filter(None, (about, verdict)))})")
    listed = _join(parts, ";\n")
    return f"Contrastive sets test a choice that context decides:\n{listed}." if parts else ""


def _caveats(summary: pd.DataFrame, settings: ReportSettings, updates_note: str, generated: Sequence[str]) -> str:
    is_forced = (column(summary, "metric") == "forced ends") & (column(summary, "mean") > MOST_PERCENT)
    forced = [settings.label(system) for system in sorted(set(keep(summary, is_forced)["system"]))]
    clauses = [f"most sentences of {_join(forced)} reach the length limit"] if forced else []
    if updates_note:
        clauses.append("trainings differ in length (see the note)")
    if generated:
        clauses.append(f"the text of {_join(generated)} is generated and says nothing about other text")
    if max(summary["seeds"], default=0) == 1:
        clauses.append("one seed does not show how much trainings vary")
    return f"Mind that {_join(clauses, '; ')}." if clauses else ""


def _join(parts: Sequence[str], separator: str = ", ") -> str:
    """An enumeration in words, with the number of what is left out."""
    shown = [*parts[:MOST_NAMED], *([f"{len(parts) - MOST_NAMED} more"] if len(parts) > MOST_NAMED else [])]
    *most, last = shown or [""]
    return f"{separator.join(most)}{separator if ';' in separator else ' '}and {last}" if most else last
