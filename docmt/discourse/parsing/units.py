"""Sentences and paragraphs of a document in terms of its EDUs."""

import bisect
import itertools
from collections.abc import Sequence

from docmt.discourse.documents import DiscourseDocument

SAME_SENTENCE, SAME_PARAGRAPH, ABOVE, UNKNOWN, NOTHING = range(5)
"""Levels of a boundary. UNKNOWN: different sentences, paragraphs unknown; NOTHING: there are not two neighbors."""
N_LEVELS = 5


class Units:
    """Consecutive EDUs grouped into sentences or paragraphs.

    Attributes:
        number_of: number of the unit of each EDU.
        first, last: first and last EDU in the unit of each EDU.
        n: number of units.
    """

    def __init__(self, number_of: Sequence[int]) -> None:
        # Numbers ascend, so the EDUs of a unit lie side by side.
        self.number_of = list(number_of)
        self.first = [bisect.bisect_left(self.number_of, number) for number in self.number_of]
        self.last = [bisect.bisect_right(self.number_of, number) - 1 for number in self.number_of]
        self.n = self.number_of[-1] + 1 if self.number_of else 0


class DocumentUnits:
    """Sentences, paragraphs and lengths of a document.

    Attributes:
        n_edus: number of EDUs.
        sentences: EDUs by sentence.
        paragraphs: EDUs by paragraph; None if paragraphs are unknown.
        paragraph_first, paragraph_last: first and last sentence in the paragraph of each sentence; empty if paragraphs
            are unknown.
        word_offsets: number of words before each EDU, then the number of all words.
    """

    def __init__(self, document: DiscourseDocument) -> None:
        self.n_edus = len(document.edus)
        self.sentences = Units([edu.sentence for edu in document.edus])
        self.word_offsets = [0, *itertools.accumulate(edu.end - edu.start for edu in document.edus)]
        self.paragraphs: Units | None = None
        self.paragraph_first, self.paragraph_last = [], []
        if document.paragraphs is not None:
            sentences = range(len(document.sentences))
            number_of = [bisect.bisect_right(document.paragraphs, sentence) - 1 for sentence in sentences]
            grouped = Units(number_of)
            self.paragraph_first, self.paragraph_last = grouped.first, grouped.last
            self.paragraphs = Units([number_of[edu.sentence] for edu in document.edus])

    def level(self, left: int, right: int) -> int:
        """Return the level of the boundary between two EDUs, or of a span, given its first and last EDU."""
        if self.sentences.number_of[left] == self.sentences.number_of[right]:
            return SAME_SENTENCE
        if self.paragraphs is None:
            return UNKNOWN
        return SAME_PARAGRAPH if self.paragraphs.number_of[left] == self.paragraphs.number_of[right] else ABOVE
