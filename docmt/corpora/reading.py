"""Reading a split: from files to documents, checked against what the catalogue expects."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from docmt.corpora.catalogue import ReadableCorpus, Split
from docmt.corpora.documents import Document, write_documents
from docmt.corpora.readers.build import read
from docmt.corpora.readers.collector import ReaderCounts, ReaderResult
from docmt.errors import UserError
from docmt.files import write_json


def files_by_role(split: Split, folder: Path) -> dict[str, Path]:
    """The files of a split below a folder, by role."""
    return {role: Path(folder) / name for role, name in split.files.items()}


def read_split(
    corpus: ReadableCorpus, split_name: str, *, files: Mapping[str, Path], languages: Sequence[str], where: str
) -> ReaderResult:
    """Read one split from its files by role, in the direction of the languages; `where` names the corpus in messages.

    Raises UserError when the corpus has other languages, a file is bad, or the counts differ from those expected.
    """
    if sorted(languages) != sorted(corpus.languages):
        raise UserError(
            f"{where} is in {' and '.join(corpus.languages)}, not {' and '.join(languages)}: "
            f"give --languages {' '.join(corpus.languages)}"
        )
    split = corpus.split(split_name, where=where)
    documents, counts = read(files, form=split.format or corpus.format, languages=corpus.languages)
    check_counts(split, counts.documents, counts.sentences, where=f"{where} {split_name}")
    if list(languages) != corpus.languages:
        documents, counts = [document.reversed() for document in documents], counts.reversed()
    return documents, counts


def check_counts(split: Split, n_documents: int, n_sentences: int, *, where: str) -> None:
    """Raises UserError when the counts are not those expected."""
    for name, found, expected in (
        ("documents", n_documents, split.documents),
        ("sentences", n_sentences, split.sentences),
    ):
        if expected is not None and found != expected:
            raise UserError(f"{where}: {found:,} {name} read, {expected:,} expected: the files are a different version")


def write_split(
    prefix: Path, documents: list[Document], counts: ReaderCounts, *, languages: Sequence[str], origin: dict[str, str]
) -> None:
    """Write `PREFIX.{lang}` for each language, `PREFIX.counts.json` and, last, `PREFIX.documents.tsv`."""
    write_json(Path(f"{prefix}.counts.json"), counts.as_dict(n_sides=len(languages)) | {"origin": origin})
    write_documents(prefix, documents, languages=languages)
