"""One file per language: matching the documents and sentences of its sides."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from typing_extensions import override

from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, ReaderResult
from docmt.errors import UserError
from docmt.files import read_lines


@dataclass
class SideDocument:
    """One document of one language.

    Attributes:
        id: its name in the file, or None when the format has no names.
        line: line of the file where it starts, from 1.
        lines: the line of each sentence, from 1.
        keys: the name of each sentence within the document (`<seg id>`); empty when the format has none.
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


# A file of one language, and its documents.
Side = tuple[Path, Sequence[SideDocument]]


class SideFormat(DocumentFormat):
    """A format with a file per language, in which documents and sentences correspond by their order or names."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        return align([(path, self.side_documents(path)) for path in paths])

    @abstractmethod
    def side_documents(self, path: Path) -> list[SideDocument]:
        """The documents of one language."""


def align(sides: Sequence[Side], collector: DocumentCollector | None = None) -> ReaderResult:
    """Make documents of one side, or of two whose documents and sentences correspond."""
    collector = collector or DocumentCollector()
    for path, documents in sides:
        if not any(document.sentences for document in documents):
            raise UserError(f"{path}: contains no sentences")
    if len(sides) == 2:
        sides = [sides[0], _in_source_order(*sides)]
    paths, columns = zip(*sides, strict=True)
    # Without strict: a side with more documents is reported last, as its cause is often an earlier document.
    for number, documents in enumerate(zip(*columns, strict=False), start=1):
        name = next((document.id for document in documents if document.id), f"{number:05d}")
        if len(documents) == 2:
            _check_sentences(name, paths, documents)
        collector.add(name, zip(*(document.sentences for document in documents), strict=True))
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        longer, shortest = counts.index(max(counts)), min(counts)
        raise UserError(
            f"{counts[0]} documents in {paths[0]}, {counts[1]} in {paths[1]}: document {shortest + 1} "
            f"({paths[longer]} line {columns[longer][shortest].line}) has no counterpart"
        )
    return collector.documents, collector.counts


def _in_source_order(src: Side, tgt: Side) -> Side:
    """The target side with its documents in the order of the source side if both have names, else in file order."""
    (src_path, src_documents), (tgt_path, tgt_documents) = src, tgt
    src_ids, tgt_ids = ([document.id for document in documents] for _, documents in (src, tgt))
    if src_ids == tgt_ids or None in src_ids or None in tgt_ids:
        return tgt
    by_id = {document.id: document for document in tgt_documents}
    # Duplicate names cannot be matched: then the order must be the same.
    if len(by_id) != len(tgt_ids) or len(set(src_ids)) != len(src_ids):
        number = next(i for i, (a, b) in enumerate(zip_longest(src_ids, tgt_ids)) if a != b)
        place = src_documents[min(number, len(src_ids) - 1)]
        raise UserError(f"{src_path} line {place.line}: document {place.id} is in a different position in {tgt_path}")
    for (path, documents), other, known in ((src, tgt_path, set(tgt_ids)), (tgt, src_path, set(src_ids))):
        if lost := next((document for document in documents if document.id not in known), None):
            raise UserError(f"{path} line {lost.line}: document {lost.id} is not in {other}")
    return tgt_path, [by_id[name] for name in src_ids]


def _check_sentences(name: str, paths: Sequence[Path], documents: Sequence[SideDocument]) -> None:
    """Raise UserError when the sentences of a document have other names on the other side, or another number."""
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
    # The first sentence without a counterpart, or the line after the last sentence of the shorter side.
    shorter = min(n_src, n_tgt)
    src_line, tgt_line = ([*side.lines, (side.lines or [side.line])[-1] + 1][shorter] for side in (src, tgt))
    raise UserError(
        f"document {name}: {n_src} sentences in {src_path}, {n_tgt} in {tgt_path}; they diverge no later than "
        f"line {src_line} of the first file and line {tgt_line} of the second: align the files"
    )


def check_equal(path: Path, n_lines: int, other: Path, n_other: int, *, unit: str = "") -> None:
    """Raise UserError when a file has not as many lines as another has lines or units."""
    if n_lines != n_other:
        raise UserError(
            f"{n_lines} lines in {path}, {n_other}{unit and ' '}{unit} in {other}: line {min(n_lines, n_other) + 1} "
            "is the first without a counterpart"
        )


def read_equal(*paths: Path) -> list[list[str]]:
    """The lines of files that must have equally many."""
    texts = [read_lines(path) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        check_equal(paths[0], len(texts[0]), path, len(lines))
    return texts
