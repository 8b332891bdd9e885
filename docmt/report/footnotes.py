"""What a number does not mean, said beside it."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from docmt.report.dataframes import column, is_missing, keep, records
from docmt.report.input_files import History
from docmt.report.settings import ReportSettings
from docmt.report.summary import contrastive_scores, name_suites

NEAR = 0.9
"""A training with at least this share of another's updates counts as equally long."""


def updates_footnote(
    histories: Sequence[History], origins: Mapping[str, Sequence[str]], systems: Sequence[str], settings: ReportSettings
) -> str:
    """Which of some systems were trained with fewer updates than the one that they are compared with.

    Args:
        histories: of all trained runs.
        origins: the trained systems whose updates made the models of a system, the last training first.
        systems: those that are compared.
        settings: of the report. All are compared with its baseline, or, without one, with the longest trained.

    Returns:
        One sentence or two, or nothing: also where new parameters learned for fewer updates than those that a model
        was initialized with, since more updates in all do not make up for that.
    """
    made = _updates(histories)
    trained = {
        system: [made[name] for name in origins.get(system, [system])]
        for system in dict.fromkeys(systems)
        if all(name in made for name in origins.get(system, [system]))
    }
    if not trained:
        return ""
    totals = {system: sum(counts) for system, counts in trained.items()}
    longest = max(totals, key=lambda system: totals[system])
    compared = settings.baseline if settings.baseline in totals else longest
    fewer = [system for system, total in totals.items() if total < NEAR * totals[compared]]
    later = [system for system, (own, *before) in trained.items() if before and own < NEAR * sum(before)]
    sentences = []
    if fewer:
        named = _list(f"{settings.label(system)} ({totals[system]:,.0f})" for system in fewer)
        sentences.append(
            f"Trained with fewer updates than {settings.label(compared)} ({totals[compared]:,.0f}): {named}. "
            "A lower score may only mean that."
        )
    if later:
        counts = {system: (trained[system][0], sum(trained[system][1:])) for system in later}
        named = _list(f"{settings.label(system)} ({own:,.0f} after {n:,.0f})" for system, (own, n) in counts.items())
        sentences.append(f"What these add to the model they start from learned for fewer updates than it: {named}.")
    return " ".join(sentences)


def _updates(histories: Sequence[History]) -> dict[str, float]:
    """The updates of each trained system, the mean over its runs."""
    steps: dict[str, list[float]] = {}
    for history in histories:
        steps.setdefault(history.system, []).append(float(column(history.table, "step").max()))
    return {system: sum(found) / len(found) for system, found in steps.items()}


def guessing_footnote(summary: pd.DataFrame, settings: ReportSettings) -> str:
    """Which systems cannot be told apart from guessing, by phenomenon; nothing where all can."""
    rows = name_suites(contrastive_scores(summary))
    guessing: dict[str, list[str]] = {}
    for row in records(rows):
        bounds = [row[key] for key in ("low", "chance", "high")]
        if not any(map(is_missing, bounds)) and bounds == sorted(bounds):
            guessing.setdefault(row["suite"], []).append(settings.label(row["system"]))
    if not guessing:
        return ""
    parts = []
    for suite, labels in guessing.items():
        systems = [settings.label(row["system"]) for row in records(keep(rows, column(rows, "suite") == suite))]
        others = " / ".join(name for name in systems if name not in labels)
        if 2 * len(labels) > len(systems) > 1:
            parts.append(f"{suite}: all but {others}" if others else f"{suite}: all")
        else:
            parts.append(f"{suite}: {' / '.join(dict.fromkeys(labels))}")
    return (
        "No better than guessing, as the interval or deviation of the accuracy reaches it: such a system has not "
        f"learned what decides, or does not see it: {'; '.join(parts)}."
    )


def overlap_footnote(generated: Sequence[str]) -> str:
    """Why much of the test data of generated datasets is in the training data; nothing without any."""
    if not generated:
        return ""
    return (
        f"{_list(generated)}: training and test documents are generated from the same templates, so sentences recur by "
        "design. That is no leak, but scores say nothing about text from elsewhere."
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
