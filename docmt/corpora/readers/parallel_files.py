"""Formats with one file per language, whose documents and sentences are matched."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from typing_extensions import override

from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, ReaderResult
from docmt.errors import UserError
from docmt.files import read_lines


@dataclass
class SideDocument:
    """A document in one language.

    Attributes:
        id: name in the file, or None if the format has no names.
        line: first line in the file, from 1.
        lines: line number per sentence, from 1.
        keys: sentence names in the document (`<seg id>`), if any.
    """

    id: str | None
    line: int
    sentences: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def add(self, sentence: str, *, line: int) -> None:
        """Append a sentence."""
        self.sentences.append(sentence)
        self.lines.append(line)


# A file in one language, and its documents.
Side = tuple[Path, Sequence[SideDocument]]


class SideFormat(DocumentFormat):
    """A format with one file per language, where documents and sentences are matched by order or name."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        sides = []
        for path in paths:
            sides.append((path, self.side_documents(path)))
        return align(sides)

    @abstractmethod
    def side_documents(self, path: Path) -> list[SideDocument]:
        """Read the documents in one language."""


def align(sides: Sequence[Side], collector: DocumentCollector | None = None) -> ReaderResult:
    """Build documents from one side, or from two sides with matching documents and sentences."""
    collector = collector or DocumentCollector()
    for path, documents in sides:
        if not any(document.sentences for document in documents):
            raise UserError(f"{path}: contains no sentences")
    if len(sides) == 2:
        sides = [sides[0], _in_source_order(*sides)]
    paths, columns = zip(*sides, strict=True)
    # Without strict: different numbers of documents are reported last, since earlier documents are often the cause.
    for number, documents in enumerate(zip(*columns, strict=False), start=1):
        name = documents[0].id or documents[-1].id or f"{number:05d}"
        if len(documents) == 2:
            _check_sentences(name, paths, documents)
        collector.add(name, zip(*(document.sentences for document in documents), strict=True))
    counts = list(map(len, columns))
    if len(set(counts)) > 1:
        longer = counts.index(max(counts))
        shortest = min(counts)
        raise UserError(
            f"{counts[0]} documents in {paths[0]}, {counts[1]} in {paths[1]}: document {shortest + 1} "
            f"({paths[longer]} line {columns[longer][shortest].line}) has no counterpart"
        )
    return collector.documents, collector.counts


def _in_source_order(src: Side, tgt: Side) -> Side:
    """Sort target documents like source documents if both have names. Otherwise, keep the file order."""
    (src_path, src_documents), (tgt_path, tgt_documents) = src, tgt
    src_ids = [document.id for document in src_documents]
    tgt_ids = [document.id for document in tgt_documents]
    if src_ids == tgt_ids or None in src_ids or None in tgt_ids:
        return tgt
    by_id = {document.id: document for document in tgt_documents}
    # Duplicate names cannot be matched, so the order must be the same.
    if len(by_id) != len(tgt_ids) or len(set(src_ids)) != len(src_ids):
        number = 0
        while number < min(len(src_ids) - 1, len(tgt_ids)) and src_ids[number] == tgt_ids[number]:
            number += 1
        document = src_documents[number]
        raise UserError(
            f"{src_path} line {document.line}: document {document.id} is in a different position in {tgt_path}"
        )
    for (path, documents), other, ids in ((src, tgt_path, set(tgt_ids)), (tgt, src_path, set(src_ids))):
        for document in documents:
            if document.id not in ids:
                raise UserError(f"{path} line {document.line}: document {document.id} is not in {other}")
    return tgt_path, [by_id[name] for name in src_ids]


def _check_sentences(name: str, paths: Sequence[Path], documents: Sequence[SideDocument]) -> None:
    """Raise UserError if both sides of a document have different sentence names or numbers of sentences."""
    (src_path, tgt_path), (src, tgt) = paths, documents
    for index, (src_key, tgt_key) in enumerate(zip(src.keys, tgt.keys, strict=False)):
        if src_key != tgt_key:
            raise UserError(
                f"document {name}: sentence {src_key} ({src_path} line {src.lines[index]}) is paired with "
                f"sentence {tgt_key} ({tgt_path} line {tgt.lines[index]}): a sentence is missing on one side"
            )
    n_src, n_tgt = len(src.sentences), len(tgt.sentences)
    if n_src == n_tgt:
        return
    sides = {"first": src, "second": tgt}
    shorter, longer = sorted(sides, key=lambda name: len(sides[name].sentences))
    last_line = sides[shorter].lines[-1] if sides[shorter].lines else sides[shorter].line
    first_left = sides[longer].lines[min(n_src, n_tgt)]
    raise UserError(
        f"document {name}: {n_src} sentences in {src_path}, {n_tgt} in {tgt_path}; they diverge at or before line "
        f"{first_left} of the {longer} file; the document ends after line {last_line} of the {shorter}: align the files"
    )


def check_equal(path: Path, n_lines: int, other: Path, n_other: int, *, unit: str = "") -> None:
    """Raise UserError if the number of lines differs from the number of lines or units in another file."""
    if n_lines != n_other:
        raise UserError(
            f"{n_lines} lines in {path}, {n_other}{unit and ' '}{unit} in {other}: line {min(n_lines, n_other) + 1} "
            "is the first without a counterpart"
        )


def read_equal(*paths: Path) -> list[list[str]]:
    """Read the lines of files. Raises UserError if their numbers differ."""
    texts = list(map(read_lines, paths))
    for path, lines in zip(paths, texts, strict=True):
        check_equal(paths[0], len(texts[0]), path, len(lines))
    return texts
