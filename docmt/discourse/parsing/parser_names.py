"""Parsers by name: baselines, adapters, trained models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.baselines import BASELINES, Parser, baseline
from docmt.discourse.syntax import DocumentSyntax, iterate_syntax
from docmt.errors import UserError


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
    if adapter == "isanlp":
        from docmt.discourse.parsing.isanlp import DEFAULT_VERSION, IsanlpParser

        return IsanlpParser.load(argument or DEFAULT_VERSION)
    if adapter != "file":
        raise UserError(
            f"parser {name!r}: no such file; give a model file, {', '.join(BASELINES)}, isanlp:VERSION or file:PATH"
        )
    from docmt.discourse.parsing.user_trees import FileParser

    return FileParser(Path(argument))


def open_parser(name: str, *, syntax: Path | None = None) -> OpenedParser:
    """Load a parser for documents whose words may have syntax in a file.

    Args:
        name: see `load_parser`.
        syntax: for a linear parser that was trained on files of syntax: that of the documents to be parsed, in order.
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
