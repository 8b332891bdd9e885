"""Trees made elsewhere over the EDUs of a document: a `.discourse.jsonl`, or a folder of `.dis`, `.rs3`, `.rsd`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import WordStates
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.placing import place_tree
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.rsd import parse_rsd
from docmt.errors import UserError
from docmt.files import read_text

READERS = {".dis": parse_brackets, ".rs3": parse_rs3, ".rs4": parse_rs3, ".rsd": parse_rsd}


class FileParser:
    """Takes the trees of a file or folder.

    In a `.discourse.jsonl`, documents stand in the order in which they are parsed; in a folder, a document's file is
    named by its id, `/` written as `_`.
    """

    def __init__(self, path: Path) -> None:
        """Raises UserError when there is no such file or folder."""
        if not path.exists():
            raise UserError(f"parser file:{path}: no such file or folder")
        self.path = path
        self.counts: Counter[str] = Counter()
        self._rest: Iterator[DiscourseDocument] | None = None if path.is_dir() else iterate_discourse(path)

    def parse(self, document: DiscourseDocument) -> DiscourseDocument:
        """The document with the tree that was made for it.

        Raises UserError when there is none, or it is over other words or EDUs.
        """
        found = self._from_folder(document) if self._rest is None else self._next(document, self._rest)
        where = f"{self.path}: tree of {document.id!r}"
        if found.sentences != document.sentences:
            raise UserError(f"{where}: its words are not those of the document")
        if found.edus != document.edus:
            raise UserError(
                f"{where}: it has {len(found.edus)} EDUs, which are not the document's {len(document.edus)}"
            )
        if found.edus and found.tree is None and found.arcs is None:
            raise UserError(f"{where}: the file has EDUs but no tree")
        self.counts.update(documents=1, edus=len(document.edus))
        return replace(document, tree=found.tree, arcs=found.arcs)

    def parse_batch(
        self, documents: Sequence[DiscourseDocument], states: WordStates | None = None
    ) -> list[DiscourseDocument]:
        """Each document by itself."""
        return [self.parse(document) for document in documents]

    def _next(self, document: DiscourseDocument, rest: Iterator[DiscourseDocument]) -> DiscourseDocument:
        found = next(rest, None)
        if found is None or found.id != document.id:
            there = repr(found.id) if found else "the end of the file"
            raise UserError(f"{self.path}: the tree of document {document.id!r} is needed next, but there is {there}")
        return found

    def _from_folder(self, document: DiscourseDocument) -> DiscourseDocument:
        name = document.id.replace("/", "_")
        for suffix, read in READERS.items():
            path = self.path / f"{name}{suffix}"
            if path.is_file():
                annotated = read(read_text(path), where=str(path))
                return place_tree(document.id, document.sentences, annotated, where=str(path))
        raise UserError(f"{self.path}: no tree of document {document.id!r}: neither of {', '.join(READERS)} is there")
