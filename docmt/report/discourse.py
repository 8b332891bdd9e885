"""Tables and pictures of EDUs and trees: their shape, and the quality of segmenters and parsers."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from docmt.errors import UserError
from docmt.files import read_text
from docmt.report.drawing import Picture
from docmt.report.frames import Record, choose, is_missing
from docmt.report.tables import MISSING, CellMaker, Table, build_table, count, score, word

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
"""Columns of `statistics.csv` shown on the page, with their headings; the CSV file of the table has all."""
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
"""Elements of our pictures of trees; the page includes no others."""


def tree_table(statistics: pd.DataFrame) -> Table | None:
    """Shape of the trees of each dataset and split; None without statistics."""
    if statistics.empty:
        return None
    columns = {STATISTICS[name]: name for name in STATISTICS if name in statistics}
    return build_table(
        statistics,
        _name_cells() | {heading: (count if name in COUNTS else score)(name) for heading, name in columns.items()},
        key="trees",
        title="Trees",
        caption="Depths are means over documents: steps from the root to the lowest EDU, over arcs of the dependency "
        "tree and over nodes of the binary tree. Whole: sentences that are one complete subtree, of all and of those "
        "with two or more EDUs. Several heads: sentences with more than one EDU whose head is outside. Arcs between: "
        "arcs that lead into another sentence. On the one before: sentences attached to their predecessor when the "
        "tree is merged to sentences.",
        n_labels=3,
        n_repeated=2,
    )


def relation_table(relations: pd.DataFrame) -> Table | None:
    """The relations of the arcs of each dataset and split; None without any."""
    if relations.empty:
        return None
    cells = {
        "Relation": word("relation"),
        "arcs": count("arcs"),
        "%": score("percent"),
        "between sentences, %": score("between_sentences_percent"),
    }
    return build_table(
        relations,
        _name_cells() | cells,
        key="tree_relations",
        title="Relations of trees",
        caption="Arcs of the dependency trees by relation, the most frequent first, and the share of these arcs that "
        "lead into another sentence.",
        n_labels=4,
        n_repeated=3,
        is_long=True,
    )


def segmenter_table(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> Table | None:
    """Precision, recall and F1 of each segmenter; None without any."""
    if not evaluations:
        return None
    measures = {
        f"{kind} {heading}": (kind, measure)
        for kind in ("all", "inside")
        for heading, measure in {"P": "precision", "R": "recall", "F1": "f1"}.items()
    }
    rows = []
    for name, content in evaluations:
        scores = content["scores"]
        row = {"segmenter": name, "sentences": _find(scores, ("sentences",)), "edus": _find(scores, ("all", "gold"))}
        rows.append(row | {" ".join(keys): _find(scores, keys) for keys in measures.values()})
    cells = {"Segmenter": word("segmenter"), "sentences": count("sentences"), "EDUs": count("edus")}
    return build_table(
        pd.DataFrame(rows),
        cells | {heading: score(" ".join(keys)) for heading, keys in measures.items()},
        key="segmenters",
        title="EDU segmenters",
        caption="On the test split of the treebank each was trained on, in percent: all EDU starts, including the "
        "given ones at the first words of sentences; and those inside sentences.",
        n_labels=1,
    )


def parser_table(evaluations: Sequence[tuple[str, Mapping[str, Any]]]) -> Table | None:
    """Scores of each parser with its baselines below; None without any."""
    rows = []
    for name, content in evaluations:
        compared = {name: content} | {f"baseline {other}": scores for other, scores in _baselines(content)}
        for label, scores in compared.items():
            found = {column: _find(scores, keys) for column, keys in PARSER_SCORES.items()}
            rows.append({"parser": name, "trees": label, "edus": _find(scores, ("edus", "gold"))} | found)
    if not rows:
        return None
    columns = [name for name in PARSER_SCORES if not all(is_missing(row[name]) for row in rows)]
    is_baseline = [row["parser"] != row["trees"] for row in rows]
    return build_table(
        choose(pd.DataFrame(rows), ["parser", "trees", "edus", *columns]),
        {"Trees": word("trees"), "EDUs": count("edus")} | {name: score(name) for name in columns},
        key="parsers",
        title="RST parsers",
        caption="On the gold EDUs of the test split of the treebank each was trained on, in percent: original Parseval "
        "(micro F1 of spans S, with nuclearity N, relation R, all F), attachment of EDUs (UAS, LAS) and of sentences "
        "when the trees are merged to sentences, recall of spans by level. Below each parser are trees built without "
        "looking at the words; the chain has no spans.",
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


def _name_cells() -> dict[str, CellMaker]:
    """Dataset, trees and split of `DATASET/TREES/SPLIT`; any other name is shown whole."""

    def part(place: int) -> CellMaker:
        def make_cell(record: Record) -> str:
            parts = record["name"].split("/")
            return (parts if len(parts) == 3 else [record["name"], MISSING, MISSING])[place]

        return make_cell

    return {heading: part(place) for place, heading in enumerate(("Dataset", "Trees", "Split"))}


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
                caption="The first document. EDUs run from top to bottom; sentences are bands.",
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
