"""Word syntax: parts of speech, heads and relations of words in sentences (`*.syntax.jsonl`)."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from docmt.discourse.dependencies import NO_HEAD
from docmt.discourse.discourse_documents import DiscourseDocument
from docmt.errors import UserError
from docmt.files import iterate_jsonl, write_jsonl

NO_OPENING = "_"
"""The opening of a word that does not begin a phrase."""


@dataclass(frozen=True, slots=True)
class SentenceSyntax:
    """The syntax of one sentence."""

    pos: tuple[str, ...]  # part of speech per word
    heads: tuple[int, ...]  # head per word, counted from 0, −1 for the root
    relations: tuple[str, ...]  # relation to the head per word

    @property
    def openings(self) -> tuple[str, ...]:
        """Relation of the largest phrase (a word with all descendants) that begins with a word, per word.

        EDUs begin where clauses begin, and the opening of the first word in a clause shows the type of clause. The
        heads must form a tree (`check_dependencies`): on a cycle, the walk to the root would not end.
        """
        first = list(range(len(self.heads)))
        depths = [0] * len(self.heads)
        for word in range(len(self.heads)):
            above = self.heads[word]
            while above != NO_HEAD:
                first[above] = min(first[above], word)
                depths[word] += 1
                above = self.heads[above]
        # From the deepest word up, so that the largest phrase that begins with a word overwrites smaller ones.
        openings = [NO_OPENING] * len(self.heads)
        for word in sorted(range(len(self.heads)), key=lambda word: (-depths[word], word)):
            openings[first[word]] = self.relations[word]
        return tuple(openings)


DocumentSyntax = tuple[SentenceSyntax, ...]


def read_syntax(path: Path, documents: Sequence[DiscourseDocument]) -> list[DocumentSyntax]:
    """Read the syntax of documents in order."""
    named_rows: list[tuple[str, DocumentSyntax]] = []
    for number, value in enumerate(iterate_jsonl(path), start=1):
        try:
            sentences = []
            for row in value["sentences"]:
                sentences.append(SentenceSyntax(tuple(row["pos"]), tuple(row["heads"]), tuple(row["relations"])))
            named_rows.append((value["document"], tuple(sentences)))
        except (KeyError, TypeError) as error:
            raise UserError(f"{path}: line {number}: not syntax in the format of docs/files.md ({error!r})") from None
    if len(named_rows) != len(documents):
        raise UserError(f"{path}: {len(named_rows)} documents, but the discourse file has {len(documents)}")
    for number, (document, (name, syntax)) in enumerate(zip(documents, named_rows, strict=True), start=1):
        if name != document.id:
            raise UserError(f"{path}: line {number}: expected the syntax of {document.id!r}, found {name!r}")
        try:
            check_syntax(document, syntax)
        except UserError as error:
            raise UserError(f"{path}: line {number}: {error}") from None
    return [syntax for _, syntax in named_rows]


def write_syntax(path: Path, documents: Iterable[tuple[str, DocumentSyntax]]) -> None:
    """Write document ids and syntax as `*.syntax.jsonl`."""
    write_jsonl(path, ({"document": name, "sentences": list(map(asdict, syntax))} for name, syntax in documents))


def check_syntax(document: DiscourseDocument, syntax: DocumentSyntax) -> None:
    """Raise UserError unless all words have a part of speech, a relation, and a head in their sentence."""
    where = f"syntax of {document.id!r}"
    if len(syntax) != len(document.sentences):
        raise UserError(f"{where}: {len(syntax)} sentences, but the document has {len(document.sentences)}")
    for number, (sentence, words) in enumerate(zip(syntax, document.sentences, strict=True), start=1):
        if not len(sentence.pos) == len(sentence.heads) == len(sentence.relations) == len(words):
            raise UserError(f"{where}: sentence {number}: the syntax must have one entry per word ({len(words)})")
        if not all(isinstance(head, int) and NO_HEAD <= head < len(words) for head in sentence.heads):
            raise UserError(f"{where}: sentence {number}: a head is not one of its {len(words)} words")
