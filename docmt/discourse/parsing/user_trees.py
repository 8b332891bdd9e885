"""Discourse trees in files of the user: a `.discourse.jsonl`, or a folder of `.dis`, `.rs3`, `.rs4` or `.rsd` files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from typing_extensions import override

from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.edu_alignment import align_tree
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.rsd import parse_rsd
from docmt.errors import UserError
from docmt.files import read_text

READERS = {".dis": parse_brackets, ".rs3": parse_rs3, ".rs4": parse_rs3, ".rsd": parse_rsd}


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
            found = self._from_folder(document)
        else:
            found = next(self._rest, None)
            if found is None or found.id != document.id:
                there = repr(found.id) if found else "the end of the file"
                raise UserError(f"{self.path}: expected the tree of document {document.id!r} next, found {there}")
        where = f"{self.path}: tree of {document.id!r}"
        if found.sentences != document.sentences:
            raise UserError(f"{where}: its words differ from those of the document")
        if found.edus != document.edus:
            raise UserError(f"{where}: its {len(found.edus)} EDUs differ from the document's {len(document.edus)}")
        if found.edus and found.tree is None and found.arcs is None:
            raise UserError(f"{where}: the file has EDUs but no tree")
        self.counts.update(documents=1, edus=len(document.edus))
        return replace(document, tree=found.tree, arcs=found.arcs)

    def _from_folder(self, document: DiscourseDocument) -> DiscourseDocument:
        name = document.id.replace("/", "_")
        for suffix, read in READERS.items():
            path = self.path / f"{name}{suffix}"
            if path.is_file():
                annotated = read(read_text(path), where=str(path))
                return align_tree(document.id, document.sentences, annotated, where=str(path))
        suffixes = ", ".join(READERS)
        raise UserError(f"{self.path}: no tree of document {document.id!r}: no file {name!r} with suffix {suffixes}")
