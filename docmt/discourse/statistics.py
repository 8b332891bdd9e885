"""Statistics of EDUs and trees, in constant memory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from docmt.discourse.constituents import Node, binarize
from docmt.discourse.dependencies import NO_HEAD, DependencyTree, depths, merge_to_sentences
from docmt.discourse.discourse_documents import DiscourseDocument


@dataclass
class DiscourseStatistics:
    """Sums over documents.

    `row` and `relation_rows` convert the sums to tables. docs/discourse-statistics.md describes the columns.
    """

    sums: Counter[str] = field(default_factory=Counter)
    maxima: dict[str, int] = field(default_factory=dict)
    relations: Counter[str] = field(default_factory=Counter)
    relations_between: Counter[str] = field(default_factory=Counter)

    def add(self, document: DiscourseDocument) -> None:
        n_edus = len(document.edus)
        n_sentences = len(document.sentences)
        sentence_of = np.fromiter((edu.sentence for edu in document.edus), dtype=np.int64, count=n_edus)
        edus_per_sentence = np.bincount(sentence_of, minlength=n_sentences)
        self.sums.update(
            documents=1,
            sentences=n_sentences,
            words=sum(map(len, document.sentences)),
            edus=n_edus,
            one_edu_sentences=int((edus_per_sentence == 1).sum()),
        )
        self.maxima["edus"] = max(n_edus, self.maxima.get("edus", 0))
        if document.tree is not None:
            self._add_constituents(document.tree, edus_per_sentence)
        if document.tree is not None or document.arcs is not None:
            self._add_dependencies(document.dependencies, sentence_of, n_sentences)

    def _add_constituents(self, tree: Node, edus_per_sentence: np.ndarray) -> None:
        """Count depth and complete sentences in the binarized tree, so that n-ary and binary files are comparable."""
        tree = binarize(tree)
        depth = tree.fold(lambda node, below: 1 + max(below) if below else 0)
        spans = {(node.first, node.last) for node in tree.postorder()}
        ends = np.cumsum(edus_per_sentence)
        firsts = (ends - edus_per_sentence).tolist()
        lasts = (ends - 1).tolist()
        is_whole = np.array([span in spans for span in zip(firsts, lasts, strict=True)])
        has_several = edus_per_sentence > 1
        self.sums.update(
            constituent_documents=1,
            constituent_depth=depth,
            constituent_sentences=len(is_whole),
            whole_sentences=int(is_whole.sum()),
            several_edu_sentences=int(has_several.sum()),
            whole_several_edu_sentences=int((is_whole & has_several).sum()),
        )
        self.maxima["constituent_depth"] = max(depth, self.maxima.get("constituent_depth", 0))

    def _add_dependencies(self, tree: DependencyTree, sentence_of: np.ndarray, n_sentences: int) -> None:
        heads = np.array(tree.heads, dtype=np.int64)
        depth = int(depths(tree.heads).max())
        has_head = heads != NO_HEAD
        distance = np.abs(np.where(has_head, sentence_of[heads], sentence_of) - sentence_of)
        is_external = (distance > 0) | ~has_head
        n_external = np.bincount(sentence_of[is_external], minlength=n_sentences)
        merged = np.array(merge_to_sentences(tree.heads, sentence_of.tolist(), n_sentences), dtype=np.int64)
        self.sums.update(
            dependency_documents=1,
            dependency_sentences=n_sentences,
            dependency_depth=depth,
            several_head_sentences=int((n_external > 1).sum()),
            arcs=int(has_head.sum()),
            arcs_between=int((distance > 0).sum()),
            distance_between=int(distance.sum()),
            sentence_arcs=int((merged != NO_HEAD).sum()),
            # Without the first sentence: its predecessor would be NO_HEAD, which would match a root.
            chain_arcs=int((merged[1:] == np.arange(n_sentences - 1)).sum()),
        )
        self.maxima["dependency_depth"] = max(depth, self.maxima.get("dependency_depth", 0))
        self.relations.update(name for name, head in zip(tree.relations, tree.heads, strict=True) if head != NO_HEAD)
        self.relations_between.update(tree.relations[edu] for edu in np.flatnonzero(distance))

    def _mean(self, part: str, whole: str, *, scale: int = 1) -> float | None:
        return round(scale * self.sums[part] / self.sums[whole], 2) if self.sums[whole] else None

    def _percent(self, part: str, whole: str) -> float | None:
        return self._mean(part, whole, scale=100)

    def row(self) -> dict[str, int | float | None]:
        """Return one table row, with None if a denominator is 0, for example for constituents in a file of arcs."""
        return {
            "documents": self.sums["documents"],
            "documents_without_tree": self.sums["documents"] - self.sums["dependency_documents"],
            "sentences": self.sums["sentences"],
            "words": self.sums["words"],
            "edus": self.sums["edus"],
            "words_per_edu": self._mean("words", "edus"),
            "edus_per_sentence": self._mean("edus", "sentences"),
            "edus_per_document": self._mean("edus", "documents"),
            "max_edus_per_document": self.maxima.get("edus"),
            "one_edu_sentences_percent": self._percent("one_edu_sentences", "sentences"),
            "dependency_depth": self._mean("dependency_depth", "dependency_documents"),
            "max_dependency_depth": self.maxima.get("dependency_depth"),
            "constituent_depth": self._mean("constituent_depth", "constituent_documents"),
            "max_constituent_depth": self.maxima.get("constituent_depth"),
            "whole_sentences_percent": self._percent("whole_sentences", "constituent_sentences"),
            "whole_several_edu_sentences_percent": self._percent(
                "whole_several_edu_sentences", "several_edu_sentences"
            ),
            "several_head_sentences_percent": self._percent("several_head_sentences", "dependency_sentences"),
            "arcs_between_sentences_percent": self._percent("arcs_between", "arcs"),
            "distance_between_sentences": self._mean("distance_between", "arcs_between"),
            "chain_percent": self._percent("chain_arcs", "sentence_arcs"),
        }

    def relation_rows(self) -> list[dict[str, Any]]:
        """Return one table row per dependency relation, the most frequent first, without roots."""
        total = self.relations.total()
        rows = []
        for name, count in sorted(self.relations.items(), key=lambda item: (-item[1], item[0])):
            row = {
                "relation": name,
                "arcs": count,
                "percent": round(100 * count / total, 2),
                "between_sentences_percent": round(100 * self.relations_between[name] / count, 2),
            }
            rows.append(row)
        return rows


def gather_statistics(documents: Iterable[DiscourseDocument]) -> DiscourseStatistics:
    """Compute the statistics of documents."""
    statistics = DiscourseStatistics()
    for document in documents:
        statistics.add(document)
    return statistics
