"""Test set references: split text, additional plain text files, and NIST and WMT refsets."""

from collections.abc import Sequence
from itertools import chain, groupby
from pathlib import Path

from docmt.corpora.documents import DocumentIndex, index_path, read_index, text_path
from docmt.corpora.readers.sgml import read_refsets
from docmt.errors import UserError
from docmt.files import read_lines

MARKED = (".sgm", ".sgml", ".xml")  # refset file suffixes


def read_reference(prefix: Path, *, languages: Sequence[str]) -> tuple[DocumentIndex, list[str]]:
    """Read a split's document index, and raw sentences in the last language. All sides must have as many lines."""
    index = read_index(index_path(prefix))
    lines: list[str] = []
    for lang in languages:
        path = text_path(prefix, lang)
        lines = read_lines(path)
        if len(lines) != index.n_sentences:
            raise UserError(
                f"{path}: {len(lines)} lines, but {index_path(prefix)} lists {index.n_sentences} sentences; line "
                f"{min(len(lines), index.n_sentences) + 1} has no counterpart"
            )
    if not lines:
        raise UserError(f"{text_path(prefix, languages[-1])}: contains no sentences to score")
    return index, lines


def read_user_references(paths: Sequence[Path]) -> tuple[DocumentIndex, list[list[str]], list[bool]]:
    """Read user-supplied references for a test set without a study.

    The first file has one line per sentence. PREFIX.documents.tsv next to it contains the document boundaries. Without
    such a file, blank lines are document boundaries.

    Returns:
        The document index, sentences by reference, and True per blank line between documents in the first file.
    """
    first, *others = paths
    refuse_markup(first)
    lines = [line.removesuffix("\r") for line in read_lines(first)]
    beside = index_path(first.with_name(first.name.removesuffix(".gz")).with_suffix(""))
    if beside.exists():
        index = read_index(beside)
        blank = [False] * len(lines)
    else:
        blank = [not line.strip() for line in lines]
        lengths = []
        for is_blank, run in groupby(blank):
            if not is_blank:
                lengths.append(len(list(run)))
        index = DocumentIndex(tuple(map(str, range(1, len(lengths) + 1))), tuple(lengths))
    reference = [line for line, is_blank in zip(lines, blank, strict=True) if not is_blank]
    if len(reference) != index.n_sentences:
        raise UserError(f"{first}: {len(reference)} lines, but {beside} lists {index.n_sentences} sentences")
    if not reference:
        raise UserError(f"{first}: contains no sentences to score")
    return index, [reference, *read_more_references(others, index, reference, blank)], blank


def refuse_markup(path: Path) -> None:
    """Raise UserError for a file whose markup would be scored as text."""
    if path.suffix.lower() in MARKED:
        raise UserError(f"{path}: is SGML or XML: write its segments as text, one per line")


def read_sentences(path: Path, blank: Sequence[bool] = ()) -> list[str]:
    """Read the lines in a file. The reference's blank lines are removed if both files have equally many lines."""
    lines = [line.removesuffix("\r") for line in read_lines(path)]
    if len(lines) != len(blank):
        return lines
    sentences = []
    for number, (line, is_blank) in enumerate(zip(lines, blank, strict=True), start=1):
        if not is_blank:
            sentences.append(line)
        elif line.strip():
            raise UserError(f"{path}: line {number} has text, but this line of the reference is blank: align the files")
    return sentences


def read_more_references(
    paths: Sequence[Path], index: DocumentIndex, reference: Sequence[str], blank: Sequence[bool] = ()
) -> list[list[str]]:
    """Read additional references. Plain files come first and can have the first reference's blank lines.

    A refset that equals the known reference is left out.
    """
    marked = []
    texts = []
    for path in paths:
        if path.suffix.lower() in MARKED:
            marked.append(path)
            continue
        lines = read_sentences(path, blank)
        if len(lines) != index.n_sentences:
            raise UserError(f"{path}: {len(lines)} lines, but the test set has {index.n_sentences} sentences")
        texts.append(lines)
    for text in _read_marked(marked, index):
        if text != reference:
            texts.append(text)
    return texts


def _read_marked(paths: Sequence[Path], index: DocumentIndex) -> list[list[str]]:
    if not paths:
        return []
    where = ", ".join(map(str, paths))
    by_document: dict[str, list[tuple[str, ...]]] = {}
    for refset in chain.from_iterable(map(read_refsets, paths)):
        for document in refset:
            by_document.setdefault(document.id, []).append(document.src)
    first = index.ids[0]
    texts: list[list[str]] = [[] for _ in _versions(by_document, first)]
    for name, length in index:
        versions = _versions(by_document, name)
        if not versions:
            raise UserError(f"{where}: contains no reference for document {name} of the test set")
        if len(versions) != len(texts):
            raise UserError(f"{where}: {len(texts)} references for document {first}, but {len(versions)} for {name}")
        for text, sentences in zip(texts, versions, strict=True):
            if len(sentences) != length:
                problem = f"{len(sentences)} segments in document {name}, but {length} sentences in the test set"
                raise UserError(f"{where}: {problem}")
            text += sentences
    return texts


def _versions(by_document: dict[str, list[tuple[str, ...]]], name: str) -> list[tuple[str, ...]]:
    # In a dataset, `CORPUS.SPLIT/` precedes document names from refsets.
    return by_document.get(name) or by_document.get(name.partition("/")[2], [])
