"""Alignment of a translated document with other sentence boundaries to the reference's sentences.

As in Matusov et al. (2005): boundaries are set so that the sum of word edits over all sentences is minimal.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from docmt.languages import has_blanks

if TYPE_CHECKING:
    import numpy as np

WORD = re.compile(r"\w+|[^\w\s]")
CHARACTER = re.compile(r"[A-Za-z0-9]+|\S")
"""Words in languages without blanks, where every character is a word."""
UNREACHABLE = 1 << 60


def align_sentences(lines: Sequence[str], reference: Sequence[str], lang: str) -> tuple[int, list[str]]:
    """Return the number of word edits, and the text of `lines` cut into as many sentences as the reference has.

    Words are compared without case. Among boundaries with equally few edits, boundaries between two lines are
    preferred, then early boundaries. A boundary is never inside a word, so "don't" is not divided.
    """
    import numpy as np  # `docmt evaluate` imports this module for every command

    pattern = WORD if has_blanks(lang) else CHARACTER
    text = " ".join(lines)
    words = list(pattern.finditer(text))
    n_words = len(words)
    line_starts = np.cumsum([0, *(len(line) + 1 for line in lines)])
    starts = np.array([*(word.start() for word in words), len(text)])
    is_line_start = np.isin(starts, [0, *line_starts])
    is_line_start[[0, -1]] = True
    can_begin = is_line_start | (not has_blanks(lang))
    can_begin |= [start == 0 or text[start - 1].isspace() for start in starts]
    # One integer per position in the hypothesis holds edits, boundaries inside lines and the start of the sentence, in
    # this order, so that a minimum of integers is the best alignment.
    per_boundary = n_words + 1
    per_edit = per_boundary * (len(reference) + 1)
    positions = np.arange(n_words + 1, dtype="int64")
    numbers: dict[str, int] = {}
    ours = np.array([numbers.setdefault(word[0].casefold(), len(numbers)) for word in words], dtype="int64")

    def insert(costs: "np.ndarray") -> "np.ndarray":
        """Allow any number of additional words in the hypothesis."""
        return np.minimum.accumulate(costs - positions * per_edit) + positions * per_edit

    costs = np.where(positions == 0, 0, UNREACHABLE)
    sentence_starts = []
    for sentence in reference:
        costs = insert(costs)
        for word in pattern.finditer(sentence):
            substituted = costs[:-1] + per_edit * (ours != numbers.get(word[0].casefold(), -1))
            costs = insert(np.minimum(costs + per_edit, np.concatenate([[UNREACHABLE], substituted])))
        sentence_starts.append((costs % per_boundary).astype("int32"))
        costs = costs - costs % per_boundary + ~is_line_start * per_boundary + positions
        costs[~can_begin] = UNREACHABLE
    bounds = [n_words]
    for begin in reversed(sentence_starts):
        bounds.append(int(begin[bounds[-1]]))
    bounds.reverse()
    sentences = [text[starts[begin] : starts[end]].strip() for begin, end in pairwise(bounds)]
    return int(costs[-1] // per_edit), sentences
