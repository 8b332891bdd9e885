"""The document model: documents with sentences in one language, or aligned in two."""

import contextlib
import itertools
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from docmt.errors import UserError
from docmt.files import atomic_writer, iterate_lines

INDEX_HEADER = "document\tn_sentences"
MASKED_HEADER = f"{INDEX_HEADER}\tmasked"
"""Header of an index whose third column lists sentences without loss, numbered from 1 in each document."""
INDEX_SUFFIX = ".documents.tsv"


@dataclass(frozen=True)
class Document:
    """A document in one language, or in two with aligned sentences.

    Attributes:
        id: unique in the split.
        sides: the sentences in each language, source first; sentence i of one side is the translation of sentence i
            of the other. An empty string is an empty sentence and keeps its place.
        masked: numbers of sentences that training reads as context, without loss.
    """

    id: str
    sides: tuple[tuple[str, ...], ...]
    masked: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(len(side) != len(self) for side in self.sides):
            raise UserError(
                f"document {self.id}: {len(self.src)} source and {len(self.tgt)} target sentences; align them first"
            )

    @property
    def src(self) -> tuple[str, ...]:
        """The source sentences, or the only side."""
        return self.sides[0]

    @property
    def tgt(self) -> tuple[str, ...]:
        """The target sentences in a parallel document."""
        return self.sides[1]

    def reversed(self) -> Self:
        """Return the document with swapped sides."""
        return replace(self, sides=self.sides[::-1])

    def __len__(self) -> int:
        return len(self.sides[0])


@dataclass(frozen=True)
class DocumentIndex:
    """Document ids in a text file, in order, and their numbers of sentences (lines)."""

    ids: tuple[str, ...]
    lengths: tuple[int, ...]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Yield id and number of sentences per document."""
        return zip(self.ids, self.lengths, strict=True)

    @property
    def n_sentences(self) -> int:
        """Total number of sentences (lines)."""
        return sum(self.lengths)


def index_path(prefix: Path) -> Path:
    """Return `PREFIX.documents.tsv`, the document index for the text `PREFIX.{lang}`."""
    return Path(f"{prefix}{INDEX_SUFFIX}")


def split_prefixes(files: Iterable[Path]) -> list[Path]:
    """Return the prefixes of the splits whose files are listed, `PREFIX.documents.tsv` and `PREFIX.{lang}`, in order.

    Raises UserError for a text without an index.
    """
    paths = list(files)
    prefixes = []
    for path in paths:
        if path.name.endswith(INDEX_SUFFIX):
            prefixes.append(Path(str(path).removesuffix(INDEX_SUFFIX)))
    indexed = set(prefixes)
    for path in paths:
        if not path.name.endswith(INDEX_SUFFIX) and path.with_suffix("") not in indexed:
            raise UserError(f"{path}: also pass {index_path(path.with_suffix(''))}, the index of its documents")
    return prefixes


def single_prefix(files: Sequence[Path], *, option: str) -> Path:
    """Return the prefix of the only split whose files are listed. Raises UserError for no or several splits."""
    prefixes = split_prefixes(files)
    if len(prefixes) != 1:
        raise UserError(f"{option}: files of {len(prefixes)} splits: pass PREFIX.documents.tsv and PREFIX.LANG of one")
    return prefixes[0]


def text_path(prefix: Path, lang: str) -> Path:
    """Return `PREFIX.{lang}`, a text with one sentence per line."""
    return Path(f"{prefix}.{lang}")


def read_index(path: Path) -> DocumentIndex:
    """Read `PREFIX.documents.tsv`."""
    ids = []
    lengths = []
    for document_id, length in iterate_index(path):
        ids.append(document_id)
        lengths.append(length)
    return DocumentIndex(tuple(ids), tuple(lengths))


def iterate_index(path: Path) -> Iterator[tuple[str, int]]:
    """Yield id and number of sentences per document, like `read_index`.

    Needs 8 bytes of memory per document. A duplicate id raises UserError at the end.
    """
    for document_id, length, *_ in _iterate_rows(path):
        yield document_id, int(length)


def iterate_masked(path: Path) -> Iterator[tuple[int, list[int]]] | None:
    """Yield number of sentences and masked sentences, from 0, per document. None without a `masked` column."""
    if next(iterate_lines(path), "") != MASKED_HEADER:
        return None

    def documents() -> Iterator[tuple[int, list[int]]]:
        for line, (_, length, masked) in enumerate(_iterate_rows(path), start=2):
            numbers = masked.split()
            if not all(_is_count(number) and int(number) <= int(length) for number in numbers):
                raise UserError(f"{path}: line {line}: masked sentences must be numbers from 1 to {length}")
            yield int(length), [int(number) - 1 for number in numbers]

    return documents()


def _iterate_rows(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each row in an index: document id, number of sentences and, in some files, masked ones."""
    rows = iterate_lines(path)
    header = next(rows, "")
    if header not in (INDEX_HEADER, MASKED_HEADER):
        raise UserError(f"{path}: line 1 must be {INDEX_HEADER!r}")
    # Hashes instead of ids, since an index for sentence pairs has millions of rows.
    hashes = array("q")
    for line, row in enumerate(rows, start=2):
        cells = row.split("\t")
        if row.count("\t") != header.count("\t") or not _is_count(cells[1]):
            raise UserError(f"{path}: line {line} must be a document id, a tab and a number of sentences")
        hashes.append(hash(cells[0]))
        yield cells
    _check_unique(path, path, hashes)


