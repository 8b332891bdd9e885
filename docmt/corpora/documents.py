"""The document model: corpus → documents → aligned sentence pairs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmt.errors import UserError
from docmt.files import atomic_writer, read_lines, write_lines

INDEX_HEADER = "document\tn_sentences"


@dataclass(frozen=True)
class Document:
    """A document of aligned sentences.

    Attributes:
        id: unique inside its split.
        src: source sentences; an empty string is an empty sentence and keeps its place.
        tgt: as many target sentences, sentence i beside source sentence i.
    """

    id: str
    src: tuple[str, ...]
    tgt: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.src) != len(self.tgt):
            raise UserError(
                f"document {self.id}: {len(self.src)} source and {len(self.tgt)} target sentences; align them first"
            )

    def __len__(self) -> int:
        return len(self.src)


@dataclass(frozen=True)
class MonolingualDocument:
    """A document of one language.

    Attributes:
        id: unique inside its split.
        sentences: an empty string is an empty sentence and keeps its place.
    """

    id: str
    sentences: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sentences)


@dataclass(frozen=True)
class DocumentIndex:
    """Which lines of a text file belong to which document.

    Attributes:
        ids: document ids, in file order.
        lengths: sentences (lines) of each document.
    """

    ids: tuple[str, ...]
    lengths: tuple[int, ...]

    @property
    def n_sentences(self) -> int:
        return sum(self.lengths)

    def split(self, lines: list[str]) -> Iterator[list[str]]:
        """The lines of each document in turn. Raises UserError when the count does not fit the index."""
        if len(lines) != self.n_sentences:
            raise UserError(f"{len(lines)} lines, but the document index counts {self.n_sentences} sentences")
        start = 0
        for length in self.lengths:
            yield lines[start : start + length]
            start += length


def index_path(prefix: Path) -> Path:
    """`PREFIX.documents.tsv`, the document index beside the text `PREFIX.{lang}`."""
    return Path(f"{prefix}.documents.tsv")


def text_path(prefix: Path, lang: str) -> Path:
    """`PREFIX.{lang}`, one sentence per line."""
    return Path(f"{prefix}.{lang}")


def read_index(path: Path) -> DocumentIndex:
    """Read `PREFIX.documents.tsv`. Raises UserError on a malformed line or a document id that stands twice."""
    header, *rows = read_lines(path) or [""]
    if header != INDEX_HEADER:
        raise UserError(f"{path}: line 1 must be {INDEX_HEADER!r}")
    ids, lengths = [], []
    for number, row in enumerate(rows, start=2):
        document_id, tab, length = row.partition("\t")
        if not (tab and length.isdigit() and int(length) > 0):
            raise UserError(f"{path}: line {number} must be a document id, a tab and a count of sentences")
        ids.append(document_id)
        lengths.append(int(length))
    if len(set(ids)) != len(ids):
        seen: set[str] = set()
        twice = next(name for name in ids if name in seen or seen.add(name))
        raise UserError(f"{path}: document {twice} stands twice")
    return DocumentIndex(tuple(ids), tuple(lengths))


def write_index(path: Path, index: DocumentIndex) -> None:
    """Write `PREFIX.documents.tsv`."""
    rows = (f"{name}\t{length}" for name, length in zip(index.ids, index.lengths, strict=True))
    write_lines(path, [INDEX_HEADER, *rows])


def read_documents(prefix: Path, *, src_lang: str, tgt_lang: str) -> list[Document]:
    """Read `PREFIX.{src}`, `PREFIX.{tgt}` and `PREFIX.documents.tsv`.

    Raises UserError when a file is missing, is not UTF-8, or when the counts differ.
    """
    index = read_index(index_path(prefix))
    sides = [_read_side(prefix, index, lang) for lang in (src_lang, tgt_lang)]
    return [Document(name, tuple(src), tuple(tgt)) for name, src, tgt in zip(index.ids, *sides, strict=True)]


def read_monolingual_documents(prefix: Path, *, lang: str) -> list[MonolingualDocument]:
    """Read `PREFIX.{lang}` and `PREFIX.documents.tsv`: one side of parallel documents, or a text of one language.

    Raises UserError when a file is missing, is not UTF-8, or when the counts differ.
    """
    index = read_index(index_path(prefix))
    side = _read_side(prefix, index, lang)
    return [MonolingualDocument(name, tuple(sentences)) for name, sentences in zip(index.ids, side, strict=True)]


def _read_side(prefix: Path, index: DocumentIndex, lang: str) -> Iterator[list[str]]:
    """The sentences of each document in one language."""
    path = text_path(prefix, lang)
    lines = read_lines(path)
    if len(lines) != index.n_sentences:
        raise UserError(f"{path}: {len(lines)} lines, but {index_path(prefix)} counts {index.n_sentences}")
    return index.split(lines)


def write_documents(prefix: Path, documents: Iterable[Document], *, src_lang: str, tgt_lang: str) -> None:
    """Write `PREFIX.{src}`, `PREFIX.{tgt}` and, last, `PREFIX.documents.tsv`."""
    documents = list(documents)
    for lang, side in ((src_lang, "src"), (tgt_lang, "tgt")):
        _write_side(text_path(prefix, lang), ((document.id, getattr(document, side)) for document in documents))
    _write_index_of(prefix, documents)


def write_monolingual_documents(prefix: Path, documents: Iterable[MonolingualDocument], *, lang: str) -> None:
    """Write `PREFIX.{lang}` and, last, `PREFIX.documents.tsv`."""
    documents = list(documents)
    _write_side(text_path(prefix, lang), ((document.id, document.sentences) for document in documents))
    _write_index_of(prefix, documents)


def _write_side(path: Path, documents: Iterable[tuple[str, Iterable[str]]]) -> None:
    with atomic_writer(path) as file:
        for name, sentences in documents:
            for sentence in sentences:
                if "\n" in sentence:
                    raise ValueError(f"document {name}: a sentence holds a line end")
                file.write(sentence + "\n")


def _write_index_of(prefix: Path, documents: Sequence[Document | MonolingualDocument]) -> None:
    index = DocumentIndex(tuple(d.id for d in documents), tuple(len(d) for d in documents))
    write_index(index_path(prefix), index)
