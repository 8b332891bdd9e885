"""What every reader fills: documents, and counts of what it read and left out."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from docmt.corpora.documents import Document
from docmt.errors import UserError

EDGES = " \t\r\n"
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
SPACES = re.compile(r"[ \t\r\n]+")  # all of a run: a pattern that looks for a break in it takes quadratic time


@dataclass
class ReaderCounts:
    """What a reader kept and left out. A sentence pair counts as one sentence.

    Attributes:
        documents: documents kept.
        sentences: sentences kept.
        empty_source: pairs kept of which only the source is empty.
        empty_target: pairs kept of which only the target is empty.
        empty_both: sentences kept that are empty on every side.
        one_sentence_documents: documents kept that have a single sentence.
        empty_documents: documents left out because the file gives them no sentences.
        joined_sentences: sentences with tabs or line ends inside, each replaced by one space.
        dropped: sentences (or entries) left out, by cause.
        changed: entries of the file that the reader altered or split, by what it did.
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
        """Plain values for a JSON file; those that make sense for one side or for two."""
        values = dataclasses.asdict(self) | {"dropped": dict(self.dropped)}
        del values["changed"]
        if self.changed:
            values["changed"] = dict(self.changed)
        if n_sides == 1:
            del values["empty_source"], values["empty_target"]
            values["empty_sentences"] = values.pop("empty_both")
        return values

    def reverse(self) -> None:
        """Make them the counts for the other direction."""
        self.empty_source, self.empty_target = self.empty_target, self.empty_source


ReaderResult = tuple[Iterable[Document], ReaderCounts]
"""What a reader returns: documents, which can be read once, and counts, which are complete when all have been read."""


class Collector:
    """Cleans sentences, names documents and counts, in the same way for all readers."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.counts = ReaderCounts()
        self._ids: Counter[str] = Counter()

    def add(self, document_id: str, rows: Iterable[tuple[str, ...]]) -> None:
        """Keep a document, or count it as empty when it has no rows: its sentences, one of each side together.

        An id that is already used gets `#2`, `#3`, … appended. Raises UserError when a sentence cannot be written as
        UTF-8.
        """
        if document := self._make(document_id, list(rows)):
            self.documents.append(replace(document, id=self._unique(document_id)))

    def stream(self, documents: Iterable[tuple[str, Iterable[tuple[str, ...]]]]) -> Iterator[Document]:
        """The documents that `add` would keep, one at a time; all ids must differ."""
        for document_id, rows in documents:
            if document := self._make(document_id, list(rows)):
                yield document

    def _make(self, document_id: str, rows: list[tuple[str, ...]]) -> Document | None:
        """Clean and count the sentences of a document; None if there are none."""
        if any(HALF_CHARACTER.search(sentence) for row in rows for sentence in row):
            raise UserError(
                f"document {document_id}: a sentence contains half a character (\\ud800 to \\udfff): fix its JSON"
            )
        cleaned = [tuple(map(self._clean, row)) for row in rows]
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
        """Count what is left out."""
        if n:
            self.counts.dropped[cause] += n

    def change(self, what: str, is_changed: bool = True) -> None:
        """Count what is altered or split."""
        if is_changed:
            self.counts.changed[what] += 1

    def result(self, *, if_empty: str) -> ReaderResult:
        """Return the documents and counts. Raises UserError with the message `if_empty` when there are no documents."""
        if not self.documents:
            raise UserError(if_empty)
        return self.documents, self.counts

    def _clean(self, sentence: str) -> str:
        """Strip spaces, tabs and line ends; replace a tab or line end inside by one space; drop byte order marks.

        Files that were joined have such marks inside. All other characters stay, U+2028, NEL and NBSP included: they
        belong to the sentence.
        """
        if "\ufeff" in sentence:
            self.change("byte order mark removed")
            sentence = sentence.replace("\ufeff", "")
        sentence = sentence.strip(EDGES)
        joined = SPACES.sub(lambda run: " " if run[0].strip(" ") else run[0], sentence)
        self.counts.joined_sentences += joined != sentence
        return joined

    def _unique(self, document_id: str) -> str:
        """A unique id that fits in one cell of the document index."""
        name = " ".join(document_id.split()) or "unnamed"
        while True:
            self._ids[name] += 1
            if self._ids[name] == 1:
                return name
            name = f"{name}#{self._ids[name]}"
