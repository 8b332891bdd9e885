"""The protocol of all parsers, and baselines: trees that ignore the words, as controls for trained parsers."""

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.layout import DocumentLayout
from docmt.discourse.trees import Node, join, join_pair, leaf
from docmt.errors import UserError
from docmt.settings import nearest

if TYPE_CHECKING:
    from torch import Tensor

CHAIN = "chain"
RELATION = "elaboration"
"""The relation of every arc and node of a baseline; all inventories have it."""

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
        """Return the document with a tree, which replaces any that it had."""

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Parse several documents; the trees are those that `parse` gives.

        A caller that has word states from the parser's own segmenter can pass them; most parsers ignore them.
        """
        return [self.parse(document) for document in documents]


@dataclass
class Chain(Parser):
    """Every EDU depends on the one before it: a dependency tree without constituents."""

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """Return the document with the arcs of the chain."""
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        arcs = DependencyTree((NO_HEAD, *range(n_edus - 1))[:n_edus], (ROOT, *[RELATION] * (n_edus - 1))[:n_edus])
        return replace(document, tree=None, arcs=arcs)


@dataclass
class ShapeParser(Parser):
    """Trees of one fixed shape.

    Attributes:
        build: makes the tree from the layout of a document with at least one EDU.
    """

    build: Callable[[DocumentLayout], Node]

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """Return the document with its tree; none without EDUs."""
        self.counts.update(documents=1, edus=len(document.edus))
        tree = self.build(DocumentLayout(document)) if document.edus else None
        return replace(document, tree=tree, arcs=None)


def flat(layout: DocumentLayout) -> Node:
    """One node over all EDUs, each a nucleus."""
    leaves = [leaf(edu) for edu in range(layout.n_edus)]
    return join(leaves, "N" * len(leaves), (RELATION,) * len(leaves)) if len(leaves) > 1 else leaves[0]


def right_branching(layout: DocumentLayout) -> Node:
    """Everything that follows an EDU is its satellite."""
    return _branch(leaf(edu) for edu in range(layout.n_edus))


def left_branching(layout: DocumentLayout) -> Node:
    """Every EDU is a satellite of everything before it."""
    tree = leaf(0)
    for edu in range(1, layout.n_edus):
        tree = join_pair(tree, leaf(edu), "NS", RELATION)
    return tree


def sentence_branching(layout: DocumentLayout) -> Node:
    """Right-branching sentences, joined right-branching."""
    return _branch(_branch_within(map(leaf, range(layout.n_edus)), layout.sentences.of))


def paragraph_branching(layout: DocumentLayout) -> Node:
    """Right-branching sentences in right-branching paragraphs; without paragraphs, the same as `sentence_branching`."""
    nodes = _branch_within(map(leaf, range(layout.n_edus)), layout.sentences.of)
    if layout.paragraphs is not None:
        nodes = _branch_within(nodes, layout.paragraphs.of)
    return _branch(nodes)


def _branch(nodes: Iterable[Node]) -> Node:
    rest = list(nodes)
    tree = rest.pop()
    while rest:
        tree = join_pair(rest.pop(), tree, "NS", RELATION)
    return tree


def _branch_within(nodes: Iterable[Node], unit_of: Sequence[int]) -> list[Node]:
    """One tree for each run of nodes that begin in the same unit."""
    return [_branch(group) for _, group in itertools.groupby(nodes, key=lambda node: unit_of[node.first])]


SHAPES: dict[str, Callable[[DocumentLayout], Node]] = {
    "flat": flat,
    "right_branching": right_branching,
    "left_branching": left_branching,
    "sentence_branching": sentence_branching,
    "paragraph_branching": paragraph_branching,
}
BASELINES = (CHAIN, *SHAPES)
"""Names of all baselines."""


def baseline(name: str) -> Parser:
    """Return the baseline of this name. Raises UserError for a name that is not in `BASELINES`."""
    if name not in BASELINES:
        raise UserError(f"unknown baseline {name!r}; {nearest(name, list(BASELINES))}")
    return Chain() if name == CHAIN else ShapeParser(SHAPES[name])
