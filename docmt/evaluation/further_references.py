"""Further references of a test split: plain lines, or the refsets of NIST and WMT."""

from collections.abc import Sequence
from pathlib import Path

from docmt.corpora.documents import DocumentIndex
from docmt.corpora.readers.sgml import read_refsets
from docmt.errors import UserError
from docmt.files import read_lines

MARKED = (".sgm", ".sgml", ".xml")
"""Suffixes of files with refsets."""


def read_sentences(path: Path, blank: Sequence[bool]) -> list[str]:
    """The lines of a file; without the blank ones of the reference, if it has as many lines as the reference.

    Raises UserError when a line has text where the reference has none.
    """
    lines = [line.removesuffix("\r") for line in read_lines(path)]
    if len(lines) != len(blank):
        return lines
    for number, (line, is_blank) in enumerate(zip(lines, blank, strict=True), start=1):
        if is_blank and line.strip():
            raise UserError(f"{path}: line {number} has text, but the reference has a blank line there: align them")
    return [line for line, is_blank in zip(lines, blank, strict=True) if not is_blank]


def read_more_references(
    paths: Sequence[Path], index: DocumentIndex, reference: Sequence[str], blank: Sequence[bool] = ()
) -> list[list[str]]:
    """Further references of a split; files with lines come first, which may have the blank lines of the first one.

    A refset that equals the known reference is left out. Raises UserError when sentences or documents are missing, or
    when documents have different numbers of references.
    """
    marked = [path for path in paths if path.suffix.lower() in MARKED]
    plain = [path for path in paths if path not in marked]
    texts = [read_sentences(path, blank) for path in plain]
    for path, lines in zip(plain, texts, strict=True):
        if len(lines) != index.n_sentences:
            raise UserError(f"{path}: {len(lines)} lines, but the test set has {index.n_sentences} sentences")
    return texts + [text for text in _read_marked(marked, index) if text != reference]


def _read_marked(paths: Sequence[Path], index: DocumentIndex) -> list[list[str]]:
    if not paths:
        return []
    where = ", ".join(map(str, paths))
    found: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        for documents in read_refsets(path):
            for document in documents:
                found.setdefault(document.id, []).append(document.src)
    first = index.ids[0]
    texts: list[list[str]] = [[] for _ in _versions(found, first)]
    for name, length in index:
        versions = _versions(found, name)
        if not versions:
            raise UserError(f"{where}: no reference for document {name} of the test set")
        if len(versions) != len(texts):
            raise UserError(f"{where}: {len(texts)} references for document {first}, {len(versions)} for {name}")
        for text, sentences in zip(texts, versions, strict=True):
            if len(sentences) != length:
                raise UserError(
                    f"{where}: {len(sentences)} segments in document {name}, but {length} sentences in the test set"
                )
            text += sentences
    return texts


def _versions(found: dict[str, list[tuple[str, ...]]], name: str) -> list[tuple[str, ...]]:
    # In a dataset, `CORPUS.SPLIT/` precedes the name that a document has in its refsets.
    return found.get(name) or found.get(name.partition("/")[2], [])
