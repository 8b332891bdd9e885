"""Parsers by name: baselines, adapters, trees in files of the user, trained models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from typing_extensions import override

from docmt.discourse.documents import DiscourseDocument, iterate_discourse
from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.discourse.syntax import DocumentSyntax, iterate_syntax
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.edu_alignment import align_tree
from docmt.discourse.treebanks.rs3 import parse_rs3
from docmt.discourse.treebanks.rsd import parse_rsd
from docmt.errors import UserError
from docmt.files import read_text

READERS = {".dis": parse_brackets, ".rs3": parse_rs3, ".rs4": parse_rs3, ".rsd": parse_rsd}
"""Readers of a user's tree files, by suffix."""


@dataclass(frozen=True)
class OpenedParser:
    """A parser, and the relation inventory that it was trained with, if any."""

    parser: Parser
    relations: str | None = None


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
        from docmt.discourse.parsing.isanlp import DEFAULT_VERSION, IsanlpParser

        return IsanlpParser.load(argument or DEFAULT_VERSION)
    choices = f"give a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
    raise UserError(f"parser {name!r}: no such file; {choices}")


def open_parser(name: str, *, syntax: Path | None = None) -> OpenedParser:
    """Load a parser by its name, as `load_parser` does.

    A linear parser that was trained on files of syntax needs one for the documents to be parsed, in their order.
    """
    from docmt.discourse.parsing.linear_parser import LinearParser
    from docmt.discourse.parsing.model_file import load_trained_parser

    trained = load_trained_parser(Path(name)) if Path(name).is_file() else None
    parser = trained.parser if trained else load_parser(name)
    reads_file = trained is not None and trained.settings.kind == "linear" and trained.settings.linear.syntax == "file"
    if reads_file != (syntax is not None):
        raise UserError(
            f"parser {name} was trained on *.syntax.jsonl: give --syntax FILE"
            if reads_file
            else f"parser {name} does not read *.syntax.jsonl: leave --syntax out"
        )
    if isinstance(parser, LinearParser) and syntax is not None:
        parser.syntax = StreamedSyntax(syntax)
    return OpenedParser(parser, trained.settings.relations if trained else None)


class StreamedSyntax:
    """The syntax of documents that are requested in the order of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rest = iterate_syntax(path)

    def __call__(self, documents: Sequence[DiscourseDocument]) -> list[DocumentSyntax]:
        """Return the syntax of the next documents; raise UserError when another document is next in the file."""
        found = []
        for document in documents:
            name, syntax = next(self._rest, (None, ()))
            if name != document.id:
                there = "the end of the file" if name is None else repr(name)
                raise UserError(f"{self.path}: expected the syntax of document {document.id!r} next, found {there}")
            found.append(syntax)
        return found


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
