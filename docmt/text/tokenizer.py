"""Tokenization and detokenization: Moses for most languages, jieba for Chinese."""

import functools
import logging
import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, cast

from docmt.errors import UserError
from docmt.languages import has_blanks, language_of
from docmt.settings import nearest
from docmt.text.spacing import BLANK, Spacing, split_marks, unescape

if TYPE_CHECKING:
    from jieba import Tokenizer as JiebaTokenizer

_CODES = "as bn ca cs de el en es et fi fr ga gu hi hu is it kn lt lv ml mni mr nl or pa pl pt ro ru sk sl sv ta tdt te"
_GENERAL_CODES = "ar bg da ko no tr uk vi"
# Languages with their own Moses rules, languages for which the general rules are suitable, since they have spaces
# between words (the list of abbreviations is then English), and Chinese.
LANGUAGES = frozenset([*_CODES.split(), *_GENERAL_CODES.split(), "zh"])

_WHITE_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b]")


def check_language(lang: str, tokenization: str = "words") -> str:
    """Return a supported language code unchanged. Raises UserError for other codes."""
    language = language_of(lang)
    if tokenization == "sentencepiece":
        if not re.fullmatch("[a-z]{2,3}", lang):
            raise UserError(f"language {lang!r}: a code has two or three lowercase letters: write {language}")
    elif language not in LANGUAGES:
        if not has_blanks(language):
            raise UserError(
                f"language {lang!r} does not separate words by blanks, and docmt has such a tokenizer only for "
                "Chinese: set tokenization to sentencepiece"
            )
        raise UserError(f"unknown language {lang!r}; {nearest(lang, sorted(LANGUAGES))}")
    return lang


def clean(line: str) -> str:
    """Replace runs of white space by one space, and remove control characters."""
    return _WHITE_SPACE.sub(" ", _CONTROL.sub("", line)).strip()


class Tokenizer:
    """Tokenizer and detokenizer for one language.

    Tokens are escaped Moses (or jieba) tokens without white space, with the marks of `docmt.text.spacing`. Splitters
    are loaded on first use, so that commands that only detokenize start faster.
    """

    tokenization = "words"

    def __init__(self, lang: str, *, normalize: bool = False, lowercase: bool = False) -> None:
        """Raise UserError if the language is unknown."""
        self.lang = check_language(lang, self.tokenization)
        self._normalize, self._lowercase = normalize, lowercase
        self._spacing = Spacing(lang)

    @cached_property
    def _split(self) -> Callable[[str], list[str]]:
        return chinese_words if language_of(self.lang) == "zh" else moses_splitter(self.lang)

    @cached_property
    def _normalized(self) -> Callable[[str], str]:
        from sacremoses import MosesPunctNormalizer

        return MosesPunctNormalizer(language_of(self.lang)).normalize

    def normalize(self, line: str) -> str:
        """Return the line as detokenization restores it: cleaned, and optionally normalized and lowercased."""
        text = self._clean(line)
        return text.lower() if self._lowercase else text

    def _clean(self, line: str) -> str:
        text = clean(line)
        # Cleaned again, because normalization can add spaces.
        if self._normalize:
            return clean(self._normalized(text))
        return text

    def tokenize(self, line: str) -> list[str]:
        """Return the marked tokens of a line. An empty line has none."""
        text = self._clean(line)
        if not text:
            return []
        words = self._split(text)
        glued = _gaps(text, words)
        if glued is None:
            # The library changed a character, since the text contains an internal marker: split only at spaces.
            words = text.split(" ")
            glued = [False] * len(words)
        # Lowercase last: the library recognizes abbreviations and sentence ends by capitals.
        marked = self._spacing.mark(words, glued)
        if self._lowercase:
            return list(map(str.lower, marked))
        return marked

    def detokenize(self, tokens: list[str]) -> str:
        """Return the text of tokens with or without marks."""
        return self._spacing.join(tokens)


class PlainTokenizer(Tokenizer):
    """Tokenizer before SentencePiece: cleans a line in any language and splits it at spaces."""

    tokenization = "sentencepiece"

    def tokenize(self, line: str) -> list[str]:
        """Split a cleaned line at spaces."""
        return self.normalize(line).split()

    def detokenize(self, tokens: list[str]) -> str:
        """Join tokens by spaces."""
        return " ".join(tokens)


@functools.cache
def get_tokenizer(
    lang: str, *, normalize: bool = False, lowercase: bool = False, tokenization: str = "words"
) -> Tokenizer:
    """Return the tokenizer for a language, built once per process because its tables load slowly."""
    kind = PlainTokenizer if tokenization == "sentencepiece" else Tokenizer
    return kind(lang, normalize=normalize, lowercase=lowercase)


def plain_tokens(tokens: list[str]) -> list[str]:
    """Return tokens without marks: escaped Moses tokens, with `@` and `▁` also escaped."""
    return [split_marks(token)[1] for token in tokens if token != BLANK]


def sentence_words(line: str, lang: str) -> tuple[str, ...]:
    """Split a plain sentence into words, without marks and escapes. An empty line has no words."""
    return tuple(map(unescape, plain_tokens(get_tokenizer(lang).tokenize(line))))


def _gaps(text: str, words: list[str]) -> list[bool] | None:
    """Return, per word, true if no space precedes it. None if the words do not spell the text."""
    glued: list[bool] = []
    position = 0
    for word in words:
        has_blank = text.startswith(" ", position)
        position += has_blank
        if not text.startswith(word, position):
            return None
        position += len(word)
        glued.append(not has_blank)
    if position != len(text):
        return None
    return glued


@functools.cache
def moses_splitter(lang: str) -> Callable[[str], list[str]]:
    """Return the Moses tokenizer for a language: tokens without escapes, not split at hyphens in words."""
    from sacremoses import MosesTokenizer  # here, because it takes 0.4 seconds

    moses = MosesTokenizer(language_of(lang))
    # The library's methods build sets with 100,000 letters at every full stop.
    alphabetic, lower = frozenset(moses.IsAlpha), frozenset(moses.IsLower)
    moses.isanyalpha = lambda text: not alphabetic.isdisjoint(text)
    moses.islower = lambda text: lower.issuperset(text)
    return lambda text: cast("list[str]", moses.tokenize(text, escape=False))  # a str only with return_str


def chinese_words(text: str) -> list[str]:
    """Split a Chinese text into words with jieba. Spaces are dropped."""
    return [word for word in _jieba().lcut(text) if word.strip()]


@functools.cache
def _jieba() -> "JiebaTokenizer":
    """Return jieba's tokenizer with its bundled dictionary (0.8 seconds to load)."""
    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    # `jieba.cut` would instead read `jieba.cache` from the temporary folder, where other users could replace it and
    # silently change the words. Reading the dictionary is not slower.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
