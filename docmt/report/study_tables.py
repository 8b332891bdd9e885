"""Tables of data, trees, trainings and provenance: their words and columns, then where their values come from.

A study without any values of a kind has no such table.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from docmt.report.dataframes import Record, column, is_missing, records
from docmt.report.input_files import History
from docmt.report.publications import find_published, load_published, load_published_statistics
from docmt.report.settings import ReportSettings
from docmt.report.tables import (
    MISSING,
    CellMaker,
    Column,
    Table,
    blank_repeats,
    build_table,
    count,
    format_count,
    score,
    word,
)

NAN = float("nan")
Contents = Sequence[tuple[str, Mapping[str, Any]]]  # contents of JSON files, each with its name in the table

PASSES = "passes_"  # prefix of the columns of a history that count passes, before the name of the task
HEADINGS = {
    "sentences_per_instance": "sentences / instance",
    "tokens_per_instance": "tokens / instance",
    "src_unknown_tokens": "unknown source tokens",
    "tgt_unknown_tokens": "unknown target tokens",
    "seen_sources": "sources seen",
    "seen_pairs": "pairs seen",
    "seen_documents": "documents seen",
}
# Columns of `docmt instances statistics` that are not counts
INSTANCE_KEYS = ("dataset", "cutting", "split")
# Scores in `evaluation.json` by heading; the names of nested ones are joined by spaces
SEGMENTER_SCORES = {
    f"{place} {heading}": f"{place} {measure}"
    for place in ("all", "inside")
    for heading, measure in {"P": "precision", "R": "recall", "F1": "f1"}.items()
}
PARSER_SCORES = {
    **{measure: f"parseval {measure}" for measure in "SNRF"},
    "UAS": "uas",
    "LAS": "las",
    "sentence UAS": "sentence_uas",
    "S in sentences": "span_recall in sentence recall",
    "S in paragraphs": "span_recall in paragraph recall",
    "S above paragraphs": "span_recall above paragraphs recall",
    "S above sentences": "span_recall above sentences recall",
}
PROVENANCE = ("dataset", "system", "seed", "test", "commit", "fingerprint", "data")


def _part_of_name(place: int, name: str) -> str:
    """Dataset, trees or split of `DATASET/TREES/SPLIT`; any other name is shown whole."""
    parts = name.split("/")
    return (parts if len(parts) == 3 else [name, MISSING, MISSING])[place]


SPLIT_COLUMNS = {
    heading: Column("name", partial(_part_of_name, place))
    for place, heading in enumerate(("Dataset", "Trees", "Split"))
}
RUN_COLUMNS = {"Dataset": word("dataset"), "System": word("system"), "Seed": word("seed")}


# Words and first columns of each table; the other attributes are arguments of `build_table`
LAYOUTS: dict[str, dict[str, Any]] = {
    "overlap": dict(
        title="Overlap with the training data",
        caption="Test sentences and pairs that occur verbatim in the training set, and documents with more than half "
        "of their sentences there.",
        cells={"Dataset": word("dataset"), "Test": word("test")},
        n_labels=2,
    ),
    "counts": dict(
        title="Counts",
        caption="What was read, and what was left out, by cause.",
        cells={"Data": word("data")},
        n_labels=1,
        is_long=True,
    ),
    "roundtrip": dict(
        title="Round trip of text",
        caption="Percentage of lines of development and test splits that are restored after tokenization, truecasing "
        "and BPE: exactly, and apart from white space. The other columns count the rest by cause.",
        cells={
            "Dataset": word("dataset"),
            "Language": word("language"),
            "lines": count("lines"),
            "restored, %": score("share"),
            "but for white space, %": score("share_but_white_space"),
        },
        n_labels=2,
    ),
    "trees": dict(
        title="Trees",
        caption="Depths are means over documents: steps from the root to the lowest EDU, over arcs of the dependency "
        "tree and over nodes of the binary tree. Whole: sentences that are one complete subtree, of all and "
        "of those with two or more EDUs. Several heads: sentences with more than one EDU whose head is "
        "outside. Arcs between: arcs that lead into another sentence. On the one before: sentences attached "
        "to their predecessor when the tree is merged to sentences.",
        cells={
            **SPLIT_COLUMNS,
            "documents": count("documents"),
            "sentences": count("sentences"),
            "EDUs": count("edus"),
            "EDUs / sentence": score("edus_per_sentence"),
            "words / EDU": score("words_per_edu"),
            "one EDU, %": score("one_edu_sentences_percent"),
            "arcs deep": score("dependency_depth"),
            "nodes deep": score("constituent_depth"),
            "whole, %": score("whole_sentences_percent"),
            "whole of several, %": score("whole_several_edu_sentences_percent"),
            "several heads, %": score("several_head_sentences_percent"),
            "arcs between, %": score("arcs_between_sentences_percent"),
            "on the one before, %": score("chain_percent"),
        },
        n_labels=3,
    ),
    "tree_relations": dict(
        title="Relations of trees",
        caption="Arcs of the dependency trees by relation, the most frequent first, and the share of these arcs that "
        "lead into another sentence.",
        cells={
            **SPLIT_COLUMNS,
            "Relation": word("relation"),
            "arcs": count("arcs"),
            "%": score("percent"),
            "between sentences, %": score("between_sentences_percent"),
        },
        n_labels=4,
        is_long=True,
    ),
    "segmenters": dict(
        title="EDU segmenters",
        caption="On the test split of the treebank each was trained on, in percent: all EDU starts, including the "
        "given ones at the first words of sentences; and those inside sentences.",
        cells={"Segmenter": word("segmenter"), "sentences": count("sentences"), "EDUs": count("edus")}
        | {heading: score(name) for heading, name in SEGMENTER_SCORES.items()},
        n_labels=1,
    ),
    "parsers": dict(
        title="RST parsers",
        caption="On the gold EDUs of the test split of the treebank each was trained on, in percent: original "
        "Parseval (micro F1 of spans S, with nuclearity N, relation R, all F), attachment of EDUs (UAS, LAS) "
        "and of sentences when the trees are merged to sentences, recall of spans by level. Below each parser"
        " are trees built without looking at the words; the chain has no spans.",
        cells={"Trees": word("trees"), "EDUs": count("edus")} | {name: score(name) for name in PARSER_SCORES},
        n_labels=1,
    ),
    "training": dict(
        title="Training",
        caption="Updates in total, and the lowest validation loss with the update where it was reached. Tokens per "
        "second is the median of the logged rates.",
        cells={
            **RUN_COLUMNS,
            "updates": count("updates"),
            "epochs": count("epochs"),
            "minutes": score("minutes", digits=1),
            "tokens / s": Column("tokens_per_second", lambda rate: MISSING if is_missing(rate) else f"{rate:,.0f}"),
            "best dev loss": score("best_dev_loss", digits=3),
            "at update": count("best_step"),
        },
        n_labels=2,
        is_long=True,
    ),
    "passes": dict(
        title="Tasks in training",
        caption="Passes over the data of each task during the whole training.",
        cells=RUN_COLUMNS,
        n_labels=2,
    ),
    "signatures": dict(
        title="Signatures",
        caption="How each score was computed.",
        cells={"Metric": word("metric"), "Signature": word("signature")},
        n_labels=1,
        n_texts=1,
    ),
    "provenance": dict(
        title="Runs",
        caption="The commit of docmt (+ means uncommitted changes), the hash of the settings, and the first digits of"
        " the SHA-256 of the reference or test suite.",
        cells={name.capitalize(): word(name) for name in PROVENANCE},
        n_labels=7,
        n_repeated=1,
        is_long=True,
    ),
}


def study_table(
    key: str, values: pd.DataFrame | list[Record], more_columns: Mapping[str, CellMaker] | None = None, **described: Any
) -> Table | None:
    """A table of `LAYOUTS` with further columns; None without values."""
    values = pd.DataFrame(values)
    if values.empty:
        return None
    layout = LAYOUTS[key]
    return build_table(values, key=key, **layout | described | {"cells": layout["cells"] | (more_columns or {})})


def statistics_table(statistics: pd.DataFrame, settings: ReportSettings) -> Table | None:
    """Counts of instances as in Table 1 of G-Transformer, with the published ones below ours."""
    if statistics.empty:
        return None
    columns = [name for name in statistics.columns if name not in INSTANCE_KEYS]
    papers = {number.paper for number in load_published() if number.row in settings.published.values()}
    rows, muted = [], set()
    for record in records(statistics):
        labels = [str(record[name]) for name in INSTANCE_KEYS]
        rows.append(labels + [format_count(record[name]) for name in columns])
        # The rows of the papers that the settings reproduce, or of all papers without any.
        wanted = settings.published_dataset(labels[0], labels[2].removeprefix("test_"))
        part = "test" if labels[2].startswith("test") else labels[2]
        for published in load_published_statistics():
            is_fitting = (published.dataset, published.split) == (wanted, part)
            if not is_fitting or (papers and published.paper not in papers):
                continue
            muted.add(len(rows))
            counts = [format_count(published.counts.get(name, NAN)) for name in columns]
            rows.append([*labels[:2], f"{published.split}, {published.paper}, {published.table}", *counts])
    shown, breaks = blank_repeats(rows, 2)
    return Table(
        key="instances",
        title="Instances",
        caption="Whole sentences of one document, packed greedily. Tokens are subwords, the larger of source and "
        "target for each sentence, including its two markers.",
        header=["Dataset", "Cutting", "Split", *map(_heading, columns)],
        rows=shown,
        values=statistics,
        n_labels=3,
        muted=frozenset(muted),
        breaks=breaks,
    )


def overlap_table(overlaps: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Table | None:
    """Overlap of each test set with the training set."""
    rows = [{"dataset": dataset, "test": test} | _single_values(counts) for dataset, test, counts in overlaps]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if not name.endswith("_percent")]

    def count_and_share(name: str, record: Record) -> str:
        share = record.get(f"{name}_percent")
        return format_count(record[name]) + ("" if is_missing(share) else f" ({share:.1f} %)")

    return study_table("overlap", rows, {_heading(name): partial(count_and_share, name) for name in names[2:]})


def counts_table(counts: Contents) -> Table | None:
    """Counts of text that was read, filtered, dropped and cut."""
    values = pd.DataFrame([{"data": name} | _single_values(_flatten(content)) for name, content in counts])
    numbers = [str(name) for name in values if name != "data" and any(map(_is_number, values[name]))]

    def form(value: Any) -> str:
        return format_count(value) if _is_number(value) else MISSING

    return study_table("counts", values, {_heading(name): Column(name, form) for name in numbers})


def roundtrip_table(roundtrips: Contents) -> Table | None:
    """Lines that survive the round trip through subwords, by dataset and language."""
    causes: dict[str, CellMaker] = {}
    rows = []
    for dataset, content in roundtrips:
        for lang, counts in content["languages"].items():
            row = {"dataset": dataset, "language": lang}
            row |= {key: counts.get(key) for key in ("lines", "restored", "share", "share_but_white_space")}
            rows.append(row | counts.get("causes", {}))
            for cause in counts.get("causes", {}):
                causes[cause] = Column(cause, lambda number: format_count(0 if is_missing(number) else number))
    return study_table("roundtrip", rows, causes)


def segmenter_table(evaluations: Contents) -> Table | None:
    """Precision, recall and F1 of each segmenter."""
    scores = pd.json_normalize([content["scores"] | {"segmenter": name} for name, content in evaluations], sep=" ")
    names = {"segmenter": "segmenter", "sentences": "sentences", "all gold": "edus"}
    names |= {name: name for name in SEGMENTER_SCORES.values()}
    return study_table("segmenters", scores.reindex(columns=list(names)).rename(columns=names))


def parser_table(evaluations: Contents) -> Table | None:
    """Scores of each parser with its baselines below."""
    rows = []
    for parser, content in evaluations:
        baselines = {f"baseline {name}": scores for name, scores in content.get("baselines", {}).items()}
        compared = {parser: content} | {name: scores for name, scores in baselines.items() if isinstance(scores, dict)}
        rows += [{**scores, "parser": parser, "trees": trees} for trees, scores in compared.items()]
    names = {"parser": "parser", "trees": "trees", "edus gold": "edus"}
    names |= {name: heading for heading, name in PARSER_SCORES.items()}
    values = pd.json_normalize(rows, sep=" ").reindex(columns=list(names)).rename(columns=names)
    baselines = frozenset(i for i, row in enumerate(rows) if row["parser"] != row["trees"])
    breaks = frozenset(range(1, len(rows))) - baselines
    return study_table("parsers", values.dropna(axis=1, how="all"), muted=baselines, breaks=breaks)


def training_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Length, speed and best validation loss of each run."""
    rows = []
    for history in histories:
        table = history.table
        losses = column(table.set_index("step"), "dev_loss").dropna()
        row = {
            "updates": column(table, "step").max(),
            "epochs": column(table, "epoch").max(),
            "minutes": column(table, "seconds").max() / 60,
            "tokens_per_second": column(table, "tokens_per_second").median(),
            "best_dev_loss": losses.min(),
            "best_step": losses.idxmin() if len(losses) else NAN,
        }
        rows.append(history.run | row)
    return study_table("training", rows, {"System": Column("system", settings.label)})


