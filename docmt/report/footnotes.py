"""Footnotes that warn against misreading a number."""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, TypeVar

import pandas as pd

from docmt.corpora.combining import LEAK_PERCENT
from docmt.evaluation.metrics import ACCURACIES, find_metric
from docmt.evaluation.score_rows import NOT_COMPUTED, WARNING
from docmt.report.dataframes import column, select
from docmt.report.input_files import History
from docmt.report.settings import ReportSettings
from docmt.report.summary import GROUP

NEAR = 0.9  # minimum ratio of two update counts that are considered equal
Row = TypeVar("Row", bound=Hashable)


def updates_footnote(
    histories: Sequence[History],
    origins: Mapping[str, Sequence[str]],
    systems: Sequence[str],
    settings: ReportSettings,
    summary: pd.DataFrame,
    *,
    extended: Collection[str] = (),
) -> str:
    """Return notes on systems with fewer or more updates than the system they are compared with.

    Args:
        histories: histories for all trained runs.
        origins: training chain by system, the last training first.
        systems: systems in a table.
        settings: report settings. Systems are compared with the baseline. Without a baseline, they are compared with
            the system that was trained longest.
        summary: scores that can rule out an effect of updates. For example, a system with fewer updates is left out if
            none of its scores is worse.
        extended: systems whose model settings differ from the previous model in `origins`.

    Returns:
        Sentences, or an empty text. Update counts are means over the datasets that both systems were trained on. A
        sentence also names systems whose new parameters had fewer updates than their initial model, since more updates
        in total do not compensate for this.
    """
    steps: dict[str, dict[str, list[float]]] = {}
    for history in histories:
        of_dataset = steps.setdefault(history.dataset, {})
        of_dataset.setdefault(history.system, []).append(float(column(history.table, "step").max()))
    trained: dict[str, dict[str, list[float]]] = {}
    for system, dataset in itertools.product(dict.fromkeys(systems), steps):
        chain = origins.get(system, [system])  # on the same dataset
        if all(name in steps[dataset] for name in chain):
            trained.setdefault(system, {})[dataset] = [fmean(steps[dataset][name]) for name in chain]
    if not trained:
        return ""
    totals = {system: {dataset: sum(last) for dataset, last in updates.items()} for system, updates in trained.items()}
    # Compare with the baseline even if other systems were trained longer, as readers of the tables do.
    longest = max(totals, key=lambda system: fmean(totals[system].values()))
    compared = settings.baseline if settings.baseline in totals else longest
    # Updates of the system and the compared system, on the datasets that both were trained on.
    pairs: dict[str, tuple[float, float]] = {}
    for system, last in totals.items():
        if shared := [dataset for dataset in last if dataset in totals[compared]]:
            pairs[system] = fmean(map(last.__getitem__, shared)), fmean(map(totals[compared].__getitem__, shared))
    sentences = []
    for amount, word, sign in (("fewer", "lower", -1), ("more", "higher", 1)):
        members: dict[float, list[str]] = {}
        for system, (last, other) in pairs.items():
            is_unlike = last < NEAR * other if amount == "fewer" else NEAR * last > other
            if is_unlike and sign in _directions(system, compared, settings, summary):
                members.setdefault(other, []).append(f"{settings.label(system)} ({last:,.0f})")
        for other, named in members.items():
            sentences.append(
                f"Trained with {amount} updates than {settings.label(compared)} ({other:,.0f}): {', '.join(named)}. "
                f"A {word} score may only mean that."
            )
    parts = []
    for system, updates in trained.items():
        last, before = fmean(last for last, *_ in updates.values()), fmean(sum(rest) for _, *rest in updates.values())
        if system in extended and last < NEAR * before:
            parts.append(f"{settings.label(system)} ({last:,.0f} after {before:,.0f})")
    if parts:
        sentences.append(f"New parts were trained for fewer updates than the initial model: {', '.join(parts)}.")
    return " ".join(sentences)


def _directions(system: str, compared: str, settings: ReportSettings, summary: pd.DataFrame) -> set[int]:
    """Return the signs of score differences in the main tables. Both signs if a difference is zero or none is known."""
    rows = select(summary, metric=[*settings.metrics, *ACCURACIES]).dropna(subset="mean")  # without missing scores
    ours, theirs = select(rows, system=system), select(rows, system=compared)
    pairs = ours.merge(theirs, on=[name for name in GROUP if name != "system"], suffixes=("", "_compared"))
    differences = (pairs["mean"] - pairs["mean_compared"]).tolist()
    if not differences or 0 in differences:
        return {-1, 1}
    return {
        -1 if (difference < 0) != find_metric(metric).lower_is_better else 1
        for metric, difference in zip(pairs["metric"], differences, strict=True)
    }


def leak_footnote(
    overlaps: Iterable[tuple[str, str, Mapping[str, Any]]],
    generated: Sequence[str],
    *,
    is_shown: Callable[[str, str], bool],
) -> str:
    """Return a note on displayed test sets with text from the training data. Generated datasets have another note."""
    tests = [
        f"{dataset}/{name} ({counts['seen_sources_percent']:.1f} % of the source sentences)"
        for dataset, test, counts in overlaps
        if (name := test.removeprefix("test_")) != test and dataset not in generated and is_shown(dataset, name)
        if counts.get("seen_sources_percent", 0) >= LEAK_PERCENT
    ]
    return f"In the training text, too, so scores may be too high: {', '.join(tests)}." if tests else ""


def differing_signatures(signatures: Mapping[Row, Sequence[str]]) -> dict[Row, tuple[str, str]]:
    """Return signature parts that differ between rows: the minority's parts by row, and the majority's parts.

    Args:
        signatures: signatures for all seeds, by row.
    """
    # Warnings describe the text, not the computation. Missing scores have no value to compare.
    parts = {
        row: [
            tuple(part for part in signature.split("|") if not part.startswith(WARNING))
            for signature in computations
            if not signature.startswith(NOT_COMPUTED)
        ]
        for row, computations in signatures.items()
    }
    counts = Counter(computation for computations in parts.values() for computation in computations)
    if len(counts) < 2:
        return {}
    (usual, _), *_ = counts.most_common(1)
    shared = set.intersection(*map(set, counts))

    def describe(computation: Sequence[str]) -> str:
        return ", ".join(part for part in computation if part not in shared) or "less"

    return {
        row: (describe(unusual[-1]), describe(usual))
        for row, computations in parts.items()
        if (unusual := [computation for computation in computations if computation != usual])
    }


def signatures_footnote(rows: Sequence[tuple[str, Mapping[str, Sequence[str]]]]) -> str:
    """Return warnings, and reasons for missing scores.

    Args:
        rows: (title, signatures by column) per row. Titles can be equal.
    """
    remarks: dict[str, dict[int, str]] = {}
    for i, (title, columns) in enumerate(rows):
        for name, signatures in columns.items():
            for signature in signatures:
                warnings = [part.removeprefix(WARNING) for part in signature.split("|") if part.startswith(WARNING)]
                if signature.startswith(NOT_COMPUTED):
                    warnings.append(f"{name} is {signature}")
                for remark in warnings:
                    remarks.setdefault(remark, {})[i] = title
    return " ".join(
        f"{remark}." if len(titles) == len(rows) > 1 else f"{', '.join(titles.values())}: {remark}."
        for remark, titles in remarks.items()
    )
