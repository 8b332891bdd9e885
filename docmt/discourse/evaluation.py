"""Scores of predicted trees against gold trees.

Original Parseval (Morey et al. 2017) compares the n − 1 internal nodes of binary trees, including the root, with span
(S), nuclearity (N), relation (R) or both (F). RST-Parseval (Marcu 2000) compares all nodes except the root, including
EDUs, with nuclearity and relation to the parent. Spans are compared by word positions, so that trees over different
EDUs are comparable. For equal EDUs, precision, recall and F1 are the same.
"""

import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from docmt.discourse.constituents import SPAN, Node, binarize, rename_relations
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree, merge_to_sentences, to_dependencies
from docmt.discourse.discourse_documents import (
    ABOVE,
    SAME_PARAGRAPH,
    SAME_SENTENCE,
    UNKNOWN,
    DiscourseDocument,
    DocumentUnits,
    edus_from_starts,
    inner_starts,
    iterate_discourse,
    read_discourse,
    sentences_of,
)
from docmt.discourse.other_parsers import Parser, batches
from docmt.discourse.relations import load_inventory
from docmt.discourse.segmentation.segmenter import Segmenter, score_starts
from docmt.errors import UserError
from docmt.files import read_lines
from docmt.text.tokenizer import sentence_words

KINDS = {"S": (0,), "N": (0, 1), "R": (0, 2), "F": (0, 1, 2)}
"""Node attributes compared by each Parseval variant (0: span, 1: nuclearity, 2: relation)."""
LEVEL_NAMES = {
    SAME_SENTENCE: "in sentence",
    SAME_PARAGRAPH: "in paragraph",
    ABOVE: "above paragraphs",
    UNKNOWN: "above sentences",
}

Position = tuple[int, int]
"""First word of a span, and the word after the last one, counted with one extra position per sentence end."""
Coarse = Callable[[str], str]


def coarse_classes(inventory: str | None) -> Coarse:
    """Return the mapping from fine to coarse relations (without an inventory: the identity)."""
    return load_inventory(inventory).coarse if inventory else str


def evaluate_segmenter(
    segmenter: Segmenter, gold: Path, *, text: Path | None = None, lang: str | None = None
) -> dict[str, Any]:
    """Segment sentences and score the EDUs against a `*.discourse.jsonl`.

    Words and sentences come from the gold file or, with `text` and `lang`, from a plain text with the same sentences,
    one per line. This text is tokenized.
    """
    documents = read_discourse(gold)
    sentences = sentences_of(documents)
    starts: list[list[int]] = []
    for document in documents:
        starts += inner_starts(document)
    n_sentences = sum(map(bool, sentences))
    counts = {
        "documents": len(documents),
        "sentences": n_sentences,
        "empty_sentences": len(sentences) - n_sentences,
        "words": sum(map(len, sentences)),
    }
    if text is None or lang is None:
        return {**score_starts(segmenter.segment(sentences), starts, n_sentences=n_sentences), **counts}
    lines = read_lines(text)
    if len(lines) != len(sentences):
        raise UserError(f"{text}: {len(lines)} lines, but {gold} has {len(sentences)} sentences")
    tokenized = []
    for number, (line, gold_words) in enumerate(zip(lines, sentences, strict=True), start=1):
        words = sentence_words(line, lang)
        tokenized.append(words)
        if "".join(words) != "".join(gold_words):
            raise UserError(f"{text}: line {number} differs from sentence {number} in {gold}")
    # The tokenizer's words can differ from the gold words: starts are compared as character positions without spaces.
    predicted = _character_starts(tokenized, segmenter.segment(tokenized))
    scores = score_starts(predicted, _character_starts(sentences, starts), n_sentences=n_sentences)
    counts["sentences_in_the_same_words"] = sum(map(operator.eq, tokenized, sentences))
    return {**scores, **counts}


def _character_starts(sentences: Iterable[Sequence[str]], starts: Iterable[list[int]]) -> list[list[int]]:
    """Convert EDU starts from word positions to character positions without spaces."""
    converted = []
    for words, word_starts in zip(sentences, starts, strict=True):
        character_starts = [0, *itertools.accumulate(map(len, words))]
        converted.append([character_starts[word] for word in word_starts])
    return converted


