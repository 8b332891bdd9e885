"""Parsing and scoring files, batch by batch."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from docmt.batching import fill_batches
from docmt.discourse.documents import DiscourseDocument, edus_of_starts, iterate_discourse
from docmt.discourse.parsing.baselines import Parser
from docmt.discourse.parsing.evaluation import Scores
from docmt.discourse.parsing.linear import LinearParser
from docmt.discourse.parsing.loading import load_parser
from docmt.discourse.parsing.training import coarse_classes
from docmt.discourse.segmentation.prediction import Segmenter
from docmt.discourse.syntax import DocumentSyntax, iterate_syntax
from docmt.errors import UserError

BATCH_EDUS = 4000
"""Most EDUs in the documents that are read and parsed together."""


@dataclass(frozen=True)
class OpenedParser:
    """A parser, and the relation inventory that it was trained with, if any."""

    parser: Parser
    relations: str | None


def open_parser(name: str, *, syntax: Path | None = None) -> OpenedParser:
    """Load a parser by its name (see `load_parser`).

    A linear parser trained on files of syntax needs one with the documents in the order in which they will be parsed.
    Raises UserError when there is no such parser, or the syntax is missing or not used.
    """
    from docmt.discourse.parsing.model_file import load_trained

    trained = load_trained(Path(name)) if Path(name).is_file() else None
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
        """Return the syntax of the next documents. Raises UserError when another document is next in the file."""
        found = []
        for document in documents:
            name, syntax = next(self._rest, (None, ()))
            if name != document.id:
                there = "the end of the file" if name is None else repr(name)
                raise UserError(f"{self.path}: expected the syntax of document {document.id!r} next, found {there}")
            found.append(syntax)
        return found


def parse_documents(parser: Parser, documents: Iterable[DiscourseDocument]) -> Iterator[DiscourseDocument]:
    """Yield the documents with trees, in order; memory does not grow with their number."""
    for batch in _batches(documents):
        yield from parser.parse_batch(batch)


def evaluate_file(
    opened: OpenedParser,
    gold: Path,
    *,
    relations: str | None = None,
    segmenter: Segmenter | None = None,
    hide_paragraphs: bool = False,
) -> dict[str, Any]:
    """Score a parser on a `.discourse.jsonl` with gold trees.

    Args:
        opened: the parser.
        gold: the file.
        relations: the inventory whose coarse classes are compared; None for that of the parser.
        segmenter: finds the EDUs; None for gold EDUs.
        hide_paragraphs: whether to hide the paragraphs from the parser.

    Returns:
        The report of `Scores`, and how often a constraint overruled the parser's classifier (`enforced`).
    """
    scores = Scores(coarse_classes(relations or opened.relations))
    before = opened.parser.counts["enforced"]
    for batch in _batches(iterate_discourse(gold)):
        if missing := [document.id for document in batch if document.tree is None and document.arcs is None]:
            raise UserError(f"{gold}: document {missing[0]!r} has no tree to compare with")
        inputs = [replace(document, tree=None, arcs=None) for document in batch]
        if hide_paragraphs:
            inputs = [replace(document, paragraphs=None) for document in inputs]
        if segmenter is not None:
            inputs = [resegment(document, segmenter) for document in inputs]
        for document, predicted in zip(batch, opened.parser.parse_batch(inputs), strict=True):
            scores.add(document, predicted)
    return {**scores.report(), "enforced": opened.parser.counts["enforced"] - before}


def resegment(document: DiscourseDocument, segmenter: Segmenter) -> DiscourseDocument:
    """Replace the EDUs of a document by those that a segmenter finds, and drop its tree."""
    lengths = [len(words) for words in document.sentences]
    edus = edus_of_starts(segmenter.segment(document.sentences), lengths)
    return replace(document, edus=edus, tree=None, arcs=None)


def _batches(documents: Iterable[DiscourseDocument]) -> Iterator[list[DiscourseDocument]]:
    return fill_batches(documents, BATCH_EDUS, cost=lambda document: len(document.edus))
