"""The interface of all parsers, and baselines: trees that ignore the words, as controls for trained parsers."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.settings import nearest

if TYPE_CHECKING:
    from torch import Tensor

CHAIN, RANDOM = BASELINES = ("chain", "random")
RELATION = "elaboration"
"""The relation of every arc of a baseline; all inventories have it."""
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


def batches(documents: Iterable[DiscourseDocument]) -> Iterator[list[DiscourseDocument]]:
    """Yield documents in groups of at most `BATCH_EDUS` EDUs."""
    return fill_batches(documents, BATCH_EDUS, cost=lambda document: len(document.edus))


@dataclass
class Baseline(Parser):
    """Dependency trees without constituents, whatever the words."""

    # `chain`: every EDU depends on the one before it. `random`: on any earlier one, always the same for documents of
    # one id; the tree has as many arcs as a parser's.
    name: str

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        draw = random.Random(document.id)
        earlier = [edu - 1 if self.name == CHAIN else draw.randrange(edu) for edu in range(1, n_edus)]
        arcs = DependencyTree((NO_HEAD, *earlier)[:n_edus], (ROOT, *[RELATION] * len(earlier))[:n_edus])
        return replace(document, tree=None, arcs=arcs)


def baseline(name: str) -> Parser:
    """Return the baseline of this name."""
    if name not in BASELINES:
        raise UserError(f"unknown baseline {name!r}; {nearest(name, list(BASELINES))}")
    return Baseline(name)
