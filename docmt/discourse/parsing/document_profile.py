"""A document as structural features see it: sizes, positions, boundaries and punctuation, as small integers."""

import hashlib
import math
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from docmt.discourse.documents import DiscourseDocument, DocumentUnits
from docmt.discourse.parsing.transitions import N_ACTIONS, Constituent

BUCKETS = 8
NO_BUCKET = BUCKETS
"""Buckets of counts: 0, 1, 2–3, 4–7, … 64 and more; one more for what does not exist or is unknown."""
N_COUNTS = BUCKETS + 1
MARKS = (".。", "?？", "!！", ",，、", ";；", ":：")
ENDINGS = {mark: number for number, marks in enumerate(MARKS, start=1) for mark in marks}
N_ENDINGS, N_OPENINGS = 12, 7
NO_ENDING, NO_OPENING = N_ENDINGS - 1, N_OPENINGS - 1
N_EDGES = 65
NO_EDGE = N_EDGES - 1
NO_FORM = N_ACTIONS
N_FORMS = N_ACTIONS + 1
N_PLACES = 5
NO_PLACE = N_PLACES - 1
PROJECTIONS = 256  # bits of SHA-256
COHESION_BOUNDS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
N_COHESIONS = len(COHESION_BOUNDS) + 2
NO_COHESION = N_COHESIONS - 1
"""The class of spans that do not exist."""


@dataclass(slots=True)
class Span:
    """Structural values of a span; the defaults describe a span that does not exist."""

    form: int = NO_FORM  # the action that made it
    first: int = -1  # EDU
    last: int = -1  # EDU
    n_edus: int = -1
    n_sentences: int = -1  # sentences that it touches
    edus: int = NO_BUCKET
    sentences: int = NO_BUCKET
    paragraphs: int = NO_BUCKET
    words: int = NO_BUCKET  # half their number
    paragraph: int = NO_BUCKET  # sentences in the paragraph of its last EDU
    edges: int = NO_EDGE  # bits of `DocumentProfile.begins` and `DocumentProfile.ends`
    from_sentence: int = NO_BUCKET  # EDUs from the start of its first sentence
    to_sentence: int = NO_BUCKET  # EDUs to the end of its last sentence
    nucleus: int = NO_PLACE  # place of its nucleus EDU: alone, first, last, inside
    ending: int = NO_ENDING  # class of its last word
    opening: int = NO_OPENING  # class of its first word
    vector: np.ndarray | None = None  # its words, see `Cohesion.vector`


NO_SPAN = Span()
NO_PLACES: dict[str, int] = dict.fromkeys(
    ("from_paragraph", "to_paragraph", "paragraphs_before", "paragraphs_after"), NO_BUCKET
)


@lru_cache(maxsize=20_000)
def _signs(word: str) -> np.ndarray:
    """Random signs of a word, float32 [PROJECTIONS] of +1 and −1."""
    # From a checksum and not from a generator or `hash`, so that a word has the same signs in every process.
    bits = np.unpackbits(np.frombuffer(hashlib.sha256(word.encode()).digest(), dtype=np.uint8))
    return bits.astype(np.float32) * 2 - 1


