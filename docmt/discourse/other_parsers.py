"""The parser interface, baselines, trees from files, and an adapter for isanlp_rst.

Baselines ignore the words. They are controls for trained parsers.
"""

import importlib
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor
from typing_extensions import override

from docmt.batching import fill_batches
from docmt.discourse.constituents import Node, join_pair, leaf, postorder
from docmt.discourse.dependencies import NO_HEAD, ROOT, DependencyTree
from docmt.discourse.discourse_documents import DiscourseDocument, iterate_discourse
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import align_tree
from docmt.errors import UserError, first_line
from docmt.files import read_text
from docmt.settings import nearest

CHAIN, RANDOM = BASELINES = ("chain", "random")
RELATION = "elaboration"
"""The relation of all baseline arcs. All inventories contain it."""
BATCH_EDUS = 4000
"""Maximum number of EDUs in documents parsed together."""
WordStates = Sequence[Sequence[Tensor]]
"""Word states of the segmenter per document and sentence, [words, width]."""


@dataclass
class Parser(ABC):
    """Converts documents with EDUs to documents with trees."""

    # Totals: `documents`, `edus`, `enforced` (steps at which a constraint overruled the classifier).
    counts: Counter[str] = field(default_factory=Counter, kw_only=True)

    @property
    def inventory(self) -> str | None:
        """Relation inventory of the training data, if any."""
        return None

    @abstractmethod
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """Return the document with a new tree. A document without EDUs gets none."""

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Parse several documents, with the same trees as `parse`.

        `states` are word states of the segmenter, which only the neural parser uses.
        """
        return [self.parse(document) for document in documents]


def batches(documents: Iterable[DiscourseDocument]) -> Iterator[list[DiscourseDocument]]:
    """Yield documents in batches with at most `BATCH_EDUS` EDUs."""
    return fill_batches(documents, BATCH_EDUS, cost=lambda document: len(document.edus))


@dataclass
class Baseline(Parser):
    """Dependency trees without constituents, independent of the words."""

    # `chain`: every EDU depends on the previous one. `random`: it depends on a random earlier one, with the document id
    # as seed.
    name: str

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        n_edus = len(document.edus)
        self.counts.update(documents=1, edus=n_edus)
        if self.name == CHAIN:
            earlier = range(n_edus - 1)
        else:
            draw = random.Random(document.id)
            earlier = [draw.randrange(edu) for edu in range(1, n_edus)]
        arcs = DependencyTree((NO_HEAD, *earlier)[:n_edus], (ROOT, *[RELATION] * len(earlier))[:n_edus])
        return replace(document, tree=None, arcs=arcs)


def baseline(name: str) -> Parser:
    """Return a baseline by name."""
    if name not in BASELINES:
        raise UserError(f"unknown baseline {name!r}; {nearest(name, list(BASELINES))}")
    return Baseline(name)


READERS = {".dis": parse_brackets, ".rs3": parse_rs3, ".rs4": parse_rs3}
"""Suffix → reader for user-supplied tree files."""
ISANLP_VERSION = "gumrrg"
ISANLP_LEAF = "elementary"


class FileParser(Parser):
    """Reads trees from a file or folder.

    A `.discourse.jsonl` contains documents in the order of parsing. In a folder, the file name is the document id, with
    `_` for `/`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        if not path.exists():
            raise UserError(f"parser file:{path}: no such file or folder")
        self.path = path
        self._rest: Iterator[DiscourseDocument] | None = None if path.is_dir() else iterate_discourse(path)

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        if self._rest is None:
            parsed = self._read(document)
        else:
            parsed = next(self._rest, None)
            if parsed is None or parsed.id != document.id:
                there = repr(parsed.id) if parsed else "the end of the file"
                raise UserError(f"{self.path}: expected the tree of document {document.id!r} next, found {there}")
        where = f"{self.path}: tree of {document.id!r}"
        if parsed.sentences != document.sentences:
            raise UserError(f"{where}: its words differ from the words in the document")
        if parsed.edus != document.edus:
            raise UserError(
                f"{where}: its {len(parsed.edus)} EDUs differ from the {len(document.edus)} in the document"
            )
        if parsed.edus and parsed.tree is None and parsed.arcs is None:
            raise UserError(f"{where}: the file has EDUs but no tree")
        self.counts.update(documents=1, edus=len(document.edus))
        return replace(document, tree=parsed.tree, arcs=parsed.arcs)

    def _read(self, document: DiscourseDocument) -> DiscourseDocument:
        name = document.id.replace("/", "_")
        for suffix, read in READERS.items():
            path = self.path / f"{name}{suffix}"
            if path.is_file():
                annotated = read(read_text(path), where=str(path))
                return align_tree(document.id, document.sentences, annotated, where=str(path))
        suffixes = ", ".join(READERS)
        raise UserError(f"{self.path}: contains no file {name!r} with suffix {suffixes} for document {document.id!r}")


