"""The document model: documents of sentences, in one language or aligned in two."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Self

from docmt.errors import UserError
from docmt.files import atomic_writer, read_lines, write_lines

INDEX_HEADER = "document\tn_sentences"


@dataclass(frozen=True)
class Document:
    """A document in one language, or in two with aligned sentences.

    Attributes:
        id: unique within its split.
        sides: the sentences in each language, source first; sentence i of one side is the translation of sentence i
            of the other. An empty string is an empty sentence and keeps its place.
    """

    id: str
    sides: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(side) != len(self) for side in self.sides):
            raise UserError(
                f"document {self.id}: {len(self.src)} source and {len(self.tgt)} target sentences; align them first"
            )

    @property
    def src(self) -> tuple[str, ...]:
        """The source sentences, or the only ones."""
        return self.sides[0]

    @property
    def tgt(self) -> tuple[str, ...]:
        """The target sentences of a parallel document."""
        return self.sides[1]

    def reversed(self) -> Self:
        """The document in the other direction."""
        return replace(self, sides=self.sides[::-1])

    def __len__(self) -> int:
        return len(self.sides[0])


@dataclass(frozen=True)
class DocumentIndex:
    """The lines of a text file that belong to each document.

    Attributes:
        ids: document ids, in file order.
        lengths: number of sentences (lines) of each document.
    """

    ids: tuple[str, ...]
    lengths: tuple[int, ...]

    @property
    def n_sentences(self) -> int:
        """The number of sentences (lines) in all documents."""
        return sum(self.lengths)


def index_path(prefix: Path) -> Path:
    """`PREFIX.documents.tsv`, the document index beside the text `PREFIX.{lang}`."""
    return Path(f"{prefix}.documents.tsv")


def text_path(prefix: Path, lang: str) -> Path:
    """`PREFIX.{lang}`, one sentence per line."""
    return Path(f"{prefix}.{lang}")


def read_index(path: Path) -> DocumentIndex:
    """Read `PREFIX.documents.tsv`. Raises UserError on a malformed line or a duplicate document id."""
    header, *rows = read_lines(path) or [""]
    if header != INDEX_HEADER:
        raise UserError(f"{path}: line 1 must be {INDEX_HEADER!r}")
    ids, lengths = [], []
    for number, row in enumerate(rows, start=2):
        document_id, tab, length = row.partition("\t")
        if not (tab and length.isdigit() and int(length) > 0):
            raise UserError(f"{path}: line {number} must be a document id, a tab and a number of sentences")
        ids.append(document_id)
        lengths.append(int(length))
    if len(set(ids)) != len(ids):
        duplicate = next(name for name, count in Counter(ids).items() if count > 1)
        raise UserError(f"{path}: duplicate document id {duplicate!r}")
    return DocumentIndex(tuple(ids), tuple(lengths))


def write_index(path: Path, index: DocumentIndex) -> None:
    """Write `PREFIX.documents.tsv`."""
    rows = (f"{name}\t{length}" for name, length in zip(index.ids, index.lengths, strict=True))
    write_lines(path, [INDEX_HEADER, *rows])


def read_documents(prefix: Path, *, languages: Sequence[str]) -> list[Document]:
    """Read `PREFIX.documents.tsv` and `PREFIX.{lang}` for each language: one or both sides of parallel documents.

    Raises UserError when a file is missing, is not UTF-8, or the counts differ.
    """
    index = read_index(index_path(prefix))
    sides = [_read_side(prefix, index, lang) for lang in languages]
    return [Document(name, tuple(texts)) for name, *texts in zip(index.ids, *sides, strict=True)]


def _read_side(prefix: Path, index: DocumentIndex, lang: str) -> list[tuple[str, ...]]:
    """The sentences of each document in one language."""
    path = text_path(prefix, lang)
    lines = read_lines(path)
    if len(lines) != index.n_sentences:
        raise UserError(f"{path}: {len(lines)} lines, but {index_path(prefix)} has {index.n_sentences} sentences")
    rest = iter(lines)
    return [tuple(islice(rest, length)) for length in index.lengths]


def write_documents(prefix: Path, documents: Iterable[Document], *, languages: Sequence[str]) -> None:
    """Write `PREFIX.{lang}` for each language, in the order of the sides, and, last, `PREFIX.documents.tsv`."""
    documents = list(documents)
    for side, lang in enumerate(languages):
        with atomic_writer(text_path(prefix, lang)) as file:
            for document in documents:
                for sentence in document.sides[side]:
                    if "\n" in sentence:
                        raise ValueError(f"document {document.id}: a sentence contains a line end")
                    file.write(sentence + "\n")
    index = DocumentIndex(tuple(document.id for document in documents), tuple(map(len, documents)))
    write_index(index_path(prefix), index)
