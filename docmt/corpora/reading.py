"""Reading a split: from files to documents, checked against what the catalogue expects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from docmt.corpora.catalogue import ReadableCorpus, Split
from docmt.corpora.documents import Document, write_documents
from docmt.corpora.readers.build import read
from docmt.corpora.readers.collector import ReaderCounts, ReaderResult
from docmt.errors import UserError
from docmt.files import write_json
from docmt.logs import progress


def files_by_role(split: Split, folder: Path) -> dict[str, Path]:
    """The files of a split below a folder, by role."""
    return {role: Path(folder) / name for role, name in split.files.items()}


def read_split(
    corpus: ReadableCorpus, split_name: str, *, files: Mapping[str, Path], languages: Sequence[str], where: str
) -> ReaderResult:
    """Read one split from its files by role, in the direction of the languages; `where` names the corpus in messages.

    Raises UserError when the corpus has other languages or a file is bad, and after the last document when the counts
    differ from those expected.
    """
    if sorted(languages) != sorted(corpus.languages):
        raise UserError(
            f"{where} is in {' and '.join(corpus.languages)}, not {' and '.join(languages)}: "
            f"give --languages {' '.join(corpus.languages)}"
        )
    split = corpus.split(split_name, where=where)
    documents, counts = read(files, form=split.format or corpus.format, languages=corpus.languages)
    is_reversed = list(languages) != corpus.languages

    def checked() -> Iterator[Document]:
        for document in progress(documents, label=f"read {where} {split_name}", unit="documents"):
            yield document.reversed() if is_reversed else document
        check_counts(split, counts.documents, counts.sentences, where=f"{where} {split_name}")
        if is_reversed:
            counts.reverse()

    return checked(), counts


def check_counts(split: Split, n_documents: int, n_sentences: int, *, where: str) -> None:
    """Raises UserError when the counts are not those expected."""
    for name, found, expected in (
        ("documents", n_documents, split.documents),
        ("sentences", n_sentences, split.sentences),
    ):
        if expected is not None and found != expected:
            raise UserError(f"{where}: {found:,} {name} read, {expected:,} expected: the files are a different version")


def write_split(
    prefix: Path,
    documents: Iterable[Document],
    counts: ReaderCounts,
    *,
    languages: Sequence[str],
    origin: dict[str, str],
) -> None:
    """Write `PREFIX.{lang}` for each language, `PREFIX.documents.tsv` and, last, `PREFIX.counts.json`."""
    write_documents(prefix, documents, languages=languages)
    write_json(Path(f"{prefix}.counts.json"), counts.as_dict(n_sides=len(languages)) | {"origin": origin})
