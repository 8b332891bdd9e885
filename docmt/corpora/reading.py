"""Reading a split: from files to aligned documents, checked against what the catalogue expects."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docmt.corpora.catalogue import ReadableCorpus, Split
from docmt.corpora.documents import Document, MonolingualDocument, write_documents, write_monolingual_documents
from docmt.corpora.readers.build import read
from docmt.corpora.readers.collector import Counts
from docmt.corpora.readers.monolingual import read_monolingual
from docmt.errors import UserError
from docmt.files import write_json


def files_by_role(split: Split, folder: Path) -> dict[str, Path]:
    """The files of a split below a folder, by role."""
    return {role: Path(folder) / name for role, name in split.files.items()}


def read_split(
    corpus: ReadableCorpus,
    split_name: str,
    *,
    files: Mapping[str, Path],
    src_lang: str,
    tgt_lang: str,
    where: str,
) -> tuple[list[Document], Counts]:
    """Read one split in the wanted direction.

    Raises UserError when the corpus has other languages, a file is bad, or the counts differ from those expected.
    """
    if {src_lang, tgt_lang} != set(corpus.languages) or src_lang == tgt_lang:
        raise UserError(f"{where} holds {' and '.join(corpus.languages)}, not {src_lang} and {tgt_lang}")
    split = corpus.split(split_name, where=where)
    documents, counts = read(files, form=split.format or corpus.format, languages=tuple(corpus.languages))
    check_counts(split, counts.documents, counts.sentences, where=f"{where} {split_name}")
    if src_lang != corpus.languages[0]:
        documents = [dataclasses.replace(document, src=document.tgt, tgt=document.src) for document in documents]
        counts = counts.swapped()
    return documents, counts


def read_monolingual_split(
    corpus: ReadableCorpus, split_name: str, *, files: Mapping[str, Path], where: str
) -> tuple[list[MonolingualDocument], dict[str, Any]]:
    """Read one split of a corpus of one language.

    Raises UserError when it holds two languages, a file is bad, or the counts differ from those expected.
    """
    if len(corpus.languages) != 1:
        raise UserError(f"{where} holds {' and '.join(corpus.languages)}: use `docmt corpora read`; one side can do")
    split = corpus.split(split_name, where=where)
    documents, counts = read_monolingual(files, form=split.format or corpus.format, lang=corpus.languages[0])
    check_counts(split, counts["documents"], counts["sentences"], where=f"{where} {split_name}")
    return documents, counts


def check_counts(split: Split, n_documents: int, n_sentences: int, *, where: str) -> None:
    """Raises UserError when the counts are not those expected."""
    for name, found, expected in (
        ("documents", n_documents, split.documents),
        ("sentences", n_sentences, split.sentences),
    ):
        if expected is not None and found != expected:
            raise UserError(f"{where}: {found:,} {name} read, {expected:,} expected: the files are another version")


def write_split(
    prefix: Path, documents: list[Document], counts: Counts, *, src_lang: str, tgt_lang: str, origin: dict[str, str]
) -> None:
    """Write `PREFIX.{lang}`, `PREFIX.counts.json` and, last, `PREFIX.documents.tsv`."""
    write_json(Path(f"{prefix}.counts.json"), counts.as_dict() | {"origin": origin})
    write_documents(prefix, documents, src_lang=src_lang, tgt_lang=tgt_lang)


def write_monolingual_split(
    prefix: Path, documents: list[MonolingualDocument], counts: dict[str, Any], *, lang: str, origin: dict[str, str]
) -> None:
    """Write `PREFIX.{lang}`, `PREFIX.counts.json` and, last, `PREFIX.documents.tsv`."""
    write_json(Path(f"{prefix}.counts.json"), counts | {"origin": origin})
    write_monolingual_documents(prefix, documents, lang=lang)
