"""Tables on data, trees, trainings, case studies and provenance.

Functions return None without any values.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from docmt.report.dataframes import column, is_missing, records
from docmt.report.input_files import History, flatten_counts, single_values
from docmt.report.numbers import MISSING, format_count
from docmt.report.publications import find_published, load_published, load_published_statistics
from docmt.report.settings import ReportSettings
from docmt.report.tables import Cell, Column, Table, count, group, label, number, prose, score
from docmt.settings import look_up

NAN = float("nan")
Contents = Sequence[tuple[str, Mapping[str, Any]]]  # JSON file contents with their names in the table

PASSES = "passes_"  # prefix of history columns that count passes, followed by the task name
HEADINGS = {
    "sentences_per_instance": "sentences / instance",
    "tokens_per_instance": "tokens / instance",
    "src_unknown_tokens": "unknown source tokens",
    "tgt_unknown_tokens": "unknown target tokens",
    "seen_sources": "sources seen",
    "seen_pairs": "pairs seen",
    "seen_documents": "documents seen",
}
# `docmt instances count` columns that are not counts
INSTANCE_KEYS = ("dataset", "cutting", "split")
# Scores in `evaluation.json` by heading. Nested score names are joined by spaces.
SEGMENTER_SCORES = {
    "all P": "all precision",
    "all R": "all recall",
    "all F1": "all f1",
    "inside P": "inside precision",
    "inside R": "inside recall",
    "inside F1": "inside f1",
}
PARSER_SCORES = {
    "S": "parseval S",
    "N": "parseval N",
    "R": "parseval R",
    "F": "parseval F",
    "UAS": "uas",
    "LAS": "las",
    "sentence UAS": "sentence_uas",
    "S in sentences": "span_recall in sentence recall",
    "S in paragraphs": "span_recall in paragraph recall",
    "S above paragraphs": "span_recall above paragraphs recall",
    "S above sentences": "span_recall above sentences recall",
}
PROVENANCE = ("dataset", "system", "seed", "test", "commit", "fingerprint", "data")
SPLIT_COLUMNS = (group("dataset", "Dataset"), group("trees", "Trees"))


def trees_table(statistics: pd.DataFrame) -> Table | None:
    """Return tree sizes and shapes by split, from `docmt discourse count-trees`."""
    if statistics.empty:
        return None
    return Table(
        "trees",
        "Trees",
        _name_splits(statistics),
        [
            *SPLIT_COLUMNS,
            label("split", "Split"),
            count("documents"),
            count("sentences"),
            count("edus", "EDUs"),
            score("edus_per_sentence", "EDUs / sentence"),
            score("words_per_edu", "words / EDU"),
            score("one_edu_sentences_percent", "one EDU, %"),
            score("dependency_depth", "arcs deep"),
            score("constituent_depth", "nodes deep"),
            score("whole_sentences_percent", "whole, %"),
            score("whole_several_edu_sentences_percent", "whole of several, %"),
            score("several_head_sentences_percent", "several heads, %"),
            score("arcs_between_sentences_percent", "arcs between, %"),
            score("chain_percent", "on the one before, %"),
        ],
        caption="Sizes and shapes of the trees, with mean depths of documents.",
        note="Depths are steps from the root to the lowest EDU, over arcs of the dependency tree and over nodes of the "
        "binary tree. Whole: sentences that are one complete subtree, of all and "
        "of those with two or more EDUs. Several heads: sentences with more than one EDU whose head is "
        "outside. Arcs between: arcs that lead into another sentence. On the one before: sentences attached "
        "to their predecessor when the tree is merged to sentences.",
        full=statistics,
    )


def tree_relations_table(relations: pd.DataFrame) -> Table | None:
    """Return tree relations by split, from `docmt discourse count-trees --relations`."""
    if relations.empty:
        return None
    return Table(
        "tree_relations",
        "Relations of trees",
        _name_splits(relations),
        [
            *SPLIT_COLUMNS,
            group("split", "Split"),
            label("relation", "Relation"),
            count("arcs"),
            score("percent", "%"),
            score("between_sentences_percent", "between sentences, %"),
        ],
        caption="Arcs by relation, and the share of these arcs that lead into another sentence.",
        full=relations,
        is_long=True,
    )


def _name_splits(values: pd.DataFrame) -> pd.DataFrame:
    """Split `name` (`DATASET/TREES/SPLIT`) into columns. Any other name is shown whole."""
    datasets = []
    trees = []
    splits = []
    for name in values["name"]:
        parts = name.split("/")
        if len(parts) != 3:
            parts = [name, MISSING, MISSING]
        datasets.append(parts[0])
        trees.append(parts[1])
        splits.append(parts[2])
    return values.assign(dataset=datasets, trees=trees, split=splits)


def statistics_table(statistics: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """Return instance counts as in G-Transformer's Table 1, with the published counts below."""
    if statistics.empty:
        return None
    columns = [str(name) for name in statistics.columns if name not in INSTANCE_KEYS]
    papers = {number.paper for number in load_published() if number.row in settings.published.values()}
    rows = []
    for record in records(statistics):
        rows.append(record | {"is_muted": False})
        # Rows from the papers that the settings reproduce. Without any, rows from all papers.
        split = str(record["split"])
        published_dataset = settings.published_dataset(str(record["dataset"]), split.removeprefix("test_"))
        if split.startswith("test"):
            split = "test"
        for published in load_published_statistics():
            is_fitting = (published.dataset, published.split) == (published_dataset, split)
            if is_fitting and (not papers or published.paper in papers):
                source = f"{published.split}, {published.paper}, {published.table}"
                labels = {"dataset": record["dataset"], "cutting": record["cutting"], "split": source}
                rows.append(labels | published.counts | {"is_muted": True})
    frame = pd.DataFrame(rows).astype(dict.fromkeys(columns, "object"))
    return Table(
        "instances",
        "Instances",
        frame,
        [
            group("dataset", "Dataset"),
            group("cutting", "Cutting"),
            label("split", "Split"),
            *(count(name, _heading(name)) for name in columns),
        ],
        caption="Whole sentences of one document, packed greedily.",
        note="Tokens are subwords, the larger of source and target for each sentence, including its two markers.",
        full=statistics,
    )


