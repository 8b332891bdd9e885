"""Truecasing: the first word in a line is written as inside sentences.

As in Moses, the truecaser keeps the most frequent form of a word inside sentences. It is applied more carefully than in
Moses, so that `restore_case` always recovers the original:

- Only the first word in a line is changed, and only from `The` to `the`. Moses also rewrites words in the middle
  (`HELP` becomes `help`) and after every colon, which cannot be undone and would show in translations.
- A line that begins in lower case, as in subtitles and verses, gets the token `▁` before it, so that restoring does
  not capitalize it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from docmt.errors import UserError
from docmt.files import read_json, write_json
from docmt.text.spacing import BLANK, JOINER, split_marks
from docmt.text.tokenizer import plain_tokens

# Tokens that can precede the first word in a line: Moses' list, and typographic quotes.
_BEFORE_FIRST_WORD = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;", *"„“”‚‘’«»‹›¿¡", BLANK])


class Truecaser:
    """The words in lower case inside sentences (None: no truecasing)."""

    def __init__(self, words: Iterable[str] | None) -> None:
        self.words = None if words is None else frozenset(words)

    @classmethod
    def learn(cls, forms: Mapping[str, int]) -> Self:
        """Learn from word form counts inside sentences. For equal counts, the first form wins."""
        best: dict[str, str] = {}
        for form, count in forms.items():
            lower = form.lower()
            if lower not in best or count > forms[best[lower]]:
                best[lower] = form
        return cls(lower for lower, form in best.items() if form == lower)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a truecaser file."""
        match read_json(path):
            case {"lower_case_words": None}:
                return cls(None)
            case {"lower_case_words": list(words)} if all(isinstance(word, str) for word in words):
                return cls(words)
        raise UserError(f"{path}: not a truecaser: create it with `docmt text learn-truecaser`")

    def save(self, path: Path) -> None:
        """Write the words as JSON."""
        write_json(path, {"lower_case_words": None if self.words is None else sorted(self.words)})

    def truecase(self, tokens: list[str]) -> list[str]:
        """Truecase the tokens of a line. `restore_case` is the inverse."""
        i = _first_word(tokens)
        if i is None or self.words is None:
            return tokens
        left, core, right = split_marks(tokens[i])
        # Already in lower case: without `▁`, restoring would capitalize it.
        if _capitalize(core) != core:
            return [BLANK, *tokens]
        lower = core.lower()
        # Lowercasing must be reversible. It is not for İ, whose lower case has two characters.
        if lower not in self.words or _capitalize(lower) != core:
            return tokens
        return [*tokens[:i], JOINER * left + lower + JOINER * right, *tokens[i + 1 :]]


def count_forms(lines: Iterable[str]) -> Counter[str]:
    """Count word forms inside sentences of tokenized lines."""
    from sacremoses import MosesTruecaser

    moses = MosesTruecaser()
    counts: Counter[str] = Counter()
    for line in lines:
        # All weights are 1. Moses can also weight first words, but leaves them out by default.
        counts.update(form for _, form, _ in moses.learn_truecase_weights(plain_tokens(line.split(" "))))
    return counts


def restore_case(tokens: list[str]) -> list[str]:
    """Capitalize the first word in a line, unless it already has capitals (`iPhone`) or follows `▁`."""
    if tokens and tokens[0] == BLANK:
        return tokens[1:]
    i = _first_word(tokens)
    if i is None:
        return tokens
    left, core, right = split_marks(tokens[i])
    return [*tokens[:i], JOINER * left + _capitalize(core) + JOINER * right, *tokens[i + 1 :]]


def _first_word(tokens: list[str]) -> int | None:
    """Return the index of the first word in a line, after brackets and quotes."""
    for i, token in enumerate(tokens):
        if split_marks(token)[1] not in _BEFORE_FIRST_WORD:
            return i
    return None


def _capitalize(word: str) -> str:
    """Capitalize a word in lower case. Other words stay unchanged."""
    if word != word.lower():
        return word
    return word[:1].upper() + word[1:]