def evaluate_parser(
    parser: Parser,
    gold: Path,
    *,
    relations: str | None = None,
    segmenter: Segmenter | None = None,
    hide_paragraphs: bool = False,
) -> dict[str, Any]:
    """Score a parser on a `.discourse.jsonl` with gold trees, with gold EDUs or EDUs from a segmenter.

    `relations` is the inventory whose coarse classes are compared (default: fine relations). Returns `Scores.report`,
    and the number of steps with a decision by a constraint against the classifier (`enforced`).
    """
    scores = Scores(coarse_classes(relations))
    before = parser.counts["enforced"]
    for batch in batches(iterate_discourse(gold)):
        inputs = []
        for document in batch:
            if document.tree is None and document.arcs is None:
                raise UserError(f"{gold}: document {document.id!r} has no tree to compare with")
            plain = replace(document, tree=None, arcs=None)
            if hide_paragraphs:
                plain = replace(plain, paragraphs=None)
            if segmenter is not None:
                starts = segmenter.segment(document.sentences)
                plain = replace(plain, edus=edus_from_starts(starts, map(len, document.sentences)))
            inputs.append(plain)
        for document, predicted in zip(batch, parser.parse_batch(inputs), strict=True):
            scores.add(document, predicted)
    return {**scores.report(), "enforced": parser.counts["enforced"] - before}


def evaluate(pairs: Iterable[tuple[DiscourseDocument, DiscourseDocument]], *, coarse: Coarse = str) -> dict[str, Any]:
    """Return `Scores.report` for pairs of gold and predicted documents with the same words.

    `coarse` maps relations before the comparison.
    """
    scores = Scores(coarse)
    for gold, predicted in pairs:
        scores.add(gold, predicted)
    return scores.report()


