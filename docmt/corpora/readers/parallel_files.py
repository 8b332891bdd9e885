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

    def add(self, sentence: str, *, line: int, key: str | None = None) -> None:
        """Append a sentence."""
        self.sentences.append(sentence)
        self.lines.append(line)
        if key is not None:
            self.keys.append(key)


@dataclass(frozen=True)
class SideFile:
    """All documents of one language, and their file."""

    path: Path
    documents: Sequence[SideDocument]


class SideFormat(DocumentFormat):
    """A format with a file per language, in which documents and sentences correspond by their order or names."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        paths = [self.pick(files, lang) for lang in languages]
        return align([SideFile(path, self.side_documents(path)) for path in paths])

    @abstractmethod
    def side_documents(self, path: Path) -> list[SideDocument]:
        """The documents of one language."""


def align(sides: Sequence[SideFile], collector: DocumentCollector | None = None) -> ReaderResult:
    """Make documents of one side, or of two whose documents and sentences correspond.

    Raises UserError that names both files, the document and the first bad line when a document or a sentence has
    no counterpart, or when a side has no sentences.
    """
    collector = collector or DocumentCollector()
    for side in sides:
        if not any(document.sentences for document in side.documents):
            raise UserError(f"{side.path}: contains no sentences")
    if len(sides) == 2:
        src, tgt = sides
        # Without strict: a side with more documents is reported last, as its cause is often an earlier document.
        pairs = list(zip(src.documents, _in_source_order(src, tgt), strict=False))
        for number, pair in enumerate(pairs, start=1):
            _check_pair(_name(number, pair), src.path, pair[0], tgt.path, pair[1])
        _check_numbers(src, tgt)
    else:
        pairs = [(document,) for document in sides[0].documents]
    for number, pair in enumerate(pairs, start=1):
        collector.add(_name(number, pair), zip(*(document.sentences for document in pair), strict=True))
    return collector.documents, collector.counts


def _name(number: int, pair: Sequence[SideDocument]) -> str:
    return next((document.id for document in pair if document.id), f"{number:05d}")


def _in_source_order(src: SideFile, tgt: SideFile) -> Sequence[SideDocument]:
    """The target documents in the order of the source documents if both have names, else in file order."""
    src_ids, tgt_ids = ([document.id for document in side.documents] for side in (src, tgt))
    if src_ids == tgt_ids or None in src_ids or None in tgt_ids:
        return tgt.documents
    by_id = {document.id: document for document in tgt.documents}
    # Duplicate names cannot be matched: then the order must be the same.
    if len(by_id) != len(tgt_ids) or len(set(src_ids)) != len(src_ids):
        number = next(i for i, (a, b) in enumerate(zip_longest(src_ids, tgt_ids)) if a != b)
        place = src.documents[min(number, len(src_ids) - 1)]
        raise UserError(f"{src.path} line {place.line}: document {place.id} is in a different position in {tgt.path}")
    for side, other in ((src, tgt), (tgt, src)):
        known = {document.id for document in other.documents}
        if lost := next((document for document in side.documents if document.id not in known), None):
            raise UserError(f"{side.path} line {lost.line}: document {lost.id} is not in {other.path}")
    return [by_id[name] for name in src_ids]


def _check_pair(name: str, src_path: Path, src: SideDocument, tgt_path: Path, tgt: SideDocument) -> None:
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


def _check_numbers(src: SideFile, tgt: SideFile) -> None:
    n_src, n_tgt = len(src.documents), len(tgt.documents)
    if n_src != n_tgt:
        longer, shorter = (src, tgt) if n_src > n_tgt else (tgt, src)
        first = longer.documents[len(shorter.documents)]
        raise UserError(
            f"{n_src} documents in {src.path}, {n_tgt} in {tgt.path}: document {len(shorter.documents) + 1} "
            f"({longer.path} line {first.line}) has no counterpart"
        )


def check_equal(src: Path, n_src: int, tgt: Path, n_tgt: int) -> None:
    """Raise UserError when two files have different numbers of lines."""
    if n_src != n_tgt:
        raise UserError(
            f"{n_src} lines in {src}, {n_tgt} in {tgt}: line {min(n_src, n_tgt) + 1} is the first without a counterpart"
        )


def read_equal(*paths: Path) -> list[list[str]]:
    """The lines of files that must have equally many."""
    texts = [read_lines(path) for path in paths]
    for path, lines in zip(paths, texts, strict=True):
        check_equal(paths[0], len(texts[0]), path, len(lines))
    return texts
