"""Trees of the parsers of isanlp_rst (Chistova 2024), for those who have the package and its weights.

Its parser splits text into words of its own, so a document's EDUs are joined by blanks and its trees are mapped back by
characters: a leaf that is no EDU of ours is an error, not a guess.
"""

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import WordStates
from docmt.discourse.trees import Node, join_pair, leaf
from docmt.errors import UserError

DEFAULT_VERSION = "gumrrg"
MODULE = "isanlp_rst.parser"
ELEMENTARY = "elementary"


@dataclass
class IsanlpParser:
    """A parser of isanlp_rst on given EDUs.

    Attributes:
        backend: its `Parser`; `from_edus` takes the texts of EDUs and returns `{"rst": [unit]}`, a binary tree of
            units with `left`, `right`, `relation` and `nuclearity`.
        counts: see `Parser`.
    """

    backend: Any
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def load(cls, version: str) -> "IsanlpParser":
        """Load one of its models.

        Raises UserError when the package is missing, or the weights cannot be found.
        """
        try:
            module = importlib.import_module(MODULE)
        except ImportError as error:
            raise UserError(
                f"parser isanlp: the package isanlp_rst cannot be imported ({error}): install it and isanlp, see "
                "docs/parsing.md"
            ) from None
        try:
            return cls(module.Parser(hf_model_version=version, cuda_device=-1))
        except Exception as error:  # whatever a hub, a file system or a damaged file may raise
            reason = str(error).splitlines()[0][:150] if str(error) else type(error).__name__
            raise UserError(
                f"parser isanlp:{version}: its weights cannot be loaded ({reason}): see docs/parsing.md"
            ) from None

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with a tree.

        Raises UserError when the parser refuses the EDUs or its tree has other leaves.
        """
        self.counts.update(documents=1, edus=len(document.edus))
        spoken = [number for number in range(len(document.edus)) if document.edu_words(number)]
        if len(spoken) < len(document.edus):
            raise UserError(f"parser isanlp: document {document.id!r} has a sentence without words: leave it out")
        if not spoken:
            return replace(document, tree=None, arcs=None)
        if len(spoken) == 1:
            return replace(document, tree=leaf(0), arcs=None)
        texts = [" ".join(document.edu_words(number)) for number in spoken]
        try:
            (unit,) = self.backend.from_edus(texts)["rst"]
        except ValueError as error:
            raise UserError(f"parser isanlp: document {document.id!r} cannot be parsed by its EDUs ({error})") from None
        return replace(document, tree=_convert(unit, texts, document.id), arcs=None)

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Each document by itself."""
        return [self.parse(document) for document in documents]


def _convert(root: Any, texts: Sequence[str], name: str) -> Node:
    """The tree of a unit, whose leaves must be the EDUs in order."""
    done: list[Node] = []
    stack: list[tuple[Any, bool]] = [(root, False)]
    n_leaves = 0
    while stack:
        unit, is_open = stack.pop()
        if unit.relation == ELEMENTARY:
            if n_leaves >= len(texts) or _letters(unit.text) != _letters(texts[n_leaves]):
                raise UserError(f"parser isanlp: document {name!r}: EDU {n_leaves + 1} of its tree is not that of ours")
            done.append(leaf(n_leaves))
            n_leaves += 1
        elif not is_open:
            stack += [(unit, True), (unit.right, False), (unit.left, False)]
        else:
            right, left = done.pop(), done.pop()
            done.append(join_pair(left, right, unit.nuclearity, unit.relation.lower()))
    if n_leaves != len(texts):
        raise UserError(f"parser isanlp: document {name!r}: its tree has {n_leaves} EDUs, not {len(texts)}")
    return done[0]


def _letters(text: str) -> str:
    return "".join(text.split())
