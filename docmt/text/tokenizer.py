"""Words and punctuation: Moses for most languages, jieba for Chinese, and the way back."""

import functools
import logging
import re
from typing import Any, cast

from sacremoses import MosesPunctNormalizer, MosesTokenizer
from sacremoses.tokenize import nonbreaking_prefixes

from docmt.errors import UserError
from docmt.settings import nearest
from docmt.text.spacing import BLANK, Spacing, split_marks

LANGUAGES = frozenset(nonbreaking_prefixes.available_langs.values())
"""Language codes that the Moses tokeniser has rules for, and `zh`."""

_WHITE_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b]")


def check_language(lang: str) -> str:
    """The language code itself. Raises UserError when it is not known."""
    if lang not in LANGUAGES:
        raise UserError(f"language {lang!r} is not known; {nearest(lang, sorted(LANGUAGES))}")
    return lang


def clean(line: str) -> str:
    """A line as the tokeniser sees it: runs of white space (of any kind) become one blank, control characters go."""
    return _WHITE_SPACE.sub(" ", _CONTROL.sub("", line)).strip()


class Tokenizer:
    """Tokens of one language and back. Lines in, lists of tokens out; a token holds no white space.

    Tokens are those of Moses (or jieba), escaped, with marks for the blanks that cannot be guessed: see
    `docmt.text.spacing`.
    """

    def __init__(self, lang: str, *, normalise: bool = False, lowercase: bool = False) -> None:
        """Raises UserError when the language is not known."""
        self.lang = check_language(lang)
        self._normaliser = MosesPunctNormalizer(lang) if normalise else None
        self._lowercase = lowercase
        self._split = _jieba_words if lang == "zh" else _Moses(lang).words
        self._spacing = Spacing(lang)

    def normalise(self, line: str) -> str:
        """A line as far as the way back can restore it: clean, normalised, lower-cased as the settings say."""
        text = clean(line)
        if self._normaliser:
            text = clean(self._normaliser.normalize(text))
        return text.lower() if self._lowercase else text

    def tokenise(self, line: str) -> list[str]:
        """The marked tokens of a line; none for an empty line."""
        text = clean(self._normaliser.normalize(clean(line))) if self._normaliser else clean(line)
        if not text:
            return []
        words = self._split(text)
        glued = _gaps(text, words)
        if glued is None:
            # The library changed a character (its internal markers can stand in text): take the words as they are.
            words = text.split(" ")
            glued = [False] * len(words)
        marked = self._spacing.mark(words, glued)
        return [token.lower() for token in marked] if self._lowercase else marked

    def detokenise(self, tokens: list[str]) -> str:
        """The text of tokens, with or without marks."""
        return self._spacing.join(tokens)


@functools.cache
def get_tokenizer(lang: str, *, normalise: bool = False, lowercase: bool = False) -> Tokenizer:
    """A tokeniser made once per process: its tables take a while to build."""
    return Tokenizer(lang, normalise=normalise, lowercase=lowercase)


def plain_tokens(tokens: list[str]) -> list[str]:
    """Tokens without marks: those of Moses in its escapes, except that `@` and `▁` are escaped too."""
    return [split_marks(token)[1] for token in tokens if token != BLANK]


def _gaps(text: str, words: list[str]) -> list[bool] | None:
    """Whether no blank stands before each word of a text; None when the words are not the text."""
    glued, position = [], 0
    for word in words:
        has_blank = text.startswith(" ", position)
        position += has_blank
        if not text.startswith(word, position):
            return None
        position += len(word)
        glued.append(not has_blank)
    return glued if position == len(text) else None


class _Moses(MosesTokenizer):
    """The Moses tokeniser with its slow look-ups done once: it builds sets of 100,000 letters for each full stop."""

    def __init__(self, lang: str) -> None:
        super().__init__(lang)
        self._alphabetic = frozenset(self.IsAlpha)
        self._lower = frozenset(self.IsLower)

    def isanyalpha(self, text: str) -> bool:
        return not self._alphabetic.isdisjoint(text)

    def islower(self, text: str) -> bool:
        return self._lower.issuperset(text)

    def words(self, text: str) -> list[str]:
        """Plain tokens: neither escaped nor split at hyphens inside words."""
        return cast("list[str]", self.tokenize(text, escape=False))  # a str only with return_str


def _jieba_words(text: str) -> list[str]:
    """Chinese words without the blanks between them."""
    return [word for word in _jieba().cut(text) if word != " "]


@functools.cache
def _jieba() -> Any:
    import jieba  # loads a dictionary for about a second: only where Chinese is read

    jieba.setLogLevel(logging.WARNING)
    return jieba