class Scores:
    """Counts over documents. `report` converts them to percentages."""

    def __init__(self, coarse: Coarse) -> None:
        self.coarse = coarse
        self.counts: Counter[str] = Counter()

    def add(self, gold: DiscourseDocument, predicted: DiscourseDocument) -> None:
        """Count one document. Raises UserError if gold and predicted words differ."""
        if gold.id != predicted.id or gold.sentences != predicted.sentences:
            raise UserError(
                f"evaluation: document {predicted.id!r} has different words than gold document {gold.id!r}: parse "
                "the documents in the gold file, in order"
            )
        gold_positions = _edu_positions(gold)
        positions = _edu_positions(predicted)
        self.counts["documents"] += 1
        self.counts["sentences"] += len(gold.sentences)
        self._match("edus", gold_positions, positions)
        if gold.tree is not None and predicted.tree is not None:
            gold_nodes = self._nodes(gold.tree, gold_positions)
            nodes = self._nodes(predicted.tree, positions)
            for name in ("parseval", "rst-parseval"):
                for kind, columns in KINDS.items():
                    columns_of = operator.itemgetter(*columns)
                    self._match(f"{name} {kind}", map(columns_of, gold_nodes[name]), map(columns_of, nodes[name]))
            spans = {span for span, *_ in nodes["parseval"]}
            units = DocumentUnits(gold)
            for node in binarize(gold.tree).postorder():
                if not node.is_leaf:
                    level = LEVEL_NAMES[units.level(node.first, node.last)]
                    self.counts[f"level {level} gold"] += 1
                    self.counts[f"level {level} both"] += _span(node, gold_positions) in spans
        if gold.edus and (gold.tree is not None or gold.arcs is not None):
            gold_tree = self._dependencies(gold)
            tree = self._dependencies(predicted)
            gold_arcs = _arcs(gold_tree, gold_positions)
            arcs = _arcs(tree, positions)
            self._match("uas", (arc[:2] for arc in gold_arcs), (arc[:2] for arc in arcs))
            self._match("las", gold_arcs, arcs)
            right_heads = map(operator.eq, _sentence_heads(gold, gold_tree), _sentence_heads(predicted, tree))
            self.counts["sentence heads"] += len(gold.sentences)
            self.counts["sentence heads right"] += sum(right_heads)

    def _match(self, name: str, gold: Iterable[Any], predicted: Iterable[Any]) -> None:
        gold_counts = Counter(gold)
        counts = Counter(predicted)
        self.counts[f"{name} gold"] += gold_counts.total()
        self.counts[f"{name} predicted"] += counts.total()
        self.counts[f"{name} both"] += (gold_counts & counts).total()

    def _nodes(self, tree: Node, positions: list[Position]) -> dict[str, list[tuple[Position, str, str]]]:
        """Return span, nuclearity and relation of the compared nodes, per score."""
        parents = []
        children = []
        for node in binarize(tree).postorder():
            if node.is_leaf:
                continue
            parents.append((_span(node, positions), node.nuclearity, self._coarse(node.relation)))
            for child, letter, relation in zip(node.children, node.nuclearity, node.relations, strict=True):
                children.append((_span(child, positions), letter, self._coarse(relation)))
        return {"parseval": parents, "rst-parseval": children}

    def _dependencies(self, document: DiscourseDocument) -> DependencyTree:
        """Return the dependency tree with coarse relations.

        Nested lists whose relations have the same coarse name are one list, as in the trees that a parser learns from.
        This needs a constituent tree with the same arcs. Arcs from a file can be others, for example crossing ones.
        """
        tree, arcs = document.tree, document.arcs
        if tree is None or (arcs is not None and arcs != to_dependencies(tree, len(document.edus))):
            arcs = document.dependencies
            return replace(arcs, relations=tuple(map(self._coarse, arcs.relations)))
        return to_dependencies(rename_relations(tree, self._coarse), len(document.edus))

    def _coarse(self, relation: str) -> str:
        return relation if relation in (SPAN, ROOT) else self.coarse(relation)

    def report(self) -> dict[str, Any]:
        """Return F1 of original Parseval and RST-Parseval, span recall by level, UAS and LAS in percent, and counts.

        A score without any document is None.
        """
        span_recall = {}
        for level in LEVEL_NAMES.values():
            n_nodes = self.counts[f"level {level} gold"]
            if n_nodes:
                recall = _percent(self.counts[f"level {level} both"], n_nodes)
                span_recall[level] = {"recall": recall, "nodes": n_nodes}
        return {
            "documents": self.counts["documents"],
            "sentences": self.counts["sentences"],
            "edus": {"gold": self.counts["edus gold"], "predicted": self.counts["edus predicted"]},
            "edu_f1": self._f1("edus"),
            "parseval": {kind: self._f1(f"parseval {kind}") for kind in KINDS},
            "rst_parseval": {kind: self._f1(f"rst-parseval {kind}") for kind in KINDS},
            "span_recall": span_recall,
            "uas": self._f1("uas"),
            "las": self._f1("las"),
            "sentence_uas": _percent(self.counts["sentence heads right"], self.counts["sentence heads"]),
        }

    def _f1(self, name: str) -> float | None:
        return _percent(2 * self.counts[f"{name} both"], self.counts[f"{name} gold"] + self.counts[f"{name} predicted"])


def _edu_positions(document: DiscourseDocument) -> list[Position]:
    # One extra position per sentence, so that EDUs of empty sentences differ.
    offsets = [0, *itertools.accumulate(len(words) + 1 for words in document.sentences)]
    return [(offsets[edu.sentence] + edu.start, offsets[edu.sentence] + edu.end) for edu in document.edus]


def _span(node: Node, positions: list[Position]) -> Position:
    return positions[node.first][0], positions[node.last][1]


def _arcs(tree: DependencyTree, positions: list[Position]) -> list[tuple[Position, Any, str]]:
    arcs = []
    for edu, head, relation in zip(positions, tree.heads, tree.relations, strict=True):
        head_position = None if head == NO_HEAD else positions[head]
        arcs.append((edu, head_position, relation))
    return arcs


def _sentence_heads(document: DiscourseDocument, tree: DependencyTree) -> tuple[int, ...]:
    sentences = [edu.sentence for edu in document.edus]
    return merge_to_sentences(tree.heads, sentences, len(document.sentences))


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None
