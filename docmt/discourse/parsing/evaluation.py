"""Scores of predicted trees against gold trees.

Original Parseval (Morey et al. 2017): the n − 1 internal nodes of the binary trees, including the root, each with its
span (S), nuclearity (N), relation (R) or both (F). RST-Parseval (Marcu 2000): all nodes except the root, EDUs included,
each with its nuclearity and its relation to its parent. Spans are compared by the positions of their words, so that
trees over different EDUs can be compared; if the EDUs are equal, precision, recall and F1 are the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from docmt.discourse.dependencies import NO_HEAD, ROOT, merge_to_sentences
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.layout import ABOVE, SAME_PARAGRAPH, SAME_SENTENCE, UNKNOWN, DocumentLayout
from docmt.discourse.trees import SPAN, Node, binarise
from docmt.errors import UserError

KINDS = ("S", "N", "R", "F")
LEVEL_NAMES = {
    SAME_SENTENCE: "in sentence",
    SAME_PARAGRAPH: "in paragraph",
    ABOVE: "above paragraphs",
    UNKNOWN: "above sentences",
}

Position = tuple[int, int]
"""The first word of a span and the word after its last one, counted with one extra position per sentence end."""
Coarse = Callable[[str], str]


class Scores:
    """Counts over documents; `report` turns them into percentages."""

    def __init__(self, coarse: Coarse) -> None:
        self.coarse = coarse
        self.counts: Counter[str] = Counter()

    def add(self, gold: DiscourseDocument, predicted: DiscourseDocument) -> None:
        """Count one document. Raises UserError when the two do not have the same words."""
        if gold.id != predicted.id or gold.sentences != predicted.sentences:
            raise UserError(
                f"evaluation: the words of document {predicted.id!r} differ from those of gold document {gold.id!r}: "
                "parse the documents of the gold file, in order"
            )
        gold_places, places = _places(gold), _places(predicted)
        self.counts["documents"] += 1
        self.counts["sentences"] += len(gold.sentences)
        self._match("edus", Counter(gold_places), Counter(places))
        if gold.tree is not None and predicted.tree is not None:
            gold_tree, tree = binarise(gold.tree), binarise(predicted.tree)
            self._add_constituents(gold_tree, tree, gold_places, places)
            self._add_levels(gold_tree, tree, gold_places, places, layout=DocumentLayout(gold))
        if gold.edus and (gold.tree is not None or gold.arcs is not None):
            self._add_dependencies(gold, predicted, gold_places, places)

    def _match(self, name: str, gold: Counter[Any], predicted: Counter[Any]) -> None:
        self.counts[f"{name} gold"] += gold.total()
        self.counts[f"{name} predicted"] += predicted.total()
        self.counts[f"{name} both"] += (gold & predicted).total()

    def _add_constituents(
        self, gold_tree: Node, tree: Node, gold_places: list[Position], places: list[Position]
    ) -> None:
        for name, read in (("parseval", self._internal_nodes), ("rst-parseval", self._all_nodes)):
            gold_nodes, nodes = read(gold_tree, gold_places), read(tree, places)
            for kind, (wanted, found) in enumerate(zip(gold_nodes, nodes, strict=True)):
                self._match(f"{name} {KINDS[kind]}", Counter(wanted), Counter(found))

    def _add_levels(
        self,
        gold_tree: Node,
        tree: Node,
        gold_places: list[Position],
        places: list[Position],
        *,
        layout: DocumentLayout,
    ) -> None:
        found = Counter(self._internal_nodes(tree, places)[0])
        for node in gold_tree.postorder():
            if not node.is_leaf:
                level = LEVEL_NAMES[layout.level(node.first, node.last)]
                self.counts[f"level {level} gold"] += 1
                self.counts[f"level {level} both"] += found[_span(node, gold_places)] > 0

    def _internal_nodes(self, tree: Node, places: list[Position]) -> tuple[list[Any], ...]:
        """List the internal nodes four times: by span, with nuclearity, with relation, with both."""
        nodes = [node for node in tree.postorder() if not node.is_leaf]
        labels = [(_span(node, places), node.nuclearity, self._coarse(node.relation)) for node in nodes]
        return _by_kind(labels)

    def _all_nodes(self, tree: Node, places: list[Position]) -> tuple[list[Any], ...]:
        """List all nodes except the root, as `_internal_nodes` does."""
        labels = [
            (_span(child, places), letter, self._coarse(relation))
            for node in tree.postorder()
            for child, letter, relation in zip(node.children, node.nuclearity, node.relations, strict=True)
        ]
        return _by_kind(labels)

    def _add_dependencies(
        self, gold: DiscourseDocument, predicted: DiscourseDocument, gold_places: list[Position], places: list[Position]
    ) -> None:
        gold_arcs, arcs = self._arcs(gold, gold_places), self._arcs(predicted, places)
        self._match("uas", Counter(arc[:2] for arc in gold_arcs), Counter(arc[:2] for arc in arcs))
        self._match("las", Counter(gold_arcs), Counter(arcs))
        gold_heads, heads = _sentence_heads(gold), _sentence_heads(predicted)
        self.counts["sentence heads right"] += sum(a == b for a, b in zip(gold_heads, heads, strict=True))

    def _arcs(self, document: DiscourseDocument, places: list[Position]) -> list[tuple[Position, Any, str]]:
        tree = document.dependencies
        return [
            (place, places[head] if head != NO_HEAD else None, self._coarse(relation))
            for place, head, relation in zip(places, tree.heads, tree.relations, strict=True)
        ]

    def _coarse(self, relation: str) -> str:
        return relation if relation in (SPAN, ROOT) else self.coarse(relation)

    def report(self) -> dict[str, Any]:
        """Report F1 of original Parseval and RST-Parseval, span recall by level, UAS and LAS in percent, and counts.

        A score that no document allows to compute is None.
        """
        trees = {name: {kind: self._f1(f"{name} {kind}") for kind in KINDS} for name in ("parseval", "rst-parseval")}
        levels = [name for name in LEVEL_NAMES.values() if self.counts[f"level {name} gold"]]
        return {
            "documents": self.counts["documents"],
            "sentences": self.counts["sentences"],
            "edus": {"gold": self.counts["edus gold"], "predicted": self.counts["edus predicted"]},
            "edu_f1": self._f1("edus"),
            "parseval": trees["parseval"],
            "rst_parseval": trees["rst-parseval"],
            "span_recall": {
                name: {
                    "recall": _percent(self.counts[f"level {name} both"], self.counts[f"level {name} gold"]),
                    "nodes": self.counts[f"level {name} gold"],
                }
                for name in levels
            },
            "uas": self._f1("uas"),
            "las": self._f1("las"),
            "sentence_uas": _percent(self.counts["sentence heads right"], self.counts["sentences"]),
        }

    def _f1(self, name: str) -> float | None:
        return _percent(2 * self.counts[f"{name} both"], self.counts[f"{name} gold"] + self.counts[f"{name} predicted"])


def evaluate(pairs: Iterable[tuple[DiscourseDocument, DiscourseDocument]], *, coarse: Coarse = str) -> dict[str, Any]:
    """Score pairs of a gold and a predicted document with the same words; see `Scores.report`.

    `coarse` maps the relations of both documents before they are compared.
    """
    scores = Scores(coarse)
    for gold, predicted in pairs:
        scores.add(gold, predicted)
    return scores.report()


def _by_kind(labels: list[tuple[Position, str, str]]) -> tuple[list[Any], ...]:
    return (
        [label[0] for label in labels],
        [label[:2] for label in labels],
        [(label[0], label[2]) for label in labels],
        labels,
    )


def _places(document: DiscourseDocument) -> list[Position]:
    offsets = [0]
    for words in document.sentences:
        offsets.append(offsets[-1] + len(words) + 1)
    return [(offsets[edu.sentence] + edu.start, offsets[edu.sentence] + edu.end) for edu in document.edus]


def _span(node: Node, places: list[Position]) -> Position:
    return places[node.first][0], places[node.last][1]


def _sentence_heads(document: DiscourseDocument) -> tuple[int, ...]:
    sentences = [edu.sentence for edu in document.edus]
    return merge_to_sentences(document.dependencies.heads, sentences, len(document.sentences))


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 2) if whole else None
