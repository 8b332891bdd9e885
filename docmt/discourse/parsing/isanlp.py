"""Adapter for the parsers of isanlp_rst (Chistova 2024), which need the package and its weights."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import override

from docmt.discourse.constituents import Node, join_pair, leaf, postorder
from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import Parser
from docmt.errors import UserError

DEFAULT_VERSION = "gumrrg"
MODULE = "isanlp_rst.parser"
ELEMENTARY = "elementary"


@dataclass
class IsanlpParser(Parser):
    """A parser of isanlp_rst, run on given EDUs.

    Attributes:
        backend: its `Parser`; `from_edus` takes the texts of EDUs and returns `{"rst": [unit]}`, a binary tree of
            units with `left`, `right`, `relation` and `nuclearity`.
    """

    backend: Any

    @classmethod
    def load(cls, version: str) -> "IsanlpParser":
        """Load one of its models."""
        try:
            module = importlib.import_module(MODULE)
        except ImportError as error:
            raise UserError(
                f"parser isanlp: cannot import the package isanlp_rst ({error}): install isanlp_rst and isanlp, see "
                "docs/parsing.md"
            ) from None
        try:
            return cls(module.Parser(hf_model_version=version, cuda_device=-1))
        except Exception as error:  # whatever a hub, a file system or a damaged file may raise
            reason = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
            message = f"parser isanlp:{version}: cannot load its weights ({reason}): see docs/parsing.md"
            raise UserError(message) from None

    @override
    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        self.counts.update(documents=1, edus=len(document.edus))
        texts = [" ".join(document.edu_words(number)) for number in range(len(document.edus))]
        if not all(texts):
            raise UserError(f"parser isanlp: document {document.id!r} has a sentence without words: remove it")
        if len(texts) < 2:
            return replace(document, tree=leaf(0) if texts else None, arcs=None)
        try:
            (unit,) = self.backend.from_edus(texts)["rst"]
        except ValueError as error:
            raise UserError(f"parser isanlp: it rejects the EDUs of document {document.id!r} ({error})") from None
        return replace(document, tree=convert_units(unit, texts, document.id), arcs=None)


def convert_units(root: Any, texts: Sequence[str], name: str) -> Node:
    """Convert a tree of units, whose leaves must be the EDUs in order."""
    # isanlp_rst tokenizes the joined words itself, so leaves are matched to EDUs by their characters without spaces.
    done: list[Node] = []
    n_leaves = 0
    for unit in postorder(root, lambda unit: () if unit.relation == ELEMENTARY else (unit.left, unit.right)):
        if unit.relation == ELEMENTARY:
            n_leaves += 1
            if n_leaves > len(texts) or "".join(unit.text.split()) != "".join(texts[n_leaves - 1].split()):
                message = f"parser isanlp: document {name!r}: leaf {n_leaves} of the tree is not EDU {n_leaves}"
                raise UserError(message)
            done.append(leaf(n_leaves - 1))
        else:
            right, left = done.pop(), done.pop()
            done.append(join_pair(left, right, unit.nuclearity, unit.relation.lower()))
    if n_leaves != len(texts):
        raise UserError(f"parser isanlp: document {name!r}: the tree has {n_leaves} leaves for {len(texts)} EDUs")
    return done[0]