def overlap_table(overlaps: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Table | None:
    """Return the test sets' overlap with the training set."""
    rows = []
    for dataset, test, counts in overlaps:
        rows.append({"dataset": dataset, "test": test} | single_values(counts))
    if not rows:
        return None
    values = pd.DataFrame(rows)

    def count_and_share(row: Mapping[str, Any], name: str) -> Cell:
        text = format_count(row[name])
        share = row.get(f"{name}_percent")
        if not is_missing(share):
            text += f" ({share:.1f} %)"
        return Cell(text)

    columns = [group("dataset", "Dataset"), label("test", "Test")]
    for name in values.columns.drop(["dataset", "test"]):
        if not name.endswith("_percent"):
            columns.append(Column(_heading(name), partial(count_and_share, name=name)))
    return Table(
        "overlap",
        "Overlap with the training data",
        values,
        columns,
        caption="Test sentences and pairs that occur verbatim in the training set.",
        note="Documents are seen with more than half of their sentences there.",
    )


def counts_table(counts: Contents) -> Table | None:
    """Return counts for text that was read, filtered, dropped and split."""
    rows = []
    for name, content in counts:
        rows.append({"data": name} | single_values(flatten_counts(content)))
    if not rows:
        return None
    values = pd.DataFrame(rows)

    def form(value: Any) -> str:
        if not _is_number(value):
            return MISSING
        return format_count(value)

    columns = [label("data", "Data")]
    for name in values.columns.drop("data"):
        if any(map(_is_number, values[name])):
            columns.append(number(name, _heading(name), form=form))
    return Table(
        "counts",
        "Counts",
        values,
        columns,
        caption="What was read, and what was left out, by cause.",
        is_long=True,
    )


def roundtrip_table(roundtrips: Contents) -> Table | None:
    """Return the number of lines that survive the subword round trip, by dataset and language."""
    rows = []
    causes = {}
    for dataset, content in roundtrips:
        for lang, counts in content["languages"].items():
            row = {"dataset": dataset, "language": lang}
            for key in ("lines", "restored", "share", "share_but_white_space"):
                row[key] = counts.get(key)
            rows.append(row | counts.get("causes", {}))
            causes |= counts.get("causes", {})
    if not rows:
        return None
    return Table(
        "roundtrip",
        "Round trip of text",
        pd.DataFrame(rows),
        [
            group("dataset", "Dataset"),
            label("language", "Language"),
            count("lines"),
            score("share", "restored, %"),
            score("share_but_white_space", "but for white space, %"),
            *(number(cause, form=lambda lines: format_count(0 if is_missing(lines) else lines)) for cause in causes),
        ],
        caption="Lines of development and test splits that are restored after tokenization, truecasing and BPE.",
        note="But for white space: restored apart from white space. The other columns count the rest by cause.",
    )


def segmenter_table(evaluations: Contents) -> Table | None:
    """Return precision, recall and F1 by segmenter."""
    if not evaluations:
        return None
    rows = [content["scores"] | {"segmenter": name} for name, content in evaluations]
    scores = pd.json_normalize(rows, sep=" ")
    names = {"segmenter": "segmenter", "sentences": "sentences", "all gold": "edus"}
    names |= {name: name for name in SEGMENTER_SCORES.values()}
    return Table(
        "segmenters",
        "EDU segmenters",
        scores.reindex(columns=list(names)).rename(columns=names),
        [
            label("segmenter", "Segmenter"),
            count("sentences"),
            count("edus", "EDUs"),
            *map(score, SEGMENTER_SCORES.values(), SEGMENTER_SCORES),
        ],
        caption="EDU starts on the test split of the treebank each was trained on, in percent.",
        note="All: with the given starts at the first words of sentences. Inside: those inside sentences.",
    )


def parser_table(evaluations: Contents) -> Table | None:
    """Return parser scores, with the baselines below."""
    rows = []
    for parser, content in evaluations:
        rows.append({**content, "parser": parser, "trees": parser})
        for name, scores in content.get("baselines", {}).items():
            if isinstance(scores, dict):
                rows.append({**scores, "parser": parser, "trees": f"baseline {name}"})
    if not rows:
        return None
    names = {"parser": "parser", "trees": "trees", "edus gold": "edus"}
    names |= {name: heading for heading, name in PARSER_SCORES.items()}
    values = pd.json_normalize(rows, sep=" ").reindex(columns=list(names)).rename(columns=names)
    values = values.dropna(axis=1, how="all")
    return Table(
        "parsers",
        "RST parsers",
        values.assign(is_muted=values["parser"] != values["trees"]),
        [label("trees", "Trees"), count("edus", "EDUs"), *map(score, PARSER_SCORES)],
        caption="On the gold EDUs of the test split of the treebank each was trained on, in percent.",
        note="Original Parseval (micro F1 of spans S, with nuclearity N, relation R, all F), attachment of EDUs (UAS, "
        "LAS) and of sentences when the trees are merged to sentences, recall of spans by level. Below each parser are "
        "trees built without looking at the words; the chain has no spans.",
        full=values,
        new_block="parser",
    )


def training_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Return length, speed and best validation loss by run."""
    rows = []
    for history in histories:
        table = history.table
        losses = column(table.set_index("step"), "dev_loss").dropna()
        best_step = NAN
        if len(losses):
            best_step = losses.idxmin()
        row = {
            "updates": column(table, "step").max(),
            "epochs": column(table, "epoch").max(),
            "minutes": column(table, "seconds").max() / 60,
            "tokens_per_second": column(table, "tokens_per_second").median(),
            "best_dev_loss": losses.min(),
            "best_step": best_step,
        }
        rows.append(history.run | row)
    if not rows:
        return None
    return Table(
        "training",
        "Training",
        pd.DataFrame(rows),
        [
            *_run_columns(settings),
            count("updates"),
            count("epochs"),
            score("minutes", digits=1),
            number(
                "tokens_per_second", "tokens / s", form=lambda rate: MISSING if is_missing(rate) else f"{rate:,.0f}"
            ),
            score("best_dev_loss", "best dev loss", digits=3),
            count("best_step", "at update"),
        ],
        caption="Updates in total, and the lowest validation loss with the update where it was reached.",
        note="Tokens per second: median of the logged rates.",
        is_long=True,
    )


def passes_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Return passes over the data and their time by task (Chen et al. 2021, Table 10).

    None if no training has passes over several tasks.
    """
    rows = []
    for history in histories:
        passes = history.table.filter(regex=f"^{PASSES}").max().to_dict()
        if passes:
            rows.append(history.run | passes | {"hours": column(history.table, "seconds").max() / 3600})
    if not rows:
        return None
    values = pd.DataFrame(rows)
    columns = _run_columns(settings)
    for name in [*values.columns.drop(["dataset", "system", "seed", "hours"]), "hours"]:
        digits = 1
        if name == "hours":
            digits = 2
        heading = name.removeprefix(PASSES)
        columns.append(score(name, heading, digits=digits))
        numbers = []
        for row in rows:
            dataset = settings.datasets.get(row["dataset"])
            published = find_published(settings.published.get(row["system"]), dataset, metric=name)
            if published is None:
                numbers.append(None)
            else:
                numbers.append(published.value)
        if numbers.count(None) < len(numbers):
            values[f"{name} published"] = numbers
            columns.append(score(f"{name} published", f"{heading}, published", digits=digits))
    caption = "Passes over the data of each task during the whole training."
    return Table("passes", "Tasks in training", values, columns, caption=caption)


def _run_columns(settings: ReportSettings) -> list[Column]:
    return [
        group("dataset", "Dataset"),
        label("system", "System", form=settings.label, short=settings.short_labels),
        replace(number("seed", "Seed", form=str), scope=lambda seed: f"seed {seed}"),
    ]


def case_table(name: str, values: pd.DataFrame, settings: ReportSettings) -> Table:
    """Return the case study with this name in the settings."""
    layout = look_up(settings.cases, name, where="report.cases", what="case study")
    short_labels = {settings.label(system): short for system, short in settings.short_labels.items()}
    return Table(
        name,
        layout.title,
        values,
        [
            replace(group("case", "Sentence"), scope=None),
            label("part", "", short=short_labels),
            score("chrF", digits=1),
            prose("text", "Text"),
        ],
        caption=f"The sentences of {layout.test} at which {settings.label(layout.system)} is ahead of "
        f"{settings.label(layout.baseline)} by most chrF (first seed of each).",
        note=layout.note,
    )


def signatures_table(scores: pd.DataFrame) -> Table:
    """Return the metric signatures."""
    signatures = scores.reindex(columns=["metric", "signature"]).drop_duplicates()
    return Table(
        "signatures",
        "Signatures",
        signatures.sort_values(by=["metric"], kind="stable"),
        [label("metric", "Metric"), prose("signature", "Signature")],
        caption="How each score was computed.",
    )


def provenance_table(scores: pd.DataFrame) -> Table:
    """Return commit, settings and data by score file."""
    return Table(
        "provenance",
        "Runs",
        scores.reindex(columns=PROVENANCE).drop_duplicates(),
        [group("dataset", "Dataset"), *(label(name, name.capitalize()) for name in PROVENANCE[1:])],
        caption="The commit of docmt, the hash of the settings, and the first digits of the SHA-256 of the test data.",
        note="+ means uncommitted changes. Test data are the reference or the test suite.",
        is_long=True,
    )


def _heading(name: str) -> str:
    return HEADINGS.get(name, name.replace("_", " "))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value)
