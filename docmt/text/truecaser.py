"""Truecasing: the first word of a line gets the form that it has inside sentences.

A truecaser is learned as in Moses: count how each word is written where it does not begin a sentence, and keep the
most frequent form. It is applied more carefully than in Moses, so that `restore_case` always recovers the original:

- Only the first word of a line is changed, and only from `The` to `the`. Moses also rewrites words in the middle
  (`HELP` becomes `help`) and after every colon, which cannot be undone and would show in translations.
- A line that begins in lower case, as in subtitles and verses, gets the token `▁` before it, so that restoring does
  not capitalize it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from docmt.errors import UserError
from docmt.files import read_json, write_json
from docmt.text.spacing import BLANK, JOINER, split_marks
from docmt.text.tokenizer import plain_tokens

# Tokens that can precede the first word of a line: the list of Moses, and typographic quotes.
_BEFORE_FIRST_WORD = frozenset(["(", "[", '"', "'", "&apos;", "&quot;", "&#91;", "&#93;", *"„“”‚‘’«»‹›¿¡", BLANK])


class Truecaser:
    """The words in lower case inside sentences; None for text that is not truecased."""

    def __init__(self, words: Iterable[str] | None) -> None:
        self.words = None if words is None else frozenset(words)

    @classmethod
    def learn(cls, forms: Mapping[str, int]) -> Self:
        """Learn from counts of the forms of words inside sentences; of equal counts, the first one wins."""
        best: dict[str, str] = {}
        for form, count in forms.items():
            lower = form.lower()
            if lower not in best or count > forms[best[lower]]:
                best[lower] = form
        return cls(lower for lower, form in best.items() if form == lower)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a truecaser file."""
        value: Any = read_json(path)
        words = value["lower_case_words"] if isinstance(value, dict) and "lower_case_words" in value else False
        if words is None or (isinstance(words, list) and all(isinstance(word, str) for word in words)):
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
        # In lower case already: restoring would capitalize it, so `▁` protects it.
        if _capitalize(core) != core:
            return [BLANK, *tokens]
        lower = core.lower()
        # Lower case must be reversible: not so for İ, whose lower case has two characters.
        if lower not in self.words or _capitalize(lower) != core:
            return tokens
        return [*tokens[:i], JOINER * left + lower + JOINER * right, *tokens[i + 1 :]]


def count_forms(lines: Iterable[str]) -> Counter[str]:
    """Count the forms of words in tokenized lines where they do not begin a sentence."""
    from sacremoses import MosesTruecaser

    moses = MosesTruecaser()
    # Every weight is 1: Moses can weigh first words, but by default leaves them out.
    found = (moses.learn_truecase_weights(plain_tokens(line.split(" "))) for line in lines)
    return Counter(form for weights in found for _, form, _ in weights)


def restore_case(tokens: list[str]) -> list[str]:
    """Capitalize the first word of a line, unless it already has capitals (`iPhone`) or follows `▁`."""
    if tokens and tokens[0] == BLANK:
        return tokens[1:]
    i = _first_word(tokens)
    if i is None:
        return tokens
    left, core, right = split_marks(tokens[i])
    return [*tokens[:i], JOINER * left + _capitalize(core) + JOINER * right, *tokens[i + 1 :]]


def _first_word(tokens: list[str]) -> int | None:
    """The index of the first word of a line, after brackets and quotes."""
    return next((i for i, token in enumerate(tokens) if split_marks(token)[1] not in _BEFORE_FIRST_WORD), None)


def _capitalize(word: str) -> str:
    """Capitalize a word in lower case; other words stay unchanged."""
    return word[:1].upper() + word[1:] if word == word.lower() else word
