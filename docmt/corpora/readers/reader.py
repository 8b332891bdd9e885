"""Base classes for formats, and the collector for documents in all readers."""

import itertools
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import Field

from docmt.corpora.documents import Document
from docmt.errors import UserError
from docmt.settings import Settings

# JSON can contain lone surrogates, which cannot be written as UTF-8.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
SPACES = re.compile(r"[ \t\r\n]+")  # whole runs, since searching for a line end within runs takes quadratic time


def reject_lone_surrogates(*texts: str, where: str) -> None:
    """Raise UserError if a text cannot be written as UTF-8."""
    if any(map(LONE_SURROGATE.search, texts)):
        raise UserError(f"{where}: contains a lone surrogate (\\ud800 to \\udfff): fix its JSON")


# Role → file.
Files = Mapping[str, Path]

Value = TypeVar("Value")
FormatName = Annotated[Value, Field(description="Name of the format.")]


class CorpusFormat(Settings):
    """Settings and reader for a file format. All formats are listed in `docmt.corpora.readers.registry`."""

    holds: ClassVar[Literal["documents", "sentences", "suite", "generative", "files"]] = "documents"

    reader: FormatName[Any]

    def pick(self, files: Files, role: str) -> Path:
        """Return the file with a role."""
        if role not in files:
            roles = ", ".join(files) or "none"
            raise UserError(f"format {self.reader}: needs a file for {role!r}; the split has only {roles}")
        return files[role]


class DocumentFormat(CorpusFormat):
    """A format for documents in one or two languages."""

    n_languages: ClassVar[tuple[int, ...]] = (2,)
    """Possible numbers of languages."""

    @abstractmethod
    def read(self, files: Files, languages: Sequence[str]) -> "ReaderResult":
        """Read the documents."""


class SuiteFormat(CorpusFormat):
    """A format for test suites."""

    holds = "suite"

    @abstractmethod
    def convert(self, files: Files) -> Iterator[dict[str, Any]]:
        """Yield items in docmt's format (docs/files.md)."""


@dataclass
class ReaderCounts:
    """Counts of kept and omitted text. A sentence pair counts as one sentence.

    Attributes:
        empty_source, empty_target: kept pairs with only this side empty.
        empty_both: kept sentences with all sides empty.
        empty_documents: documents left out because they contain no sentences.
        joined_sentences: sentences with inner tabs or line ends, replaced by spaces.
        dropped: cause → sentences (or entries) left out.
        changed: change → altered or split entries.
    """

    documents: int = 0
    sentences: int = 0
    empty_source: int = 0
    empty_target: int = 0
    empty_both: int = 0
    one_sentence_documents: int = 0
    empty_documents: int = 0
    joined_sentences: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)

    def as_dict(self, *, n_sides: int) -> dict[str, Any]:
        """Return plain values for JSON. Monolingual text has no counts by side."""
        values = dict(vars(self))
        if not self.changed:
            del values["changed"]
        if n_sides == 1:
            del values["empty_source"], values["empty_target"]
            values["empty_sentences"] = values.pop("empty_both")
        return values


# Documents, which can be iterated once, and counts, which are complete after the last document.
ReaderResult = tuple[Iterable[Document], ReaderCounts]


class DocumentCollector:
    """Cleans sentences, names documents and counts, for all readers."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.counts = ReaderCounts()
        self._ids: Counter[str] = Counter()

    def add(self, document_id: str, rows: Iterable[tuple[str, ...]]) -> None:
        """Keep a document from rows with one sentence per side. Without rows, it counts as empty.

        Repeated ids get the suffixes `#2`, `#3`, ….
        """
        document = self.clean(document_id, list(rows))
        if document:
            # Ids must fit in one cell of the document index. Some corpora repeat names.
            name = " ".join(document_id.split()) or "unnamed"
            self._ids[name] += 1
            while self._ids[name] > 1:
                name = f"{name}#{self._ids[name]}"
                self._ids[name] += 1
            self.documents.append(replace(document, id=name))

    def clean(self, document_id: str, rows: list[tuple[str, ...]]) -> Document | None:
        """Clean and count the sentences of a document. None if it has no sentences."""
        reject_lone_surrogates(document_id, *itertools.chain.from_iterable(rows), where=f"document {document_id!a}")
        cleaned = [tuple(map(self._clean_sentence, row)) for row in rows]
        if not cleaned:
            self.counts.empty_documents += 1
            return None
        for src, *tgt in cleaned:
            self.counts.empty_both += not (src or any(tgt))
            self.counts.empty_source += not src and any(tgt)
            self.counts.empty_target += bool(src) and not all(tgt)
        self.counts.documents += 1
        self.counts.sentences += len(cleaned)
        self.counts.one_sentence_documents += len(cleaned) == 1
        return Document(document_id, tuple(zip(*cleaned, strict=True)))

    def drop(self, cause: str, n: int = 1) -> None:
        """Count omitted sentences or entries."""
        if n:
            self.counts.dropped[cause] += n

    def change(self, what: str) -> None:
        """Count an altered or split entry."""
        self.counts.changed[what] += 1

    def result(self, *, if_empty: str) -> ReaderResult:
        """Return the documents and counts."""
        if not self.documents:
            raise UserError(if_empty)
        return self.documents, self.counts

    def _clean_sentence(self, sentence: str) -> str:
        if "\ufeff" in sentence:  # concatenated files contain byte order marks
            self.change("byte order mark removed")
            sentence = sentence.replace("\ufeff", "")
        # Only these four. Other white space, such as U+2028, NEL and NBSP, is part of the sentence.
        sentence = sentence.strip(" \t\r\n")
        # Only runs with a tab or line end would break line-based files. Other spaces stay.
        joined = SPACES.sub(lambda run: " " if run[0].strip(" ") else run[0], sentence)
        self.counts.joined_sentences += joined != sentence
        return joined
