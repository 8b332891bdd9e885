"""Lexical cohesion of two spans (Hearst 1997): the words that they share, from random projections of word counts.

Words in few of the document's EDUs weigh more, so function words hardly count, in any language.
"""

import hashlib
import math
from collections import Counter
from functools import lru_cache

import numpy as np

from docmt.discourse.documents import DiscourseDocument

WIDTH = 256  # bits of SHA-256
BOUNDS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.45)
N_COHESIONS = len(BOUNDS) + 2
NO_COHESION = N_COHESIONS - 1
"""The class of spans that do not exist."""


@lru_cache(maxsize=20_000)
def _signs(word: str) -> np.ndarray:
    """Random signs of a word, float32 [WIDTH] of +1 and −1."""
    # From a checksum and not from a generator or `hash`, so that a word has the same signs in every process.
    bits = np.unpackbits(np.frombuffer(hashlib.sha256(word.encode()).digest(), dtype=np.uint8))
    return bits.astype(np.float32) * 2 - 1


class Cohesion:
    """Word vectors of the spans of a document."""

    def __init__(self, document: DiscourseDocument) -> None:
        counts = [Counter(map(str.lower, document.edu_words(edu))) for edu in range(len(document.edus))]
        spread = Counter(word for words in counts for word in words)
        weights = {word: math.log((1 + len(counts)) / n) for word, n in spread.items() if word[0].isalnum()}
        self._sums = np.zeros((len(counts) + 1, WIDTH), dtype=np.float32)
        for edu, words in enumerate(counts):
            row = self._sums[edu + 1]
            row += self._sums[edu]
            for word, count in words.items():
                if word in weights:
                    row += count * weights[word] * _signs(word)

    def vector(self, first: int, last: int) -> np.ndarray:
        """Return the vector of a span, float32 [WIDTH], of length 1 unless no word counts."""
        vector = self._sums[last + 1] - self._sums[first]
        length = math.sqrt(vector @ vector)
        return vector / length if length > 0 else vector


def cohesion_class(left: np.ndarray | None, right: np.ndarray | None) -> int:
    """Return the class of the cosine of two spans, from 0 (nothing shared); `NO_COHESION` if one does not exist."""
    if left is None or right is None:
        return NO_COHESION
    cosine = float(left @ right)
    return sum(cosine > bound for bound in BOUNDS)
