"""What every reader fills: the documents, and the counts of all that was met or left out."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from docmt.corpora.documents import Document
from docmt.errors import UserError

EDGES = " \t\r\n"
HALF_CHARACTER = re.compile("[\ud800-\udfff]")
INNER_BREAK = re.compile(r"[ \t]*[\t\r\n][ \t\r\n]*")


@dataclass
class Counts:
    """What a reader met.

    Attributes:
        documents: documents kept.
        sentences: sentence pairs kept.
        empty_source: kept pairs whose source side alone is empty.
        empty_target: kept pairs whose target side alone is empty.
        empty_both: kept pairs of two empty sentences.
        one_sentence_documents: documents of a single pair.
        empty_documents: documents announced by the file that hold no sentence; they are left out.
        joined_sentences: sentences with a tab or a line end inside, which became one blank.
        dropped: sentences (or entries) left out, by cause.
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

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return dataclasses.asdict(self) | {"dropped": dict(self.dropped)}

    def swapped(self) -> "Counts":
        """The same counts for the reverse direction."""
        return dataclasses.replace(self, empty_source=self.empty_target, empty_target=self.empty_source)


class Collector:
    """Cleans sentences, names documents and counts, so that all readers do it alike."""

    def __init__(self) -> None:
        self.documents: list[Document] = []
        self.counts = Counts()
        self._ids: Counter[str] = Counter()

    def add(self, document_id: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Keep a document, or count it when it holds no pair. An id that was used before gets `#2`, `#3`, …

        Raises UserError when a sentence cannot be written as UTF-8.
        """
        pairs = list(pairs)
        if any(HALF_CHARACTER.search(sentence) for pair in pairs for sentence in pair):
            raise UserError(
                f"document {document_id}: a sentence holds half a character (\\ud800 to \\udfff): mend its JSON"
            )
        cleaned = [(self._clean(src), self._clean(tgt)) for src, tgt in pairs]
        if not cleaned:
            self.counts.empty_documents += 1
            return
        for src, tgt in cleaned:
            self.counts.empty_both += not src and not tgt
            self.counts.empty_source += not src and bool(tgt)
            self.counts.empty_target += bool(src) and not tgt
        self.counts.documents += 1
        self.counts.sentences += len(cleaned)
        self.counts.one_sentence_documents += len(cleaned) == 1
        sources, targets = zip(*cleaned, strict=True)
        self.documents.append(Document(self._unique(document_id), sources, targets))

    def drop(self, cause: str, n: int = 1) -> None:
        """Count what is left out."""
        if n:
            self.counts.dropped[cause] += n

    def _clean(self, sentence: str) -> str:
        """Strip blanks and line ends; a tab or line end inside becomes one blank.

        Everything else stays, U+2028, NEL and NBSP included: they are characters of the sentence.
        """
        sentence = sentence.strip(EDGES)
        joined, n = INNER_BREAK.subn(" ", sentence)
        self.counts.joined_sentences += n > 0
        return joined

    def _unique(self, document_id: str) -> str:
        """An id that fits one cell of the document index and stands only once."""
        name = " ".join(document_id.split()) or "unnamed"
        while True:
            self._ids[name] += 1
            if self._ids[name] == 1:
                return name
            name = f"{name}#{self._ids[name]}"
