"""Problems in user-supplied corpora that readers accept: untranslated text, other languages, duplicates."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from docmt.corpora.documents import Document
from docmt.errors import UserError
from docmt.languages import language_of

HEAD_SENTENCES = 5000
"""Number of sentences per side for language detection."""
MIN_WORDS = 50
EQUAL_PERCENT = 10.0
"""Minimum percentage of target sentences equal to their source for a warning. Names and numbers are rarer."""
ONE_SIDED_PERCENT = 10.0
"""Minimum percentage of pairs with one empty side for a warning."""
LONG_CHARACTERS = 10_000
"""Minimum length of a sentence for a warning. Longer sentences are probably several lines in one."""
WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+")
FREQUENT = {
    "ar": "في من على أن إلى لا هذا ما",
    "cs": "je se na že není jsem ale jako",
    "da": "og det er ikke jeg af til på",
    "de": "der die und das nicht ist ein sie",
    "en": "the of and to is that it was",
    "es": "el los las que y una por del",
    "fi": "ja on ei että hän oli mutta ovat",
    "fr": "le les des et est une dans que",
    "hu": "a az és nem hogy egy van ez",
    "it": "il che di della per una sono non",
    "ja": "の に は を た が で て",
    "nl": "de het een van en niet zijn dat",
    "pl": "w nie na się że jest do to",
    "pt": "o os que uma não para do em",
    "ro": "și în nu că este la cu pe",
    "ru": "и в не на что он как это",
    "sv": "och att det är på inte jag som",
    "tr": "ve bir bu için ne çok daha ama",
    "uk": "і та що не на як він це",
    "zh": "的 是 了 不 在 我 他 有",
}
"""Language → most frequent words."""


@dataclass
class SplitInspection:
    """Counts over the documents of a split.

    Attributes:
        languages: source and target.
        n_pairs: pairs with text on both sides.
        n_duplicates: repeated documents with at least two sentences.
        heads: first sentences of both sides.
    """

    languages: Sequence[str]
    n_sentences: int = 0
    n_pairs: int = 0
    n_one_sided: int = 0
    n_equal: int = 0
    n_long: int = 0
    n_duplicates: int = 0
    heads: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    _seen: set[int] = field(default_factory=set)

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Count documents, and yield them unchanged."""
        for document in documents:
            self.n_sentences += len(document)
            for src, tgt in zip(document.src, document.tgt, strict=True):
                self.n_pairs += bool(src and tgt)
                self.n_one_sided += bool(src) != bool(tgt)
                self.n_equal += src == tgt != ""
                self.n_long += max(len(src), len(tgt)) >= LONG_CHARACTERS
            if len(document) > 1:
                self.n_duplicates += hash(document.sides) in self._seen
                self._seen.add(hash(document.sides))
            for head, side in zip(self.heads, document.sides, strict=True):
                head += side[: HEAD_SENTENCES - len(head)]
            yield document

    def warnings(self, where: str) -> list[str]:
        """Return the problems. Raises UserError if no pair is translated."""
        if self.n_sentences and not self.n_pairs:
            raise UserError(f"{where}: no pair has text on both sides: pass the files of both languages")
        if self.n_pairs and self.n_equal == self.n_pairs:
            raise UserError(f"{where}: every target sentence equals its source: pass the files of both languages")
        messages = []
        percent = 100 * self.n_one_sided / max(self.n_sentences, 1)
        if percent >= ONE_SIDED_PERCENT:
            messages.append(f"{where}: {percent:.0f} % of the pairs have an empty side: are the files aligned?")
        percent = 100 * self.n_equal / max(self.n_pairs, 1)
        if percent >= EQUAL_PERCENT:
            messages.append(
                f"{where}: {percent:.0f} % of the target sentences equal their source: are they translated?"
            )
        if self.n_long:
            messages.append(
                f"{where}: {self.n_long:,} pairs have a line of {LONG_CHARACTERS:,} characters or more, which makes "
                "training slow: split it, or set `filters`, which drop long pairs"
            )
        if self.n_duplicates:
            messages.append(f"{where}: {self.n_duplicates:,} documents are copies of earlier documents")
        for lang, head in zip(self.languages, self.heads, strict=True):
            other = other_language(head, language_of(lang))
            if other is not None:
                messages.append(f"{where}: the {lang} text looks like {other}: are files or languages swapped?")
        return messages


def other_language(sentences: Iterable[str], lang: str) -> str | None:
    """Return the language of a text that is probably not in `lang`, otherwise None."""
    words: Counter[str] = Counter()
    for sentence in sentences:
        words.update(WORD.findall(sentence.lower()))
    if lang not in FREQUENT or words.total() < MIN_WORDS:
        return None
    counts = {}
    for code, frequent in FREQUENT.items():
        counts[code] = sum(words[word] for word in frequent.split())
    best = max(counts, key=lambda code: counts[code])
    # Twice as many, and at least every twentieth word, since related languages share some words.
    if counts[best] <= max(2 * counts[lang], words.total() / 20):
        return None
    return best
