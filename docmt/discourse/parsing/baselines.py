"""Trees without any knowledge of the words: controls for everything that a parser is said to bring."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

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
"""The relation of every arc and node, known to all inventories."""

WordStates = Sequence[Sequence["Tensor"]]
"""For each document and sentence, the word states of the segmenter, [words, width]."""


class Parser(Protocol):
    """What makes trees.

    Attributes:
        counts: what happened so far: `documents`, `edus`, `enforced` (steps at which a constraint overruled the
            classifier) and the like.
    """

    counts: Counter[str]

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with a tree; a tree that it had is replaced."""
        ...

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Several documents, each as `parse` would do it.

        Args:
            states: of the documents' words, where the caller has them from the parser's own segmenter; most parsers
                have no use for them.
        """
        ...


@dataclass
class Chain:
    """Every EDU depends on the one before it: a dependency tree without constituents."""

    relation: str = RELATION
    counts: Counter[str] = field(default_factory=Counter)

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with the arcs of the chain."""
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        arcs = DependencyTree((NO_HEAD, *range(n_edus - 1))[:n_edus], (ROOT, *[self.relation] * (n_edus - 1))[:n_edus])
        return replace(document, tree=None, arcs=arcs)

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Each document by itself."""
        return [self.parse(document) for document in documents]


@dataclass
class Shape:
    """Trees of one fixed shape.

    Attributes:
        build: makes the tree from the layout of a document with at least one EDU and a relation.
        relation: the name of all relations.
    """

    build: Callable[[DocumentLayout, str], Node]
    relation: str = RELATION
    counts: Counter[str] = field(default_factory=Counter)

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with its tree."""
        self.counts.update(documents=1, edus=len(document.edus))
        tree = self.build(DocumentLayout(document), self.relation) if document.edus else None
        return replace(document, tree=tree, arcs=None)

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Each document by itself."""
        return [self.parse(document) for document in documents]


def flat(layout: DocumentLayout, relation: str) -> Node:
    """One node over all EDUs, each a nucleus."""
    leaves = [leaf(edu) for edu in range(layout.n_edus)]
    return join(leaves, "N" * len(leaves), (relation,) * len(leaves)) if len(leaves) > 1 else leaves[0]


def right_branching(layout: DocumentLayout, relation: str) -> Node:
    """Everything that follows an EDU is its satellite."""
    return _branch([leaf(edu) for edu in range(layout.n_edus)], relation)


def left_branching(layout: DocumentLayout, relation: str) -> Node:
    """Everything before an EDU is the nucleus to which it is the satellite."""
    tree = leaf(0)
    for edu in range(1, layout.n_edus):
        tree = join_pair(tree, leaf(edu), "NS", relation)
    return tree


def sentence_branching(layout: DocumentLayout, relation: str) -> Node:
    """Right-branching sentences, joined right-branching."""
    leaves = [leaf(edu) for edu in range(layout.n_edus)]
    return _branch(_branch_within(leaves, layout.sentences.of, relation), relation)


def paragraph_branching(layout: DocumentLayout, relation: str) -> Node:
    """Right-branching sentences in right-branching paragraphs; as `sentence_branching` without paragraphs."""
    leaves = [leaf(edu) for edu in range(layout.n_edus)]
    nodes = _branch_within(leaves, layout.sentences.of, relation)
    if layout.paragraphs is not None:
        nodes = _branch_within(nodes, layout.paragraphs.of, relation)
    return _branch(nodes, relation)


def _branch(nodes: Iterable[Node], relation: str) -> Node:
    rest = list(nodes)
    tree = rest.pop()
    while rest:
        tree = join_pair(rest.pop(), tree, "NS", relation)
    return tree


def _branch_within(nodes: Sequence[Node], unit_of: Sequence[int], relation: str) -> list[Node]:
    """One tree for each run of nodes that begin in the same unit."""
    return [_branch(group, relation) for _, group in itertools.groupby(nodes, key=lambda node: unit_of[node.first])]


SHAPES: dict[str, Callable[[DocumentLayout, str], Node]] = {
    "flat": flat,
    "right_branching": right_branching,
    "left_branching": left_branching,
    "sentence_branching": sentence_branching,
    "paragraph_branching": paragraph_branching,
}
BASELINES = (CHAIN, *SHAPES)
"""Names of all baselines."""


def baseline(name: str) -> Parser:
    """The baseline of a name of `BASELINES`. Raises UserError for another name."""
    if name not in BASELINES:
        raise UserError(f"baseline {name!r} is not known; {nearest(name, list(BASELINES))}")
    return Chain() if name == CHAIN else Shape(SHAPES[name])