class Cohesion:
    """Word vectors of the spans of a document, for their lexical cohesion (Hearst 1997): the words that they share.

    They are random projections of word counts. Words in few of the document's EDUs weigh more, so function words hardly
    count, in any language.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        counts = [Counter(map(str.lower, document.edu_words(edu))) for edu in range(len(document.edus))]
        spread = Counter(word for words in counts for word in words)
        weights = {word: math.log((1 + len(counts)) / n) for word, n in spread.items() if word[0].isalnum()}
        self._sums = np.zeros((len(counts) + 1, PROJECTIONS), dtype=np.float32)
        for edu, words in enumerate(counts):
            row = self._sums[edu + 1]
            row += self._sums[edu]
            for word, count in words.items():
                if word in weights:
                    row += count * weights[word] * _signs(word)

    def vector(self, first: int, last: int) -> np.ndarray:
        """Return the vector of a span, float32 [PROJECTIONS], of length 1 unless no word counts."""
        vector = self._sums[last + 1] - self._sums[first]
        length = math.sqrt(vector @ vector)
        return vector / length if length > 0 else vector


class DocumentProfile:
    """Values that features need of a document, computed once per document.

    Attributes:
        units: sentences and paragraphs.
        cohesion: shared words of spans.
        endings: the class of the last word of each EDU.
        openings: the class of the first word of each EDU.
        begins: per EDU, bits 0 to 2: it begins its sentence, its paragraph, the document.
        ends: per EDU, bits 3 to 5: it ends its sentence, its paragraph, the document.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.units = units = DocumentUnits(document)
        self.cohesion = Cohesion(document)
        self._spans: dict[tuple[int, int, int, int], Span] = {}
        edus = [document.edu_words(number) for number in range(units.n_edus)]
        self.endings = [ending(words[-1]) if words else 0 for words in edus]
        self.openings = [opening(words[0]) if words else 0 for words in edus]
        levels = [units.sentences, *([units.paragraphs] if units.paragraphs else [])]
        self.begins, self.ends = [0] * units.n_edus, [0] * units.n_edus
        for edu in range(units.n_edus):
            for place, level in enumerate(levels):
                self.begins[edu] |= (level.first[edu] == edu) << place
                self.ends[edu] |= (level.last[edu] == edu) << 3 + place
            self.begins[edu] |= (edu == 0) << 2
            self.ends[edu] |= (edu == units.n_edus - 1) << 5

    def span(self, first: int, last: int, nucleus: int, form: int = NO_FORM) -> Span:
        """Return the values of a span, given its first, last and nucleus EDU and the action that made it."""
        # A span stays on the stack for several steps, so its values are kept.
        key = first, last, nucleus, form
        if (known := self._spans.get(key)) is not None:
            return known
        units = self.units
        sentences, paragraphs, words = units.sentences, units.paragraphs, units.word_offsets
        n_edus = last - first + 1
        n_sentences = sentences.number_of[last] - sentences.number_of[first] + 1
        n_paragraphs, paragraph = NO_BUCKET, NO_BUCKET
        if paragraphs is not None:
            n_paragraphs = bucket(paragraphs.number_of[last] - paragraphs.number_of[first] + 1)
            sentence = sentences.number_of[last]
            paragraph = bucket(units.paragraph_last[sentence] - units.paragraph_first[sentence] + 1)
        span = self._spans[key] = Span(
            form,
            first,
            last,
            n_edus,
            n_sentences,
            edus=bucket(n_edus),
            sentences=bucket(n_sentences),
            paragraphs=n_paragraphs,
            words=bucket((words[last + 1] - words[first]) >> 1),
            paragraph=paragraph,
            edges=self.begins[first] | self.ends[last],
            from_sentence=bucket(first - sentences.first[first]),
            to_sentence=bucket(sentences.last[last] - last),
            nucleus=0 if first == last else 1 if nucleus == first else 2 if nucleus == last else 3,
            ending=self.endings[last],
            opening=self.openings[first],
            vector=self.cohesion.vector(first, last),
        )
        return span

    def span_of(self, node: Constituent) -> Span:
        return self.span(node.first, node.last, node.nucleus, node.form)

    def paragraph_places(self, first: int, last: int) -> dict[str, int]:
        """Buckets of the sentences between a span and the ends of its paragraphs, and of the paragraphs around it."""
        units = self.units
        if units.paragraphs is None:
            return NO_PLACES
        first_sentence, last_sentence = units.sentences.number_of[first], units.sentences.number_of[last]
        return {
            "from_paragraph": bucket(first_sentence - units.paragraph_first[first_sentence]),
            "to_paragraph": bucket(units.paragraph_last[last_sentence] - last_sentence),
            "paragraphs_before": bucket(units.paragraphs.number_of[first]),
            "paragraphs_after": bucket(units.paragraphs.n - 1 - units.paragraphs.number_of[last]),
        }


def bucket(count: int) -> int:
    """Return the bucket of a count of 0 or more."""
    return min(BUCKETS - 1, count.bit_length())


def ending(word: str) -> int:
    """Return the class of a word as the last one of an EDU."""
    mark = word[-1]
    if (known := ENDINGS.get(mark)) is not None:
        return known
    # 7 to 10: closing bracket, quotation mark, dash, other punctuation (Unicode categories).
    category = unicodedata.category(mark)
    return {"Pe": 7, "Pf": 8, "Pi": 8, "Pd": 9}.get(category, 8 if mark in "\"'" else 10 if category[0] == "P" else 0)


def opening(word: str) -> int:
    """Return the class of a word as the first one of an EDU."""
    # 1 to 5: capital, small letter, letter of a script without case, digit, punctuation or symbol.
    category = unicodedata.category(word[0])
    return {"Lu": 1, "Ll": 2, "Lo": 3, "Nd": 4}.get(category, 5 if category[0] in "PS" else 0)


def cohesion_class(left: np.ndarray | None, right: np.ndarray | None) -> int:
    """Return the class of the cosine of two spans, from 0 (nothing shared); `NO_COHESION` if one does not exist."""
    if left is None or right is None:
        return NO_COHESION
    cosine = float(left @ right)
    return sum(cosine > bound for bound in COHESION_BOUNDS)
