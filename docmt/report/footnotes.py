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
    baseline: str | None = None,
    extended: Collection[str] = (),
) -> str:
    """Return notes on systems with fewer or more updates than the system they are compared with.

    Args:
        histories: histories for all trained runs.
        origins: training chain by system, the last training first.
        systems: systems in a table.
        settings: report settings.
        baseline: system with which the others are compared. Default: the report's baseline. Without one, they are
            compared with the system that was trained longest.
        summary: scores that can rule out an effect of updates. For example, a system with fewer updates is left out if
            none of its scores is worse.
        extended: systems whose model settings differ from the previous model in `origins`.

    Returns:
        Sentences, or an empty text. Update counts are means over the datasets that both systems were trained on. A
        sentence also names systems whose new parameters had fewer updates than their initial model, since more updates
        in total do not compensate for this.
    """
    trained = _count_updates(histories, origins, systems)
    if not trained:
        return ""
    totals: dict[str, dict[str, float]] = {}
    for system, updates in trained.items():
        totals[system] = {dataset: sum(chain) for dataset, chain in updates.items()}
    # Compare with the baseline even if other systems were trained longer, as readers of the tables do.
    longest = max(totals, key=lambda system: fmean(totals[system].values()))
    baseline = baseline or settings.baseline
    compared = baseline if baseline in totals else longest
    fewer: dict[float, list[str]] = {}  # by updates of the compared system
    more: dict[float, list[str]] = {}
    for system, of_datasets in totals.items():
        our_counts = []
        their_counts = []
        for dataset, n_updates in of_datasets.items():
            if dataset in totals[compared]:  # only datasets that both were trained on
                our_counts.append(n_updates)
                their_counts.append(totals[compared][dataset])
        if not our_counts:
            continue
        ours = fmean(our_counts)
        theirs = fmean(their_counts)
        if ours < NEAR * theirs:
            members = fewer
            sign = -1
        elif NEAR * ours > theirs:
            members = more
            sign = 1
        else:
            continue
        if sign in _directions(system, compared, settings, summary):
            members.setdefault(theirs, []).append(f"{settings.label(system)} ({ours:,.0f})")
    sentences = []
    for amount, word, members in (("fewer", "lower", fewer), ("more", "higher", more)):
        for n_updates, names in members.items():
            sentences.append(
                f"Trained with {amount} updates than {settings.label(compared)} ({n_updates:,.0f}): "
                f"{', '.join(names)}. A {word} score may only mean that."
            )
    extensions = []
    for system, updates in trained.items():
        last = fmean(chain[0] for chain in updates.values())
        before = fmean(sum(chain[1:]) for chain in updates.values())
        if system in extended and last < NEAR * before:
            extensions.append(f"{settings.label(system)} ({last:,.0f} after {before:,.0f})")
    if extensions:
        sentences.append(f"New parts were trained for fewer updates than the initial model: {', '.join(extensions)}.")
    return " ".join(sentences)


def _count_updates(
    histories: Sequence[History], origins: Mapping[str, Sequence[str]], systems: Iterable[str]
) -> dict[str, dict[str, list[float]]]:
    """Return mean updates of each training in a system's chain, by system and dataset."""
    steps: dict[str, dict[str, list[float]]] = {}
    for history in histories:
        of_dataset = steps.setdefault(history.dataset, {})
        of_dataset.setdefault(history.system, []).append(float(column(history.table, "step").max()))
    updates: dict[str, dict[str, list[float]]] = {}
    for system in dict.fromkeys(systems):
        chain = origins.get(system, [system])
        for dataset, of_systems in steps.items():
            if all(name in of_systems for name in chain):
                updates.setdefault(system, {})[dataset] = [fmean(of_systems[name]) for name in chain]
    return updates


def _directions(system: str, compared: str, settings: ReportSettings, summary: pd.DataFrame) -> set[int]:
    """Return the signs of score differences in the main tables. Both signs if no difference is known."""
    rows = select(summary, metric=[*settings.metrics, *ACCURACIES]).dropna(subset="mean")  # without missing scores
    names = [name for name in GROUP if name != "system"]
    pairs = select(rows, system=system).merge(select(rows, system=compared), on=names, suffixes=("", "_compared"))
    if pairs.empty:
        return {-1, 1}
    signs = set()
    for metric, mean, other in zip(pairs["metric"], pairs["mean"], pairs["mean_compared"], strict=True):
        if mean == other:
            continue
        if (mean > other) != find_metric(metric).lower_is_better:
            signs.add(1)
        else:
            signs.add(-1)
    return signs


def leak_footnote(
    overlaps: Iterable[tuple[str, str, Mapping[str, Any]]],
    generated: Sequence[str],
    *,
    is_shown: Callable[[str, str], bool],
) -> str:
    """Return a note on displayed test sets with text from the training data. Generated datasets have another note."""
    tests = []
    for dataset, split, counts in overlaps:
        name = split.removeprefix("test_")
        percent = counts.get("seen_sources_percent", 0)
        is_test = name != split and dataset not in generated
        if is_test and is_shown(dataset, name) and percent >= LEAK_PERCENT:
            tests.append(f"{dataset}/{name} ({percent:.1f} % of the source sentences)")
    if not tests:
        return ""
    return f"In the training text, too, so scores may be too high: {', '.join(tests)}."


def differing_signatures(signatures: Mapping[Row, Sequence[str]]) -> dict[Row, tuple[str, str]]:
    """Return signature parts that differ between rows: the minority's parts by row, and the majority's parts.

    Args:
        signatures: signatures for all seeds, by row.
    """
    # Warnings describe the text, not the computation. Missing scores have no value to compare.
    computations: dict[Row, list[tuple[str, ...]]] = {}
    for row, of_row in signatures.items():
        computations[row] = []
        for signature in of_row:
            if not signature.startswith(NOT_COMPUTED):
                parts = [part for part in signature.split("|") if not part.startswith(WARNING)]
                computations[row].append(tuple(parts))
    counts = Counter(itertools.chain.from_iterable(computations.values()))
    if len(counts) < 2:
        return {}
    usual = counts.most_common(1)[0][0]
    shared = set.intersection(*map(set, counts))

    def describe(computation: Sequence[str]) -> str:
        return ", ".join(part for part in computation if part not in shared) or "less"

    differing = {}
    for row, of_row in computations.items():
        unusual = [computation for computation in of_row if computation != usual]
        if unusual:
            differing[row] = (describe(unusual[-1]), describe(usual))
    return differing


def signatures_footnote(rows: Sequence[tuple[str, Mapping[str, Sequence[str]]]]) -> str:
    """Return warnings, and reasons for missing scores.

    Args:
        rows: (title, signatures by column) per row. Titles can be equal.
    """
    titles: dict[str, dict[int, str]] = {}  # by remark and row
    for i, (title, columns) in enumerate(rows):
        for name, signatures in columns.items():
            for signature in signatures:
                for part in signature.split("|"):
                    if part.startswith(WARNING):
                        titles.setdefault(part.removeprefix(WARNING), {})[i] = title
                if signature.startswith(NOT_COMPUTED):
                    titles.setdefault(f"{name} is {signature}", {})[i] = title
    sentences = []
    for remark, of_rows in titles.items():
        if len(of_rows) == len(rows) > 1:
            sentences.append(f"{remark}.")
        else:
            sentences.append(f"{', '.join(of_rows.values())}: {remark}.")
    return " ".join(sentences)
