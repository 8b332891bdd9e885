"""Tables of results: translation scores and accuracies on test suites, with published numbers beside ours."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from docmt.evaluation.metrics import ACCURACIES, ACCURACY, GENERATIVE, find_metric
from docmt.report.differences import UNTESTED, Difference, Differences
from docmt.report.frames import column, is_missing, keep, records
from docmt.report.grid import GridShape, Label, build_grid
from docmt.report.publications import PublishedNumber, find_published
from docmt.report.settings import ReportSettings
from docmt.report.summary import contrastive_scores, translation_scores
from docmt.report.tables import Table

ALL = "all"
WINNING = {
    ACCURACY: "whose correct candidate scores strictly highest",
    GENERATIVE: "whose translation contains what is expected",
}


def published_number(
    settings: ReportSettings, dataset: str, test: str, system: str, *, metric: str, phenomenon: str | None = None
) -> PublishedNumber | None:
    """The published number that the settings match with one of our scores, or None."""
    published_dataset = settings.datasets.get(f"{dataset}/{test}", settings.datasets.get(dataset))
    return find_published(settings.published.get(system), published_dataset, metric=metric, phenomenon=phenomenon)


def main_table(summary: pd.DataFrame, settings: ReportSettings, differences: Differences = UNTESTED) -> Table | None:
    """Systems by the metrics of the settings, for each test set."""
    rows = translation_scores(summary)
    rows = keep(rows, column(rows, "metric").isin(settings.metrics))
    found = set(rows["metric"])
    metrics = [name for name in settings.metrics if name in found]
    return _translation_table(
        rows,
        settings,
        metrics,
        key="results",
        title="Translation scores",
        caption="In percent; mean and sample deviation over seeds. The best of ours is in bold. d-BLEU (instances) is "
        "over the instances that a system translates, which differ between ways of cutting documents; d-BLEU "
        "(documents) is not affected.",
        differences=differences,
    )


def further_table(summary: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """The remaining scores of translations."""
    rows = translation_scores(summary)
    rows = keep(rows, ~column(rows, "metric").isin(settings.metrics))
    metrics = list(dict.fromkeys(rows["metric"]))
    return _translation_table(
        rows,
        settings,
        metrics,
        key="further",
        title="Further scores",
        caption="In percent, CXMI in nats. Tokenized scores equal Moses' multi-bleu. Length ratio: hypotheses to "
        "references. Forced ends: sentences that reached the length limit. Aligned instances: those with as many "
        "sentences as the source (only for systems without sentence alignment).",
        compare=False,
        differences=UNTESTED,
    )


def _translation_table(
    rows: pd.DataFrame, settings: ReportSettings, metrics: Sequence[str], *, differences: Differences, **described: Any
) -> Table | None:
    if not metrics:
        return None

    def lookup(label: Label, heading: str) -> PublishedNumber | None:
        dataset, test, system = label
        return published_number(settings, dataset, test, system, metric=heading)

    def tested(label: Label, heading: str) -> Difference | None:
        return differences.find(settings.baseline, *label, metric=heading)

    shape = GridShape(
        by=["dataset", "test", "system"],
        names=["Dataset", "Test", "System"],
        column="metric",
        columns={name: find_metric(name) for name in metrics},
        lookup=lookup,
        tested=tested,
    )
    return build_grid(rows, settings, shape, **described)


def contrastive_table(
    summary: pd.DataFrame,
    settings: ReportSettings,
    differences: Differences = UNTESTED,
    *,
    metric: str = ACCURACY,
) -> Table | None:
    """Systems by phenomena; for contrastive accuracy with a row for guessing under each dataset."""
    rows = name_suites(contrastive_scores(summary, metric=metric))
    if rows.empty:
        return None
    origins = {
        (row["dataset"], row["suite"]): (row["test"], None if is_missing(row["phenomenon"]) else row["phenomenon"])
        for row in records(rows)
    }

    def lookup(label: Label, heading: str) -> PublishedNumber | None:
        dataset, system = label
        if (dataset, heading) not in origins:
            return None
        test, phenomenon = origins[dataset, heading]
        return published_number(settings, dataset, test, system, metric=metric, phenomenon=phenomenon)

    def tested(label: Label, heading: str) -> Difference | None:
        dataset, system = label
        if (dataset, heading) not in origins:
            return None
        test, phenomenon = origins[dataset, heading]
        return differences.find(settings.baseline, dataset, test, system, metric=metric, phenomenon=phenomenon)

    sizes = rows.drop_duplicates(["dataset", "suite"])
    items = "; ".join(f"{row['dataset']} {row['suite']} {row['n']}" for row in records(sizes))
    shape = GridShape(
        by=["dataset", "system"],
        names=["Dataset", "System"],
        column="suite",
        columns=dict.fromkeys(rows["suite"], find_metric(metric)),
        lookup=lookup,
        tested=tested,
    )
    return build_grid(
        rows,
        settings,
        shape,
        key=metric.split()[0],
        title=metric.capitalize(),
        caption=f"Percentage of items {WINNING[metric]}; mean and sample deviation over seeds. Items: {items}.",
        chance=metric == ACCURACY,
    )


def split_tables(summary: pd.DataFrame, settings: ReportSettings) -> list[Table | None]:
    """Both accuracies by distance and by kind."""
    return [split_table(summary, settings, by=by, metric=name) for name in ACCURACIES for by in ("distance", "kind")]


def split_table(summary: pd.DataFrame, settings: ReportSettings, *, by: str, metric: str = ACCURACY) -> Table | None:
    """Contrastive or generative accuracy by `distance` or by `kind`."""
    rows = name_suites(contrastive_scores(summary, by=by, metric=metric))
    if rows.empty:
        return None
    rows = rows.assign(**{by: rows[by].astype("string")})
    columns = list(dict.fromkeys(rows[by]))
    if by == "distance":
        columns.sort(key=int)
    words = {
        "distance": "By the number of sentences between the antecedent and the word that depends on it.",
        "kind": "By the finer class of the items.",
    }
    shape = GridShape(
        by=["dataset", "suite", "system"],
        names=["Dataset", "Phenomenon", "System"],
        column=by,
        columns=dict.fromkeys(columns, find_metric(metric)),
        lookup=lambda *_: None,
    )
    return build_grid(
        rows,
        settings,
        shape,
        key=f"{metric.split()[0]}_by_{by}",
        title=f"{metric.capitalize()} by {by}",
        caption=f"{words[by]} Percent; mean and sample deviation over seeds.",
    )


def name_suites(rows: pd.DataFrame) -> pd.DataFrame:
    """Add a column `suite`: the phenomenon where it is unambiguous within its dataset, else test and phenomenon."""
    phenomena = rows["phenomenon"].fillna(ALL)
    pairs = pd.DataFrame({"dataset": rows["dataset"], "test": rows["test"], "phenomenon": phenomena})
    tests = pairs.groupby(["dataset", "phenomenon"])["test"].transform("nunique") if len(pairs) else pairs["test"]
    names = [
        phenomenon if count == 1 else f"{test}: {phenomenon}"
        for phenomenon, test, count in zip(phenomena, pairs["test"], tests, strict=True)
    ]
    return rows.assign(suite=pd.Series(names, index=rows.index, dtype="string"))
