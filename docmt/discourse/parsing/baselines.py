"""The interface of all parsers, and baselines: trees that ignore the words, as controls for trained parsers."""

import itertools
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.constituents import Node, join, join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.documents import DiscourseDocument, DocumentUnits
from docmt.errors import UserError
from docmt.settings import nearest

if TYPE_CHECKING:
    from torch import Tensor

CHAIN, RANDOM = "chain", "random"
SHAPES = {"flat": 0, "right_branching": 0, "sentence_branching": 1, "paragraph_branching": 2}
"""Constituent trees, by number of levels (sentences, paragraphs) that become subtrees."""
BASELINES = (CHAIN, RANDOM, *SHAPES)
RELATION = "elaboration"
"""The relation of every arc and node of a baseline; all inventories have it."""
BATCH_EDUS = 4000
"""Maximum number of EDUs in the documents that are read and parsed together."""

WordStates = Sequence[Sequence["Tensor"]]
"""For each document and sentence, the word states of the segmenter, [words, width]."""


@dataclass
class Parser(ABC):
    """Turns documents with EDUs into documents with trees."""

    # Totals so far: `documents`, `edus`, `enforced` (steps at which a constraint overruled the classifier).
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
class Baseline(Parser):
    """Trees of one shape, whatever the words."""

    # `chain`: every EDU depends on the one before it, a dependency tree without constituents. `random`: on any earlier
    # one, always the same for documents of one id; the tree has as many arcs as a parser's. `flat`: one node over all
    # EDUs, each a nucleus. `right_branching`: everything that follows an EDU is its satellite. `sentence_branching`:
    # right-branching sentences, joined right-branching. `paragraph_branching`: these in right-branching paragraphs,
    # where paragraphs are known.
    name: str

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        if self.name in (CHAIN, RANDOM):
            draw = random.Random(document.id)
            earlier = [edu - 1 if self.name == CHAIN else draw.randrange(edu) for edu in range(1, n_edus)]
            arcs = DependencyTree((NO_HEAD, *earlier)[:n_edus], (ROOT, *[RELATION] * len(earlier))[:n_edus])
            return replace(document, tree=None, arcs=arcs)
        nodes = [leaf(edu) for edu in range(n_edus)]
        if self.name == "flat" and n_edus > 1:
            nodes = [join(nodes, "N" * n_edus, (RELATION,) * n_edus)]
        units = DocumentUnits(document)
        for level in [units.sentences, units.paragraphs][: SHAPES[self.name]]:
            if level is not None:
                runs = itertools.groupby(nodes, key=lambda node, level=level: level.number_of[node.first])
                nodes = [_branch(run) for _, run in runs]
        return replace(document, tree=_branch(nodes) if nodes else None, arcs=None)


def _branch(nodes: Iterable[Node]) -> Node:
    *rest, tree = nodes
    for node in reversed(rest):
        tree = join_pair(node, tree, "NS", RELATION)
    return tree


def baseline(name: str) -> Parser:
    """Return the baseline of this name."""
    if name not in BASELINES:
        raise UserError(f"unknown baseline {name!r}; {nearest(name, list(BASELINES))}")
    return Baseline(name)