def passes_table(histories: Sequence[History], settings: ReportSettings) -> Table | None:
    """Passes over the data of each task and the time they took (Chen et al. 2021, Table 10).

    None when no training has passes over several tasks.
    """
    rows: list[Record] = []
    for history in histories:
        if passes := [str(name) for name in history.table if str(name).startswith(PASSES)]:
            row = history.run | {name: column(history.table, name).max() for name in passes}
            rows.append(row | {"hours": column(history.table, "seconds").max() / 3600})
    values = pd.DataFrame(rows)
    digits = {str(name): 1 for name in values if str(name).startswith(PASSES)} | {"hours": 2}
    columns: dict[str, CellMaker] = {"System": Column("system", settings.label)}
    for name, n_digits in digits.items():
        heading = name.removeprefix(PASSES)
        columns[heading] = score(name, digits=n_digits)
        numbers = [
            find_published(settings.published.get(row["system"]), settings.datasets.get(row["dataset"]), metric=name)
            for row in rows
        ]
        if any(numbers):
            values[f"{name} published"] = [number.value if number else None for number in numbers]
            columns[f"{heading}, published"] = score(f"{name} published", digits=n_digits)
    return study_table("passes", values, columns)


def provenance_tables(scores: pd.DataFrame) -> list[Table | None]:
    """Signatures of the metrics, and the commit, settings and data behind each score file."""
    signatures = scores.reindex(columns=["metric", "signature"]).drop_duplicates()
    return [
        study_table("signatures", signatures.sort_values(by=["metric"], kind="stable")),
        study_table("provenance", scores.reindex(columns=PROVENANCE).drop_duplicates()),
    ]


def _heading(name: str) -> str:
    return HEADINGS.get(name, name.replace("_", " "))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not is_missing(value)


def _single_values(counts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in counts.items() if key != "test" and not isinstance(value, list | dict)}


def _flatten(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested counts to `outer: inner`; counts of single inputs are in their own files and left out."""
    flat: dict[str, Any] = {}
    for key, value in counts.items():
        if key in ("inputs", "origin"):
            continue
        if isinstance(value, dict):
            flat |= {f"{key}: {inner}": number for inner, number in _flatten(value).items()}
        else:
            flat[key] = value
    return flat
