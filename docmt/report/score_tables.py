"""Tables of scores: systems by metrics, suites, distances or kinds, with published numbers beside ours."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import pandas as pd

from docmt.evaluation.metrics import ACCURACY, GENERATIVE, Metric, find_metric
from docmt.report.dataframes import is_missing, means, records, select
from docmt.report.differences import UNTESTED, Difference, Differences, describe_marks, few_segments_footnote
from docmt.report.distances import sort_ranges
from docmt.report.footnotes import signatures_footnote, unlike_parts
from docmt.report.publications import PublishedNumber, find_published
from docmt.report.settings import ReportSettings
from docmt.report.summary import ScoreKey, contrastive_scores, name_suites, score_keys, translation_scores
from docmt.report.tables import MISSING, Table, blank_repeats, format_count, format_score

GUESSING, ITEMS = "(guessing)", "(items)"  # not names that a system can have
NAN = float("nan")
TESTS = {"p": "p", "p (sign test)": "sign_p", "p (randomization)": "randomization_p"}  # in CSV files
WINNING = {
    ACCURACY: "whose correct candidate scores strictly highest",
    GENERATIVE: "whose translation contains what is expected",
}

Label = tuple[str, ...]  # names a row; the last one is the system


@dataclass(frozen=True)
class Grid:
    """Layout of a table of rows of `summarize`.

    Attributes:
        labels: columns of the rows that name a row of the table, by heading; the last one is `system`.
        column: the column of the rows that names a column of the table.
        columns: the metric of each of the table's columns, by heading and in order.
        find_key: the score of a row in a column, or None where there cannot be one.
        averaged: the scores behind columns that are averages of others, by heading.
        facts: words about each system, by the heading of their column; these columns follow the labels.
        find_items: what the reader is to show behind a row and a column; None where it has nothing.
    """

    labels: Mapping[str, str]
    column: str
    columns: Mapping[str, Metric]
    find_key: Callable[[Label, str], ScoreKey | None]
    averaged: Mapping[str, Sequence[ScoreKey]] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    baseline: str | None = None
    find_items: Callable[[Label, str], dict[str, str]] | None = None


@dataclass(frozen=True)
class Cell:
    """A score of ours, possibly missing, beside the published one."""

    mean: float = NAN
    sd: float = NAN
    low: float = NAN
    chance: float = NAN
    seeds: int = 0
    n: int | None = None
    published: float | None = None
    source: str = ""
    tested: Difference | None = None
    signatures: tuple[str, ...] = ()


Cells = dict[Label, dict[str, Cell]]


def published_number(settings: ReportSettings, system: str, key: ScoreKey) -> PublishedNumber | None:
    """The published number that the settings match with one of our scores, or None."""
    dataset = settings.published_dataset(key.dataset, key.test)
    return find_published(settings.published.get(system), dataset, metric=key.metric, phenomenon=key.phenomenon)


def build_grid(
    rows: pd.DataFrame,
    grid: Grid,
    settings: ReportSettings,
    *,
    unit: str,
    caption: str,
    differences: Differences = UNTESTED,
    compare: bool = True,
    last: str | None = None,
    **described: Any,
) -> Table:
    """A table of mean ± deviation, from rows of `summarize`, one per cell.

    The caption begins with the unit and whether there are deviations, and ends with the sources of published numbers.
    `compare` highlights the best system of each group, `last` (`GUESSING` or `ITEMS`) is a row below each group. Scores
    that were computed otherwise than the others of their test and metric are marked, and nothing beside them is
    highlighted. The note says why a score or mark is missing.
    """
    cells = _collect(rows, grid, settings, differences)
    unlike, mixed, best = {}, set(), set()
    for members, (name, metric) in itertools.product(_groups(cells), grid.columns.items()):
        scores = {label: cells[label][name] for label in members}
        if parts := unlike_parts({label: cell.signatures for label, cell in scores.items()}):
            unlike |= {(label, name): of_label for label, of_label in parts.items()}
            mixed |= {(label, name) for label in members}
        elif compare and (leader := _find_leader(scores, metric)):
            best.add((leader, name))
    several = any(cell.seeds > 1 for row in cells.values() for cell in row.values())
    caption = f"{unit}{'; mean and sample deviation over seeds' if several else ''}. {caption}".strip()
    caption += " The best of ours is in bold." if best else ""
    if last is not None:
        cells = _add_last_rows(cells, rows, grid, last)
    with_published = {name for name in grid.columns if any(row[name].published is not None for row in cells.values())}
    header = [*grid.labels, *grid.facts, "Seeds"]
    for name in grid.columns:
        header += [name, "published"] if name in with_published else [name]
    lines, stressed, links = [], set(), {}
    for i, (label, row) in enumerate(cells.items()):
        seeds = max(cell.seeds for cell in row.values())
        facts = [words.get(label[-1], MISSING) for words in grid.facts.values()]
        line = [*label[:-1], settings.label(label[-1]), *facts, str(seeds) if seeds else MISSING]
        for name, cell in row.items():
            digits = grid.columns[name].digits
            marks = [cell.tested.mark if cell.tested else "", "†" if (label, name) in unlike else ""]
            # A test finds 0.0001 BLEU significant where all sentences of both systems are alike but one.
            if (label, name) in mixed or (cell.tested and not round(cell.tested.difference, digits)):
                marks[0] = ""
            if (label, name) in best:
                stressed.add((i, len(line)))
            if grid.find_items and label[-1] != last and not is_missing(cell.mean):
                links[i, len(line)] = urlencode({"view": "items", "a": label[-1], **grid.find_items(label, name)})
            shown = " ".join(filter(None, [format_score(cell.mean, cell.sd, digits=digits), *marks]))
            line.append(format_count(cell.n) if label[-1] == ITEMS else shown)
            if name in with_published:
                line.append(format_score(cell.published, digits=digits))
        lines.append(line)
    shown, breaks = blank_repeats(lines, len(grid.labels) - 1)
    every = [(label, cell) for label, row in cells.items() for cell in row.values()]
    sources = dict.fromkeys(f"{settings.label(label[-1])}: {cell.source}" for label, cell in every if cell.source)
    tested = [cell.tested for _, cell in every if cell.tested]
    caption += describe_marks(tested, settings)
    notes = [described.pop("note", ""), few_segments_footnote(tested), *_signature_notes(cells, unlike, settings)]
    return Table(
        caption=caption + (f" Published beside {'; '.join(sources)}." if sources else ""),
        header=header,
        rows=shown,
        values=_values(cells, grid),
        n_labels=len(grid.labels) + len(grid.facts),
        best=frozenset(stressed),
        links=links,
        muted=frozenset(i for i, label in enumerate(cells) if label[-1] == last),
        breaks=breaks,
        note=" ".join(filter(None, notes)),
        **described,
    )


def _signature_notes(
    cells: Cells, unlike: Mapping[tuple[Label, str], tuple[str, str]], settings: ReportSettings
) -> list[str]:
    titles = {label: " ".join(filter(None, ("/".join(label[:-1]), settings.label(label[-1])))) for label in cells}
    rows = [(titles[label], {name: cell.signatures for name, cell in row.items()}) for label, row in cells.items()]
    notes = [
        f"† {titles[label]}, {name}: not comparable, computed with {ours}; the others with {theirs}."
        for (label, name), (ours, theirs) in unlike.items()
    ]
    return [*notes, signatures_footnote([(title, row) for title, row in rows if any(row.values())])]


def _collect(rows: pd.DataFrame, grid: Grid, settings: ReportSettings, differences: Differences) -> Cells:
    """Rows stay together by group, in the order of their first appearance; systems have one order in all groups."""
    found = {(tuple(row[name] for name in grid.labels.values()), row[grid.column]): row for row in records(rows)}
    systems = list(dict.fromkeys(rows["system"]))
    labels = list(dict.fromkeys(label for label, _ in found))
    groups = list(dict.fromkeys(label[:-1] for label in labels))
    labels.sort(key=lambda label: (groups.index(label[:-1]), systems.index(label[-1])))
    cells: Cells = {}
    for label in labels:
        cells[label] = {}
        for name in grid.columns:
            row, key, system = found.get((label, name), {}), grid.find_key(label, name), label[-1]
            facts = ("mean", "sd", "low", "chance", "seeds", "n", "signatures")
            ours = {attribute: row[attribute] for attribute in facts if row}
            keys = grid.averaged.get(name, [key] if key else [])
            theirs = [number for each in keys if (number := published_number(settings, system, each))]
            # An average of only some of the numbers would be compared with another average of ours.
            if keys and len(theirs) == len(keys):
                ours["published"] = sum(number.value for number in theirs) / len(theirs)
                ours["source"] = f"{theirs[0].paper}, {theirs[0].table}, “{theirs[0].label}”"
            tested = differences.get((grid.baseline, system, key)) if key else None
            cells[label][name] = Cell(**ours, tested=tested)
    return cells


def _groups(cells: Cells) -> list[list[Label]]:
    """The labels of each group of rows: systems on the same test."""
    return [list(labels) for _, labels in itertools.groupby(cells, key=lambda label: label[:-1])]


def _find_leader(scores: Mapping[Label, Cell], metric: Metric) -> Label | None:
    """Where the best mean is, if it leads as displayed, is above chance and over equal segments."""
    found = {label: cell for label, cell in scores.items() if not is_missing(cell.mean)}
    if len(found) < 2 or not is_comparable(metric, [cell.n for cell in found.values()]):
        return None
    ranked = sorted(found, key=lambda label: found[label].mean, reverse=not metric.lower_is_better)
    first, second = (found[label] for label in ranked[:2])
    # Equal as displayed is a tie: no reader can see which one leads.
    leads = round(first.mean, metric.digits) != round(second.mean, metric.digits)
    return ranked[0] if leads and is_above_chance(first.mean, first.low, first.chance) else None


def is_above_chance(mean: float, low: float, chance: float) -> bool:
    """Whether the interval of an accuracy, or without one the accuracy, lies above guessing."""
    return is_missing(chance) or (mean if is_missing(low) else low) > chance


def is_comparable(metric: Metric, sizes: Iterable[int | None]) -> bool:
    """Whether scores are over the same segments: instances are sentences to one system and documents to another."""
    return metric.unit != "instances" or len({size for size in sizes if not is_missing(size)}) <= 1


def _add_last_rows(cells: Cells, rows: pd.DataFrame, grid: Grid, last: str) -> Cells:
    """End each group with the accuracy of guessing, or with the number of items."""
    *of_group, _ = grid.labels.values()
    found = means(rows, "chance" if last == GUESSING else "n", by=[*of_group, grid.column])
    extended: Cells = {}
    for labels in _groups(cells):
        extended |= {label: cells[label] for label in labels}
        group = labels[0][:-1]
        values = {name: found.get((*group, name), NAN) for name in grid.columns}
        extended[*group, last] = {
            name: Cell(mean=value) if last == GUESSING else Cell(n=None if is_missing(value) else round(value))
            for name, value in values.items()
        }
    return extended


def _values(cells: Cells, grid: Grid) -> pd.DataFrame:
    """The full-precision values after the labels and facts; columns without any value are left out."""
    rows: list[dict[str, Any]] = []
    for row in cells.values():
        values: dict[str, Any] = {}
        for name, cell in row.items():
            values |= {name: cell.mean, f"{name} sd": cell.sd, f"{name} seeds": cell.seeds, f"{name} n": cell.n}
            values |= {f"{name} {test}": getattr(cell.tested, attribute, None) for test, attribute in TESTS.items()}
            values[f"{name} published"] = cell.published
        sources = dict.fromkeys(cell.source for cell in row.values() if cell.source)
        rows.append(values | {"source": "; ".join(sources) or None})
    labels = pd.DataFrame(list(cells), columns=list(grid.labels.values()))
    facts = {heading: [words.get(label[-1]) for label in cells] for heading, words in grid.facts.items()}
    return pd.concat([labels, pd.DataFrame(facts), pd.DataFrame(rows).dropna(axis=1, how="all")], axis=1)


def main_table(summary: pd.DataFrame, settings: ReportSettings, differences: Differences = UNTESTED) -> Table | None:
    """Systems by the metrics of the settings, for each test set; without metrics over segments that differ."""
    metrics, incomparable = choose_metrics(summary, settings)
    return _translation_table(
        summary,
        metrics,
        settings,
        key="results",
        title="Translation scores",
        unit="In percent",
        caption=f"Not here but in “Further scores”, as systems cut documents differently: {', '.join(incomparable)}."
        if incomparable
        else "",
        differences=differences,
    )


def further_table(summary: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """The remaining scores of translations."""
    found = dict.fromkeys(translation_scores(summary)["metric"])
    metrics, _ = choose_metrics(summary, settings)
    return _translation_table(
        summary,
        [name for name in found if name not in metrics],
        settings,
        key="further",
        title="Further scores",
        unit="In percent, CXMI in nats",
        caption="d-BLEU (instances) is over the instances that a system translates: it compares only systems that cut "
        "documents alike. Tokenized scores equal Moses' multi-bleu. Length ratio: hypotheses to references. Forced "
        "ends: sentences that reached the length limit. Aligned instances: those with as many sentences as the source "
        "(only for systems without sentence alignment).",
        compare=False,
    )


def choose_metrics(summary: pd.DataFrame, settings: ReportSettings) -> tuple[list[str], list[str]]:
    """The metrics of the settings that have scores: those that compare all systems, and the others."""
    rows = translation_scores(summary)
    chosen: tuple[list[str], list[str]] = [], []
    for name in settings.metrics:
        sizes = [list(of_test["n"]) for _, of_test in select(rows, metric=name).groupby(["dataset", "test"])]
        if sizes:
            chosen[not all(is_comparable(find_metric(name), of_test) for of_test in sizes)].append(name)
    return chosen


def _translation_table(
    summary: pd.DataFrame, metrics: Sequence[str], settings: ReportSettings, **described: Any
) -> Table | None:
    rows = select(translation_scores(summary), metric=list(metrics))
    grid = Grid(
        {"Dataset": "dataset", "Test": "test", "System": "system"},
        "metric",
        {name: find_metric(name) for name in metrics},
        lambda label, metric: ScoreKey(label[0], label[1], metric),
        baseline=settings.baseline,
    )
    return build_grid(rows, grid, settings, **described) if metrics else None


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
    keys = _suite_keys(rows)
    sizes = rows.drop_duplicates(["dataset", "suite"])
    items = "; ".join(f"{row['dataset']} {row['suite']} {row['n']}" for row in records(sizes))
    grid = Grid(
        {"Dataset": "dataset", "System": "system"},
        "suite",
        dict.fromkeys(rows["suite"], find_metric(metric)),
        lambda label, suite: keys.get((label[0], suite)),
        baseline=settings.baseline,
        find_items=lambda label, suite: _items_of(keys[label[0], suite]),
    )
    return build_grid(
        rows,
        grid,
        settings,
        key=metric.split()[0],
        title=metric.capitalize(),
        unit=f"Percentage of items {WINNING[metric]}",
        caption=f"Items: {items}.",
        differences=differences,
        last=GUESSING if metric == ACCURACY else None,
    )


def _suite_keys(rows: pd.DataFrame) -> dict[tuple[str, str], ScoreKey]:
    """The scores over whole suites, by dataset and name of the suite."""
    return dict(zip(zip(rows["dataset"], rows["suite"], strict=True), score_keys(rows), strict=True))


def _items_of(key: ScoreKey, **filters: str) -> dict[str, str]:
    """The items of a suite, in the words of the reader's address."""
    phenomenon = {"phenomenon": key.phenomenon} if key.phenomenon else {}
    return {"set": f"{key.dataset}/{key.test}", **phenomenon, **filters}


def split_table(summary: pd.DataFrame, settings: ReportSettings, *, by: str, metric: str = ACCURACY) -> Table | None:
    """Contrastive or generative accuracy by `distance` or by `kind`."""
    rows = name_suites(contrastive_scores(summary, by=by, metric=metric))
    if rows.empty:
        return None
    rows, keys = rows.assign(**{by: rows[by].astype("string")}), _suite_keys(rows)
    columns = sort_ranges(rows[by]) if by == "distance" else dict.fromkeys(rows[by])
    words = {
        "distance": "By the number of sentences between the antecedent and the word that depends on it.",
        "kind": "By the finer class of the items.",
    }
    grid = Grid(
        {"Dataset": "dataset", "Phenomenon": "suite", "System": "system"},
        by,
        dict.fromkeys(columns, find_metric(metric)),
        lambda *_: None,
        find_items=lambda label, value: _items_of(keys[label[0], label[1]], **{by: value}),
    )
    return build_grid(
        rows,
        grid,
        settings,
        key=f"{metric.split()[0]}_by_{by}",
        title=f"{metric.capitalize()} by {by}",
        unit="In percent",
        caption=words[by],
        last=ITEMS,
        is_long=True,
    )
