"""Score tables: systems by metrics, suites, distances or kinds, and user-defined paper tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from docmt.evaluation.contrastive_accuracy import sort_ranges
from docmt.evaluation.metrics import ACCURACY, CXMI, GENERATIVE, METRICS, find_metric
from docmt.evaluation.score_rows import WARNING
from docmt.report.dataframes import records, select
from docmt.report.differences import UNTESTED, Differences
from docmt.report.score_cells import CHANCE, ITEMS, Layout, is_comparable, score_table
from docmt.report.settings import ReportSettings
from docmt.report.summary import (
    AVERAGE,
    MIN_ITEMS,
    PaperColumns,
    ScoreKey,
    choose_rows,
    contrastive_scores,
    describe_missing,
    name_columns,
    name_suites,
    score_keys,
    summarize,
    translation_scores,
)
from docmt.report.tables import Table

Choices = Mapping[str, Mapping[str, str]]  # `StudyFacts.choices`
WINNING = {
    ACCURACY: "whose correct candidate scores strictly highest",
    GENERATIVE: "whose translation contains what is expected",
}


def main_table(summary: pd.DataFrame, settings: ReportSettings, differences: Differences = UNTESTED) -> Table | None:
    """Return systems by metrics in the settings, per test set. Metrics over differing segments are left out."""
    metrics, incomparable = choose_metrics(summary, settings)
    note = ""
    if incomparable:
        note = f"Left out, as systems cut documents differently: {', '.join(incomparable)}."
    return _translation_table(
        summary,
        metrics,
        settings,
        differences,
        key="results",
        title="Translation scores",
        unit=_describe_unit(metrics),
        note=note,
    )


def further_table(summary: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """Return translation scores that are not in the main table."""
    metrics, _ = choose_metrics(summary, settings)
    names = [name for name in dict.fromkeys(translation_scores(summary)["metric"]) if name not in metrics]
    return _translation_table(
        summary,
        names,
        settings,
        key="further",
        title="Further scores",
        unit=_describe_unit([*names, CXMI]),
        note="d-BLEU (instances) is over the instances that a system translates: it compares only systems that cut "
        "documents alike. Tokenized scores equal Moses' multi-bleu. Length ratio: hypotheses to references. "
        "Length-limited sentences reached the length limit. Sentence count preserved: instances with as many "
        "sentences as the source (only for systems without sentence alignment).",
        compare=False,
    )


def choose_metrics(summary: pd.DataFrame, settings: ReportSettings) -> tuple[list[str], list[str]]:
    """Return comparable and other metrics in the settings, if they have scores."""
    rows = translation_scores(summary)
    comparable: list[str] = []
    others: list[str] = []
    for name in settings.metrics:
        of_metric = select(rows, metric=name)
        if of_metric.empty:
            continue
        tests = of_metric.groupby(["dataset", "test"])
        if all(is_comparable(find_metric(name), of_test["n"]) for _, of_test in tests):
            comparable.append(name)
        else:
            others.append(name)
    return comparable, others


def _describe_unit(metrics: Sequence[str]) -> str:
    units = ["In percent"]
    if CXMI in metrics:
        units.append("CXMI in nats")
    external = [name for name in metrics if name not in METRICS]
    if external:
        units.append(f"{', '.join(external)} as in the files")
    return ", ".join(units)


def _translation_table(
    summary: pd.DataFrame,
    metrics: Sequence[str],
    settings: ReportSettings,
    differences: Differences = UNTESTED,
    **words: Any,
) -> Table | None:
    if not metrics:
        return None
    rows = select(translation_scores(summary), metric=list(metrics))
    return score_table(rows, translation_layout(metrics), settings, differences, **words)


def translation_layout(metrics: Sequence[str]) -> Layout:
    """Return the layout of tables with systems by metrics, per test set."""
    return Layout(
        {"Dataset": "dataset", "Test": "test", "System": "system"},
        "metric",
        {name: find_metric(name) for name in metrics},
        lambda cell: ScoreKey(cell["dataset"], cell["test"], cell["metric"]),
    )


def contrastive_table(
    summary: pd.DataFrame,
    settings: ReportSettings,
    differences: Differences = UNTESTED,
    *,
    metric: str = ACCURACY,
    choices: Choices | None = None,
) -> Table | None:
    """Return systems by phenomena. Contrastive accuracy has a row for chance under every dataset."""
    rows = name_suites(contrastive_scores(summary, metric=metric))
    if rows.empty:
        return None
    sizes = rows.drop_duplicates(["dataset", "suite"])
    names = sizes["suite"]
    if len(set(sizes["dataset"])) > 1:
        names = sizes["dataset"] + " " + sizes["suite"]
    items = ", ".join(f"{name} {n}" for name, n in zip(names, sizes["n"], strict=True))
    return score_table(
        rows,
        contrastive_layout(rows, metric),
        settings,
        differences,
        key=metric.split()[0],
        title=metric.capitalize(),
        unit=f"Percentage of items {WINNING[metric]}",
        note=" ".join([f"Items: {items}.", *_describe_choices(sizes, choices or {})]),
    )


def contrastive_layout(rows: pd.DataFrame, metric: str = ACCURACY) -> Layout:
    """Return the layout of the table with systems by phenomena, from rows with their suites."""
    keys = _suite_keys(rows)
    last = None
    if metric == ACCURACY:
        last = CHANCE
    return Layout(
        {"Dataset": "dataset", "System": "system"},
        "suite",
        dict.fromkeys(rows["suite"], find_metric(metric)),
        lambda cell: keys.get((cell["dataset"], cell["suite"])),
        find_items=lambda cell: _items_of(keys[cell["dataset"], cell["suite"]]),
        last=last,
    )


def _describe_choices(suites: pd.DataFrame, choices: Choices) -> list[str]:
    """Return a sentence per suite on the choice that depends on context. Equal suites of several datasets share one."""
    texts: dict[str, dict[str, str | None]] = {}  # suite → dataset → text
    for row in records(suites):
        of_suite = choices.get(f"{row['dataset']}/{row['test']}", {})
        texts.setdefault(row["suite"], {})[row["dataset"]] = of_suite.get(row["phenomenon"])
    sentences = []
    for suite, by_dataset in texts.items():
        if len(set(by_dataset.values())) == 1:
            by_dataset = {"": next(iter(by_dataset.values()))}
        for dataset, text in by_dataset.items():
            if text:
                sentences.append(f"{dataset} {suite}: {text}.".lstrip())
    return sentences


def _suite_keys(rows: pd.DataFrame) -> dict[tuple[str, str], ScoreKey]:
    """Return the scores over whole suites, by dataset and suite name."""
    return dict(zip(zip(rows["dataset"], rows["suite"], strict=True), score_keys(rows), strict=True))


def _items_of(key: ScoreKey, **filters: str) -> dict[str, str]:
    """Return the reader's filters for a suite's items."""
    suite = {"set": f"{key.dataset}/{key.test}"}
    if key.phenomenon:
        suite["phenomenon"] = key.phenomenon
    return suite | filters


def split_table(summary: pd.DataFrame, settings: ReportSettings, *, by: str, metric: str = ACCURACY) -> Table | None:
    """Return contrastive or generative accuracy by `distance` or by `kind`."""
    rows = name_suites(contrastive_scores(summary, by=by, metric=metric))
    if rows.empty:
        return None
    keys = _suite_keys(rows)
    rows = rows.assign(**{by: rows[by].astype("string")})
    if by == "distance":
        columns = sort_ranges(rows[by])
        unit = "In percent, by the number of sentences between the antecedent and the word that depends on it"
        note = f"Ranges with fewer than {MIN_ITEMS} items are left out."
    else:
        columns = list(dict.fromkeys(rows[by]))
        unit = "In percent, by the finer class of the items"
        note = ""
    layout = Layout(
        {"Dataset": "dataset", "Phenomenon": "suite", "System": "system"},
        by,
        dict.fromkeys(columns, find_metric(metric)),
        lambda _: None,
        find_items=lambda cell: _items_of(keys[cell["dataset"], cell["suite"]], **{by: cell[by]}),
        last=ITEMS,
    )
    return score_table(
        rows,
        layout,
        settings,
        key=f"{metric.split()[0]}_by_{by}",
        title=f"{metric.capitalize()} by {by}",
        unit=unit,
        note=note,
        is_long=True,
    )


def paper_table(
    scores: pd.DataFrame,
    name: str,
    settings: ReportSettings,
    paper_columns: PaperColumns,
    differences: Differences = UNTESTED,
) -> Table | None:
    """Return the paper table with this name in the settings, or None if it has no scores.

    The table has a row per system with properties from the config, then scores by test and metric.
    """
    table_settings = settings.tables[name]
    rows = choose_rows(scores, table_settings)
    if rows.empty:
        return None
    if table_settings.average:
        rows = _with_averages(rows)
    headings = name_columns(rows, table_settings)
    rows = rows.assign(column=[headings[key] for key in score_keys(rows)])
    keys = {heading: key for key, heading in headings.items()}
    digits = max(find_metric(metric).digits for metric in table_settings.metrics)
    metrics = {}
    averaged = {}
    for heading, key in keys.items():
        metrics[heading] = replace(find_metric(key.metric), digits=digits)
        if key.test == AVERAGE:
            averaged[heading] = [other for other in headings if other.metric == key.metric and other.test != AVERAGE]
    facts: dict[str, dict[str, str]] = {}
    for fact in table_settings.columns:
        facts[fact] = {}
        for system, words in paper_columns.items():
            if words.get(fact) is not None:
                facts[fact][system] = words[fact]
    layout = Layout(
        {"System": "system"},
        "column",
        metrics,
        lambda cell: keys[cell["column"]],
        averaged=averaged,
        facts=facts,
    )
    return score_table(
        summarize(rows, extra=["column"]),
        layout,
        settings,
        differences,
        key=name,
        title=table_settings.title,
        unit=_describe_unit(table_settings.metrics),
        note=" ".join(filter(None, (table_settings.note, describe_missing(rows["system"], table_settings, settings)))),
        baseline=table_settings.baseline,
    )


def _with_averages(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, and metric means over the metric's tests for runs with all of them."""
    tests = set(zip(rows["metric"], rows["dataset"], rows["test"], strict=True))
    n_tests = Counter(metric for metric, *_ in tests)
    names = rows["dataset"] + "/" + rows["test"]
    signatures = []
    for signature, test in zip(rows["signature"].fillna(""), names, strict=True):
        parts = [f"{part} on {test}" for part in signature.split("|") if not part.startswith(WARNING)]
        signatures.append("|".join(parts))
    runs = rows.assign(signature=signatures).groupby(["system", "seed", "metric"], sort=False, as_index=False)
    # The total number of segments identifies averages over other segments. Signatures identify other computations.
    averages = runs.agg(
        value=("value", "mean"),
        n=("n", "sum"),
        n_tests=("value", "count"),
        signature=("signature", lambda values: "|".join(sorted(values))),
    )
    is_whole = [n_tests[metric] == n for metric, n in zip(averages["metric"], averages["n_tests"], strict=True)]
    averages = averages[is_whole].drop(columns="n_tests")
    # Without `astype`, pandas would turn columns that averages do not have into objects.
    return pd.concat([rows, averages.assign(dataset=AVERAGE, test=AVERAGE)]).astype(dict(rows.dtypes))