def _is_count(text: str) -> bool:
    # Nine digits: Python converts longer numbers in quadratic time, or not at all.
    return text.isdecimal() and len(text) < 10 and int(text) > 0


def _check_unique(path: Path, file: Path, hashes_of_ids: array) -> None:
    """Raise UserError if an index contains duplicate ids. `file` has its content, perhaps under a temporary name."""
    import numpy as np  # here, because most commands read small indexes and should start fast

    hashes = np.sort(np.frombuffer(hashes_of_ids, dtype=np.int64))
    shared = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
    if not shared:
        return
    # Hashes can collide: read the index again, and count ids with shared hashes.
    counts: Counter[str] = Counter()
    for row in itertools.islice(iterate_lines(file), 1, None):
        name = row.partition("\t")[0]
        if hash(name) in shared:
            counts[name] += 1
    for name, count in counts.items():
        if count > 1:
            raise UserError(f"{path}: duplicate document id {name!r}")


def read_documents(prefix: Path, *, languages: Sequence[str]) -> list[Document]:
    """Read `PREFIX.documents.tsv` and `PREFIX.{lang}`, for one or both sides of parallel documents."""
    return list(iterate_documents(prefix, languages=languages))


def iterate_documents(prefix: Path, *, languages: Sequence[str]) -> Iterator[Document]:
    """Yield documents like `read_documents`. A bad line raises UserError when it is reached."""
    return iterate_files(index_path(prefix), [text_path(prefix, lang) for lang in languages])


def iterate_files(index: Path, texts: Sequence[Path]) -> Iterator[Document]:
    """Yield the documents in one or two texts with the same index, like `iterate_documents`."""
    n_sentences = sum(length for _, length in iterate_index(index))
    sides = [_iterate_side(text, index, n_sentences) for text in texts]
    for name, length in iterate_index(index):
        sentences = [tuple(itertools.islice(side, length)) for side in sides]
        yield Document(name, tuple(sentences))
    # Only now, the iterators read beyond the last sentence, and report surplus lines.
    for side in sides:
        next(side, None)


def _iterate_side(path: Path, index: Path, n_sentences: int) -> Iterator[str]:
    """Yield the lines of one side."""
    lines = iterate_lines(path)
    n_lines = 0
    for n_lines, line in enumerate(lines, start=1):
        if n_lines > n_sentences:
            n_lines += sum(1 for _ in lines)
            break
        yield line
    if n_lines != n_sentences:
        raise UserError(f"{path}: {n_lines} lines, but {index} has {n_sentences} sentences")


def write_documents(
    prefix: Path, documents: Iterable[Document], *, languages: Sequence[str], has_masks: bool = False
) -> None:
    """Write `PREFIX.{lang}` for each language, in the order of the sides, and, last, `PREFIX.documents.tsv`.

    Documents are written one at a time. All files appear at the end, or none after an error, such as a duplicate id.
    """
    hashes = array("q")
    with contextlib.ExitStack() as stack:
        # Files opened last are closed and renamed first.
        index = stack.enter_context(atomic_writer(index_path(prefix)))
        files = []
        for lang in reversed(languages):
            files.append(stack.enter_context(atomic_writer(text_path(prefix, lang))))
        files.reverse()
        header = MASKED_HEADER if has_masks else INDEX_HEADER
        index.write(f"{header}\n")
        for document in documents:
            for file, side in zip(files, document.sides, strict=True):
                for sentence in side:
                    if "\n" in sentence:
                        raise ValueError(f"document {document.id}: a sentence contains a line end")
                    file.write(sentence + "\n")
            row = f"{document.id}\t{len(document)}"
            if has_masks:
                row += "\t" + " ".join(str(number + 1) for number in document.masked)
            index.write(f"{row}\n")
            hashes.append(hash(document.id))
        index.flush()
        _check_unique(index_path(prefix), Path(index.name), hashes)
