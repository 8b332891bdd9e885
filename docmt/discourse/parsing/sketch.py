"""What structural features read of a document: sizes, positions, boundaries and punctuation, as small integers."""

import unicodedata
from dataclasses import dataclass

import numpy as np

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.parsing.cohesion import Cohesion
from docmt.discourse.parsing.layout import DocumentLayout
from docmt.discourse.parsing.transitions import N_ACTIONS

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


@dataclass(slots=True)
class Span:
    """The values of a span; the defaults are those of a span that does not exist."""

    form: int = NO_FORM  # the action that made it
    first: int = -1  # EDU
    last: int = -1  # EDU
    n_edus: int = -1
    n_sentences: int = -1  # those that it touches
    edus: int = NO_BUCKET
    sentences: int = NO_BUCKET
    paragraphs: int = NO_BUCKET
    words: int = NO_BUCKET  # half their number
    paragraph: int = NO_BUCKET  # sentences in the paragraph of its last EDU
    edges: int = NO_EDGE  # bits of `Sketch.begins` and `Sketch.ends`
    from_sentence: int = NO_BUCKET  # EDUs from the start of its first sentence
    to_sentence: int = NO_BUCKET  # EDUs to the end of its last sentence
    nucleus: int = NO_PLACE  # where its nucleus EDU is: alone, first, last, inside
    ending: int = NO_ENDING  # class of its last word
    opening: int = NO_OPENING  # class of its first word
    vector: np.ndarray | None = None  # its words, see `Cohesion.vector`


NO_SPAN = Span()


class Sketch:
    """What the features need of a document, computed once per document.

    Attributes:
        layout: sentences and paragraphs.
        cohesion: shared words of spans.
        endings: the class of the last word of each EDU.
        openings: the class of the first word of each EDU.
        begins: per EDU, bits 0 to 2: it begins its sentence, its paragraph, the document.
        ends: per EDU, bits 3 to 5: it ends its sentence, its paragraph, the document.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.layout = layout = DocumentLayout(document)
        self.cohesion = Cohesion(document)
        self._spans: dict[tuple[int, int, int, int], Span] = {}
        edus = [document.edu_words(number) for number in range(layout.n_edus)]
        self.endings = [ending(words[-1]) if words else 0 for words in edus]
        self.openings = [opening(words[0]) if words else 0 for words in edus]
        last = layout.n_edus - 1
        units = [layout.sentences, *([layout.paragraphs] if layout.paragraphs else [])]
        self.begins, self.ends = [], []
        for edu in range(layout.n_edus):
            begins = sum((unit.first[edu] == edu) << place for place, unit in enumerate(units))
            ends = sum((unit.last[edu] == edu) << place for place, unit in enumerate(units))
            self.begins.append(begins | (edu == 0) << 2)
            self.ends.append((ends | (edu == last) << 2) << 3)

    def span(self, first: int, last: int, nucleus: int, form: int) -> Span:
        """Return the values of a span, which are computed once: it stays on the stack for several steps."""
        key = first, last, nucleus, form
        if (known := self._spans.get(key)) is None:
            known = self._spans[key] = self._describe(first, last, nucleus, form)
        return known

    def _describe(self, first: int, last: int, nucleus: int, form: int) -> Span:
        sentences, paragraphs = self.layout.sentences, self.layout.paragraphs
        n_edus, n_sentences = last - first + 1, sentences.of[last] - sentences.of[first] + 1
        return Span(
            form,
            first,
            last,
            n_edus,
            n_sentences,
            bucket(n_edus),
            bucket(n_sentences),
            NO_BUCKET if paragraphs is None else bucket(paragraphs.of[last] - paragraphs.of[first] + 1),
            self.n_words(first, last),
            self.paragraph_size(last),
            self.begins[first] | self.ends[last],
            bucket(first - sentences.first[first]),
            bucket(sentences.last[last] - last),
            _nucleus_place(first, last, nucleus),
            self.endings[last],
            self.openings[first],
            self.cohesion.vector(first, last),
        )

    def n_words(self, first: int, last: int) -> int:
        """The bucket of half the number of words of a span."""
        return bucket((self.layout.word_offsets[last + 1] - self.layout.word_offsets[first]) >> 1)

    def paragraph_places(self, first: int, last: int) -> tuple[int, int, int, int]:
        """Buckets: sentences from the start of the paragraph, to its end, paragraphs before and after a span."""
        layout = self.layout
        if layout.paragraphs is None:
            return NO_BUCKET, NO_BUCKET, NO_BUCKET, NO_BUCKET
        first_sentence, last_sentence = layout.sentences.of[first], layout.sentences.of[last]
        return (
            bucket(first_sentence - layout.paragraph_first[first_sentence]),
            bucket(layout.paragraph_last[last_sentence] - last_sentence),
            bucket(layout.paragraphs.of[first]),
            bucket(layout.paragraphs.n - 1 - layout.paragraphs.of[last]),
        )

    def paragraph_size(self, edu: int) -> int:
        """The bucket of the number of sentences in the paragraph of an EDU."""
        layout = self.layout
        if layout.paragraphs is None:
            return NO_BUCKET
        sentence = layout.sentences.of[edu]
        return bucket(layout.paragraph_last[sentence] - layout.paragraph_first[sentence] + 1)


def bucket(count: int) -> int:
    """The bucket of a count of 0 or more."""
    return min(BUCKETS - 1, count.bit_length())


def ending(word: str) -> int:
    """The class of a word as the last one of an EDU."""
    mark = word[-1]
    if (known := ENDINGS.get(mark)) is not None:
        return known
    category = unicodedata.category(mark)
    return {"Pe": 7, "Pf": 8, "Pi": 8, "Pd": 9}.get(category, 8 if mark in "\"'" else 10 if category[0] == "P" else 0)


def opening(word: str) -> int:
    """The class of a word as the first one of an EDU."""
    category = unicodedata.category(word[0])
    return {"Lu": 1, "Ll": 2, "Lo": 3, "Nd": 4}.get(category, 5 if category[0] in "PS" else 0)


def _nucleus_place(first: int, last: int, nucleus: int) -> int:
    if first == last:
        return 0
    return 1 if nucleus == first else 2 if nucleus == last else 3