@dataclass
class IsanlpParser(Parser):
    """A parser from isanlp_rst (Chistova 2024) on docmt's EDUs. Needs the package and its weights."""

    # isanlp_rst's `Parser`. `from_edus` takes EDU texts and returns `{"rst": [unit]}`, where a unit is a node in a
    # binary tree with `left`, `right`, `relation` and `nuclearity`.
    backend: Any

    @classmethod
    def load(cls, version: str) -> "IsanlpParser":
        try:
            module = importlib.import_module("isanlp_rst.parser")
        except ImportError as error:
            raise UserError(
                f"parser isanlp: cannot import the package isanlp_rst ({error}): install isanlp_rst and isanlp, see "
                "docs/parsing.md"
            ) from None
        try:
            return cls(module.Parser(hf_model_version=version, cuda_device=-1))
        except Exception as error:  # hubs, file systems and damaged files raise many kinds of exceptions
            message = f"parser isanlp:{version}: cannot load its weights ({first_line(error)}): see docs/parsing.md"
            raise UserError(message) from None

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        self.counts.update(documents=1, edus=len(document.edus))
        texts = [" ".join(document.edu_words(number)) for number in range(len(document.edus))]
        if not all(texts):
            raise UserError(f"parser isanlp: document {document.id!r} has a sentence without words: remove it")
        if not texts:
            return replace(document, tree=None, arcs=None)
        if len(texts) == 1:
            return replace(document, tree=leaf(0), arcs=None)
        try:
            (unit,) = self.backend.from_edus(texts)["rst"]
        except ValueError as error:
            raise UserError(f"parser isanlp: cannot parse the EDUs of document {document.id!r} ({error})") from None
        return replace(document, tree=convert_units(unit, texts, document.id), arcs=None)


def convert_units(root: Any, texts: Sequence[str], name: str) -> Node:
    """Convert a tree of units. Its leaves must be the EDUs in order."""
    # isanlp_rst tokenizes the joined words again, so leaves and EDUs are compared by characters without spaces.
    done: list[Node] = []
    n_leaves = 0

    def children_of(unit: Any) -> tuple[Any, ...]:
        if unit.relation == ISANLP_LEAF:
            return ()
        return unit.left, unit.right

    for unit in postorder(root, children_of):
        if unit.relation == ISANLP_LEAF:
            n_leaves += 1
            if n_leaves > len(texts) or "".join(unit.text.split()) != "".join(texts[n_leaves - 1].split()):
                message = f"parser isanlp: document {name!r}: leaf {n_leaves} of the tree is not EDU {n_leaves}"
                raise UserError(message)
            done.append(leaf(n_leaves - 1))
        else:
            right = done.pop()
            left = done.pop()
            done.append(join_pair(left, right, unit.nuclearity, unit.relation.lower()))
    if n_leaves != len(texts):
        raise UserError(f"parser isanlp: document {name!r}: the tree has {n_leaves} leaves for {len(texts)} EDUs")
    return done[0]
