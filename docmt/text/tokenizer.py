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
# Codes of the languages for which the Moses tokenizer has rules; of some that its general rules fit, since they
# separate words by blanks (its list of abbreviations is then English); and `zh`.
LANGUAGES = frozenset([*_CODES.split(), *_GENERAL_CODES.split(), "zh"])

_WHITE_SPACE = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b]")


def check_language(lang: str, tokenization: str = "words") -> str:
    """Return the language code itself."""
    language = language_of(lang)
    if tokenization == "sentencepiece":
        if not re.fullmatch("[a-z]{2,3}", lang):
            raise UserError(f"language {lang!r}: a code has two or three lowercase letters: write {language}")
    elif language not in LANGUAGES:
        if not has_blanks(language):
            raise UserError(
                f"language {lang!r} separates no words by blanks, and docmt has a tokenizer for Chinese only: take "
                "tokenization: sentencepiece"
            )
        raise UserError(f"unknown language {lang!r}; {nearest(lang, sorted(LANGUAGES))}")
    return lang


def clean(line: str) -> str:
    """A line as the tokenizer sees it: runs of white space become one space, control characters are removed."""
    return _WHITE_SPACE.sub(" ", _CONTROL.sub("", line)).strip()


class Tokenizer:
    """Tokenizes and detokenizes lines of one language.

    Tokens are as from Moses (or jieba), escaped, with marks for spaces that cannot be guessed: see
    `docmt.text.spacing`. A token has no white space. The splitters are loaded on first use: commands that only
    detokenize start faster.
    """

    tokenization = "words"

    def __init__(self, lang: str, *, normalize: bool = False, lowercase: bool = False) -> None:
        """Raise UserError when the language is unknown."""
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
        """The line that detokenization can restore: cleaned, and normalized and lowercased if so set."""
        text = self._clean(line)
        return text.lower() if self._lowercase else text

    def _clean(self, line: str) -> str:
        text = clean(line)
        # Cleaned again, because normalization can add spaces.
        return clean(self._normalized(text)) if self._normalize else text

    def tokenize(self, line: str) -> list[str]:
        """The marked tokens of a line; none for an empty line."""
        text = self._clean(line)
        if not text:
            return []
        words = self._split(text)
        glued = _gaps(text, words)
        if glued is None:
            # The library changed a character (the text can contain its internal markers): split at spaces only.
            words = text.split(" ")
            glued = [False] * len(words)
        # Lower case comes last: the library finds abbreviations and sentence ends by capitals.
        marked = self._spacing.mark(words, glued)
        return [token.lower() for token in marked] if self._lowercase else marked

    def detokenize(self, tokens: list[str]) -> str:
        """The text of tokens, with or without marks."""
        return self._spacing.join(tokens)


class PlainTokenizer(Tokenizer):
    """Only cleans a line, of any language, and splits it at spaces: SentencePiece does the rest."""

    tokenization = "sentencepiece"

    def tokenize(self, line: str) -> list[str]:
        """The parts of a line between spaces."""
        return self.normalize(line).split()

    def detokenize(self, tokens: list[str]) -> str:
        """Tokens with spaces between them."""
        return " ".join(tokens)


@functools.cache
def get_tokenizer(
    lang: str, *, normalize: bool = False, lowercase: bool = False, tokenization: str = "words"
) -> Tokenizer:
    """The tokenizer of a language, built once per process because its tables take a while."""
    kind = PlainTokenizer if tokenization == "sentencepiece" else Tokenizer
    return kind(lang, normalize=normalize, lowercase=lowercase)


def plain_tokens(tokens: list[str]) -> list[str]:
    """Tokens without marks: as Moses escapes them, except that `@` and `▁` are escaped too."""
    return [split_marks(token)[1] for token in tokens if token != BLANK]


def sentence_words(line: str, lang: str) -> tuple[str, ...]:
    """Tokenize a plain sentence, without the marks and escapes of the tokenizer; an empty line has no words."""
    return tuple(map(unescape, plain_tokens(get_tokenizer(lang).tokenize(line))))


def _gaps(text: str, words: list[str]) -> list[bool] | None:
    """For each word of a text, whether no space precedes it; None when the words do not make up the text."""
    glued, position = [], 0
    for word in words:
        has_blank = text.startswith(" ", position)
        position += has_blank
        if not text.startswith(word, position):
            return None
        position += len(word)
        glued.append(not has_blank)
    return glued if position == len(text) else None


@functools.cache
def moses_splitter(lang: str) -> Callable[[str], list[str]]:
    """The Moses tokenizer of sacremoses: plain tokens, neither escaped nor split at hyphens within words."""
    from sacremoses import MosesTokenizer  # here, because it takes 0.4 seconds

    moses = MosesTokenizer(language_of(lang))
    # The library's methods build sets of 100,000 letters for each full stop.
    alphabetic, lower = frozenset(moses.IsAlpha), frozenset(moses.IsLower)
    moses.isanyalpha = lambda text: not alphabetic.isdisjoint(text)
    moses.islower = lambda text: lower.issuperset(text)
    return lambda text: cast("list[str]", moses.tokenize(text, escape=False))  # a str only with return_str


def chinese_words(text: str) -> list[str]:
    """The words of a Chinese text by jieba, without the blanks between them."""
    return [word for word in _jieba().lcut(text) if word.strip()]


@functools.cache
def _jieba() -> "JiebaTokenizer":
    """Jieba's tokenizer with its own dictionary, which takes 0.8 seconds to read."""
    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    # `jieba.cut` would read `jieba.cache` in the folder for temporary files instead, which any user of the machine may
    # have written: other words, without a warning. Reading the dictionary is no slower.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
