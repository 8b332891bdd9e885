"""Parsers by name: baselines, trained models, trees in files of the user, and an adapter for isanlp_rst."""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from docmt.discourse.constituents import Node, join_pair, leaf, postorder
from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.treebank import align_tree
from docmt.errors import UserError
from docmt.files import read_text

READERS = {".dis": parse_brackets, ".rs3": parse_rs3, ".rs4": parse_rs3}
"""Readers of a user's tree files, by suffix."""
ISANLP_VERSION, ISANLP_LEAF = "gumrrg", "elementary"


def load_parser(name: str) -> Parser:
    """Load a parser by its name: a baseline, `isanlp[:VERSION]`, `file:PATH` (trees from files), or a model file."""
    # Adapters and model files are imported where they are needed: torch alone takes seconds.
    if name in BASELINES:
        return baseline(name)
    if Path(name).exists():
        from docmt.discourse.parsing.model_file import load_trained_parser

        return load_trained_parser(Path(name)).parser
    adapter, _, argument = name.partition(":")
    if adapter == "file":
        return FileParser(Path(argument))
    if adapter == "isanlp":
        return IsanlpParser.load(argument or ISANLP_VERSION)
    choices = f"give a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
    raise UserError(f"parser {name!r}: no such file; {choices}")


def open_parser(name: str) -> tuple[Parser, str | None]:
    """Load a parser by its name, as `load_parser` does; also returns the relation inventory of its training, if any."""
    if not Path(name).is_file():
        return load_parser(name), None
    from docmt.discourse.parsing.model_file import load_trained_parser

    trained = load_trained_parser(Path(name))
    return trained.parser, trained.settings.relations


class FileParser(Parser):
    """Takes trees from a file or folder.

    A `.discourse.jsonl` holds the documents in the order in which they are parsed; in a folder, the file of a document
    is named by its id, with `_` for `/`.
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
            found = self._read(document)
        else:
            found = next(self._rest, None)
            if found is None or found.id != document.id:
                there = repr(found.id) if found else "the end of the file"
                raise UserError(f"{self.path}: expected the tree of document {document.id!r} next, found {there}")
        where = f"{self.path}: tree of {document.id!r}"
        if found.sentences != document.sentences:
            raise UserError(f"{where}: its words differ from the document's")
        if found.edus != document.edus:
            raise UserError(f"{where}: its {len(found.edus)} EDUs differ from the document's {len(document.edus)}")
        if found.edus and found.tree is None and found.arcs is None:
            raise UserError(f"{where}: the file has EDUs but no tree")
        self.counts.update(documents=1, edus=len(document.edus))
        return replace(document, tree=found.tree, arcs=found.arcs)

    def _read(self, document: DiscourseDocument) -> DiscourseDocument:
        name = document.id.replace("/", "_")
        for suffix, read in READERS.items():
            path = self.path / f"{name}{suffix}"
            if path.is_file():
                annotated = read(read_text(path), where=str(path))
                return align_tree(document.id, document.sentences, annotated, where=str(path))
        suffixes = ", ".join(READERS)
        raise UserError(f"{self.path}: no tree of document {document.id!r}: no file {name!r} with suffix {suffixes}")


@dataclass
class IsanlpParser(Parser):
    """A parser of isanlp_rst (Chistova 2024), which needs the package and its weights, run on given EDUs."""

    # Its `Parser`; `from_edus` takes the texts of EDUs and returns `{"rst": [unit]}`, a binary tree of units with
    # `left`, `right`, `relation` and `nuclearity`.
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
    for unit in postorder(root, lambda unit: () if unit.relation == ISANLP_LEAF else (unit.left, unit.right)):
        if unit.relation == ISANLP_LEAF:
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
