"""Tables and pictures of EDUs and trees: what they are like, and how good segmenters and parsers are."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from docmt.errors import UserError
from docmt.files import read_text
from docmt.report.figures import Picture
from docmt.report.tables import MISSING, Table, blank_repeats, format_count, format_score

STATISTICS = {
    "documents": "documents",
    "sentences": "sentences",
    "edus": "EDUs",
    "edus_per_sentence": "EDUs / sentence",
    "words_per_edu": "words / EDU",
    "one_edu_sentences_percent": "one EDU, %",
    "dependency_depth": "arcs deep",
    "constituent_depth": "nodes deep",
    "whole_sentences_percent": "whole, %",
    "whole_several_edu_sentences_percent": "whole of several, %",
    "several_head_sentences_percent": "several heads, %",
    "arcs_between_sentences_percent": "arcs between, %",
    "chain_percent": "on the one before, %",
}
"""Columns of `statistics.csv` that the page shows, and their headings; the CSV file of the table has all."""
COUNTS = ("documents", "sentences", "edus")
PARSER_SCORES = {
    "S": ("parseval", "S"),
    "N": ("parseval", "N"),
    "R": ("parseval", "R"),
    "F": ("parseval", "F"),
    "UAS": ("uas",),
    "LAS": ("las",),
    "sentence UAS": ("sentence_uas",),
    "S in sentences": ("span_recall", "in sentence", "recall"),
    "S in paragraphs": ("span_recall", "in paragraph", "recall"),
    "S above paragraphs": ("span_recall", "above paragraphs", "recall"),
    "S above sentences": ("span_recall", "above sentences", "recall"),
}
SVG_ELEMENTS = frozenset({"svg", "g", "title", "text", "rect", "path", "circle"})
"""Elements that our pictures of trees are made of: the page takes in no others."""


def tree_table(statistics: pd.DataFrame) -> Table | None:
    """What the trees of each dataset and split are like; None without statistics."""
    if statistics.empty:
        return None
    columns = [name for name in STATISTICS if name in statistics]
    rows = [
        [*_parts(record["name"]), *(_number(record[name], is_count=name in COUNTS) for name in columns)]
        for record in statistics.to_dict("records")
    ]
    shown, breaks = blank_repeats(rows, 2)
    return Table(
        key="trees",
        title="Trees",
        caption="Depths are means over documents: steps from the root to the lowest EDU, over arcs of the dependency "
        "tree and over nodes of the binary tree. Whole: sentences that are one complete subtree, of all and of those "
        "with two or more EDUs. Several heads: sentences with more than one EDU whose head is outside. Arcs between: "
        "arcs that lead into another sentence. On the one before: sentences that hang on their predecessor when the "
        "tree is merged to sentences.",
        header=["Dataset", "Trees", "Split", *(STATISTICS[name] for name in columns)],
        rows=shown,
        values=statistics,
        n_labels=3,
        breaks=breaks,
    )


def relation_table(relations: pd.DataFrame) -> Table | None:
    """The relations of the arcs of each dataset and split; None without any."""
    if relations.empty:
        return None
    rows = [
        [
            *_parts(record["name"]),
            record["relation"],
            format_count(record["arcs"]),
            format_score(record["percent"]),
            format_score(record["between_sentences_percent"]),
        ]
        for record in relations.to_dict("records")
    ]
    shown, breaks = blank_repeats(rows, 3)
    return Table(
        key="tree_relations",
        title="Relations of trees",
        caption="Arcs of the dependency trees by relation, the most frequent first, and the share of these arcs that "
        "lead into another sentence.",
        header=["Dataset", "Trees", "Split", "Relation", "arcs", "%", "between sentences, %"],
        rows=shown,
        values=relations,
        n_labels=4,
        breaks=breaks,
        is_long=True,
    )


def segmenter_table(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> Table | None:
    """Precision, recall and F1 of each segmenter; None without any."""
    if not evaluations:
        return None
    measures = [(kind, measure) for kind in ("all", "inside") for measure in ("precision", "recall", "f1")]
    records = []
    for name, content in evaluations:
        scores = content["scores"]
        record = {"segmenter": name, "sentences": _find(scores, ("sentences",)), "edus": _find(scores, ("all", "gold"))}
        records.append(record | {" ".join(keys): _find(scores, keys) for keys in measures})
    values = pd.DataFrame(records)
    rows = [
        [
            record["segmenter"],
            format_count(record["sentences"]),
            format_count(record["edus"]),
            *(format_score(record[" ".join(keys)]) for keys in measures),
        ]
        for record in values.to_dict("records")
    ]
    return Table(
        key="segmenters",
        title="EDU segmenters",
        caption="On the test split of the treebank each was trained on, in percent: all starts of EDUs, the first "
        "words of sentences included, which are given; and those inside sentences.",
        header=[
            "Segmenter",
            "sentences",
            "EDUs",
            *(f"{kind} {score}" for kind in ("all", "inside") for score in ("P", "R", "F1")),
        ],
        rows=rows,
        values=values,
        n_labels=1,
    )


def parser_table(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> Table | None:
    """Scores of each parser with its baselines beneath; None without any."""
    records = []
    for name, content in evaluations:
        compared = {name: content} | {f"baseline {other}": scores for other, scores in _baselines(content)}
        for label, scores in compared.items():
            found = {column: _find(scores, keys) for column, keys in PARSER_SCORES.items()}
            records.append({"parser": name, "trees": label, "edus": _find(scores, ("edus", "gold"))} | found)
    if not records:
        return None
    values = pd.DataFrame(records)
    columns = [column for column in PARSER_SCORES if values[column].notna().any()]
    rows = [
        [record["trees"], format_count(record["edus"]), *(format_score(record[column]) for column in columns)]
        for record in values.to_dict("records")
    ]
    is_baseline = values["parser"] != values["trees"]
    return Table(
        key="parsers",
        title="RST parsers",
        caption="On the gold EDUs of the test split of the treebank each was trained on, in percent: original Parseval "
        "(micro F1 of spans S, with nuclearity N, relation R, all F), attachment of EDUs (UAS, LAS) and of sentences "
        "when the trees are merged to sentences, recall of spans by level. Beneath each parser are trees that need no "
        "knowledge of the words; the chain has no spans.",
        header=["Trees", "EDUs", *columns],
        rows=rows,
        values=values[["parser", "trees", "edus", *columns]],
        n_labels=1,
        muted=frozenset(i for i, muted in enumerate(is_baseline) if muted),
        breaks=frozenset(i for i, muted in enumerate(is_baseline) if i and not muted),
    )


def _baselines(content: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    found = content.get("baselines", {})
    return [(name, scores) for name, scores in found.items() if isinstance(scores, dict)]


def _find(scores: Any, keys: Sequence[str]) -> Any:
    """The value under nested keys; NaN where there is none."""
    for key in keys:
        scores = scores.get(key) if isinstance(scores, dict) else None
    return float("nan") if scores is None else scores


def _number(value: Any, *, is_count: bool) -> str:
    return format_count(value) if is_count else format_score(value)


def _parts(name: str) -> list[str]:
    """Dataset, trees and split of `DATASET/TREES/SPLIT`; another name stands alone."""
    parts = name.split("/")
    return parts if len(parts) == 3 else [name, MISSING, MISSING]


def tree_pictures(paths: Mapping[str, Path]) -> list[Picture]:
    """Pictures drawn by `docmt discourse draw`, by name.

    Raises UserError when a file is not such a picture: the page includes it unchanged.
    """
    pictures = []
    for name, path in paths.items():
        svg = read_text(path)
        _check_picture(svg, path)
        pictures.append(
            Picture(
                key="tree_" + re.sub(r"[^A-Za-z0-9]+", "_", name),
                title=f"A tree of {name}",
                caption="The first document. EDUs stand from top to bottom, sentences in bands.",
                svg=svg,
                png=None,
                is_long=True,
            )
        )
    return pictures


def _check_picture(svg: str, path: Path) -> None:
    problem = None
    if "<!" in svg:
        problem = "it has a document type, an entity or a comment"
    else:
        try:
            elements = list(ElementTree.fromstring(svg).iter())
        except ElementTree.ParseError as error:
            problem = str(error)
        else:
            names = [element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in elements]
            strange = [name for name in names if name not in SVG_ELEMENTS]
            strange += [name for element in elements for name in element.attrib if name.lower().startswith("on")]
            if names[0] != "svg":
                problem = "it is not SVG"
            elif strange:
                problem = f"it has {strange[0]!r}"
    if problem:
        raise UserError(f"{path}: not a picture of `docmt discourse draw` ({problem})")
