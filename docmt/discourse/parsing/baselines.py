"""The interface of all parsers, and baselines: trees that ignore the words, as controls for trained parsers."""

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.constituents import Node, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.documents import DiscourseDocument, DocumentUnits, Units
from docmt.errors import UserError
from docmt.settings import nearest

if TYPE_CHECKING:
    from torch import Tensor

CHAIN = "chain"
RELATION = "elaboration"
"""The relation of every arc and node of a baseline; all inventories have it."""
BATCH_EDUS = 4000
"""Maximum number of EDUs in the documents that are read and parsed together."""

WordStates = Sequence[Sequence["Tensor"]]
"""For each document and sentence, the word states of the segmenter, [words, width]."""


@dataclass
class Parser(ABC):
    """Turns documents with EDUs into documents with trees.

    Attributes:
        counts: totals so far: `documents`, `edus`, `enforced` (steps at which a constraint overruled the classifier).
    """

    counts: Counter[str] = field(default_factory=Counter, kw_only=True)

    @abstractmethod
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """Return the document with a tree, which replaces any that it had; without EDUs, it gets none."""

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Parse several documents, with the same trees as from `parse`.

        A caller that has word states from the parser's own segmenter can pass them; most parsers ignore them.
        """
        return [self.parse(document) for document in documents]

    def parse_all(self, documents: Iterable[DiscourseDocument]) -> Iterator[DiscourseDocument]:
        """Yield the documents with trees, in order; memory does not grow with their number."""
        for batch in batches(documents):
            yield from self.parse_batch(batch)


def batches(documents: Iterable[DiscourseDocument]) -> Iterator[list[DiscourseDocument]]:
    """Yield documents in groups of at most `BATCH_EDUS` EDUs."""
    return fill_batches(documents, BATCH_EDUS, cost=lambda document: len(document.edus))


@dataclass
class Chain(Parser):
    """Every EDU depends on the one before it: a dependency tree without constituents."""

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        arcs = DependencyTree((NO_HEAD, *range(n_edus - 1))[:n_edus], (ROOT, *[RELATION] * (n_edus - 1))[:n_edus])
        return replace(document, tree=None, arcs=arcs)


@dataclass
class ShapeParser(Parser):
    """Trees of one fixed shape.

    Attributes:
        build: makes the tree of a document with at least one EDU.
    """

    build: Callable[[DocumentUnits], Node]

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        self.counts.update(documents=1, edus=len(document.edus))
        tree = self.build(DocumentUnits(document)) if document.edus else None
        return replace(document, tree=tree, arcs=None)


def flat(units: DocumentUnits) -> Node:
    """One node over all EDUs, each a nucleus."""
    leaves = _leaves(units)
    return join(leaves, "N" * len(leaves), (RELATION,) * len(leaves)) if len(leaves) > 1 else leaves[0]


def right_branching(units: DocumentUnits) -> Node:
    """Everything that follows an EDU is its satellite."""
    return _branch(_leaves(units))


def sentence_branching(units: DocumentUnits) -> Node:
    """Right-branching sentences, joined right-branching."""
    return _branch(_branch_within(_leaves(units), units.sentences))


def paragraph_branching(units: DocumentUnits) -> Node:
    """Right-branching sentences in right-branching paragraphs; without paragraphs, the same as `sentence_branching`."""
    sentences = _branch_within(_leaves(units), units.sentences)
    return _branch(sentences if units.paragraphs is None else _branch_within(sentences, units.paragraphs))


def _leaves(units: DocumentUnits) -> list[Node]:
    return [leaf(edu) for edu in range(units.n_edus)]


def _branch(nodes: Iterable[Node]) -> Node:
    *rest, tree = nodes
    for node in reversed(rest):
        tree = join_pair(node, tree, "NS", RELATION)
    return tree


def _branch_within(nodes: Iterable[Node], units: Units) -> list[Node]:
    """Build one tree for each run of nodes that begin in the same unit."""
    return [_branch(run) for _, run in itertools.groupby(nodes, key=lambda node: units.number_of[node.first])]


SHAPES: dict[str, Callable[[DocumentUnits], Node]] = {
    "flat": flat,
    "right_branching": right_branching,
    "sentence_branching": sentence_branching,
    "paragraph_branching": paragraph_branching,
}
BASELINES = (CHAIN, *SHAPES)


def baseline(name: str) -> Parser:
    """Return the baseline of this name."""
    if name not in BASELINES:
        raise UserError(f"unknown baseline {name!r}; {nearest(name, list(BASELINES))}")
    return Chain() if name == CHAIN else ShapeParser(SHAPES[name])
