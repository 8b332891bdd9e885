"""A treebank: documents by split, what was left out and why, and how all this is written."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmt.discourse.constituents import SPAN, Node
from docmt.discourse.documents import DiscourseDocument, write_discourse
from docmt.discourse.relations import Inventory
from docmt.discourse.syntax import DocumentSyntax, write_syntax
from docmt.discourse.treebanks.treebank_files import RstFile
from docmt.errors import UserError
from docmt.files import write_json

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TreebankDocument:
    """A document; `syntax` is empty where the treebank has none."""

    discourse: DiscourseDocument
    syntax: DocumentSyntax = ()


@dataclass
class Treebank:
    """Documents by split."""

    name: str
    splits: dict[str, list[TreebankDocument]]
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """Names of the documents left out, by reason."""
    notes: dict[str, int] = field(default_factory=dict)
    """Counts of what was repaired or skipped while reading."""

    def note(self, rst: RstFile) -> None:
        """Count what was repaired or skipped in a file."""
        for what, n in (
            ("spans whose numbers are not those of their leaves", rst.n_wrong_spans),
            ("documents of several trees, which were joined", int(rst.n_trees > 1)),
            ("constituents lifted because edges cross", rst.n_lifted),
            ("secondary edges", rst.n_secondary_edges),
        ):
            if n:
                self.notes[what] = self.notes.get(what, 0) + n

    def leave_out(self, name: str, *, reason: str) -> None:
        """Note that a document is left out."""
        self.left_out.setdefault(reason, []).append(name)

    def counts(self) -> dict[str, Any]:
        """Count the contents of each split, and list what was left out and why."""
        return {
            "treebank": self.name,
            "splits": {split: _counts(documents) for split, documents in self.splits.items()},
            "left_out": self.left_out,
            "notes": self.notes,
        }


def write_treebank(folder: Path, treebank: Treebank) -> None:
    """Write `{split}.discourse.jsonl`, `{split}.syntax.jsonl` where there is syntax, and `counts.json`.

    Raises UserError when a split has no documents.
    """
    for split, documents in treebank.splits.items():
        if not documents:
            reasons = "; ".join(f"{len(names)} left out: {reason}" for reason, names in treebank.left_out.items())
            raise UserError(f"{treebank.name}: no documents in split {split} ({reasons or 'none in its files'})")
    for split, documents in treebank.splits.items():
        write_discourse(folder / f"{split}.discourse.jsonl", (document.discourse for document in documents))
        if any(document.syntax for document in documents):
            values = ((document.discourse.id, document.syntax) for document in documents)
            write_syntax(folder / f"{split}.syntax.jsonl", values)
    write_json(folder / "counts.json", treebank.counts())
    for what, n in treebank.notes.items():
        logger.warning("%s: %d %s", treebank.name, n, what)
    for reason, names in treebank.left_out.items():
        logger.warning("%s: %d documents left out (%s)", treebank.name, len(names), reason)


def check_texts(document: DiscourseDocument, texts: Sequence[str], *, where: str) -> None:
    """Raise UserError unless each EDU has the characters, spaces aside, of its text in the tree's file."""
    for edu, text in enumerate(texts):
        words = "".join(document.edu_words(edu))
        if words != "".join(text.split()):
            raise UserError(
                f"{where}: EDU {edu + 1} is {text!r}, but the words of the document are "
                f"{' '.join(document.edu_words(edu))!r}: the files are not of the same version"
            )


def check_relations(tree: Node, inventory: Inventory, *, where: str) -> None:
    """Raise UserError that names the first EDUs whose relation is not in the inventory."""
    for node in tree.postorder():
        for child, relation in zip(node.children, node.relations, strict=True):
            try:
                if relation != SPAN:
                    inventory.coarse(relation)
            except UserError as error:
                raise UserError(f"{where}: EDUs {child.first + 1} to {child.last + 1}: {error}") from None


def _counts(documents: list[TreebankDocument]) -> dict[str, int | None]:
    parts = [document.discourse for document in documents]
    paragraphs = [len(part.paragraphs) for part in parts if part.paragraphs is not None]
    return {
        "documents": len(parts),
        "paragraphs": sum(paragraphs) if len(paragraphs) == len(parts) else None,
        "sentences": sum(len(part.sentences) for part in parts),
        "tokens": sum(len(words) for part in parts for words in part.sentences),
        "edus": sum(len(part.edus) for part in parts),
    }
