"""Parts of speech and dependencies of a document's sentences, as the linear parser's features use them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmt.discourse.documents import DiscourseDocument
from docmt.errors import UserError
from docmt.files import iterate_jsonl

ROOT_WORD = -1


@dataclass(frozen=True, slots=True)
class WordSyntax:
    """One sentence.

    Attributes:
        pos: part of speech of each word.
        heads: the head of each word in the sentence, −1 for the root.
        relations: of each word to its head.
    """

    pos: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]


DocumentSyntax = tuple[WordSyntax, ...]


def iterate_syntax(path: Path) -> Iterator[tuple[str, DocumentSyntax]]:
    """The documents' ids and syntax of a file `*.syntax.jsonl`. Raises UserError that names a malformed line."""
    for number, value in enumerate(iterate_jsonl(path), start=1):
        try:
            sentences = tuple(
                WordSyntax(tuple(part["pos"]), tuple(part["heads"]), tuple(part["relations"]))
                for part in value["sentences"]
            )
            yield value["document"], sentences
        except (KeyError, TypeError) as error:
            raise UserError(f"{path}: line {number} is not the syntax of a document ({error!r})") from None


def check_syntax(document: DiscourseDocument, syntax: DocumentSyntax) -> None:
    """Raise UserError unless there is one tag, head and relation per word."""
    lengths = [len(words) for words in document.sentences]
    if [len(part.pos) for part in syntax] != lengths:
        raise UserError(f"syntax of {document.id!r}: its sentences do not have as many words as the document's")
    for number, (part, length) in enumerate(zip(syntax, lengths, strict=True), start=1):
        if not len(part.heads) == len(part.relations) == length or any(
            not ROOT_WORD <= head < length for head in part.heads
        ):
            raise UserError(f"syntax of {document.id!r}: sentence {number} needs one head and relation for each word")


def read_syntax(path: Path, documents: list[DiscourseDocument]) -> list[DocumentSyntax]:
    """The syntax of documents, in their order. Raises UserError when the file is not that of these documents."""
    found = list(iterate_syntax(path))
    if [name for name, _ in found] != [document.id for document in documents]:
        raise UserError(f"{path}: its documents are not those of the discourse file beside it")
    for document, (_, syntax) in zip(documents, found, strict=True):
        check_syntax(document, syntax)
    return [syntax for _, syntax in found]
