"""The vocabulary: subwords and their ids."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Self

from docmt.errors import UserError
from docmt.files import read_lines, write_lines

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<mask>", "<eod>")
PAD, BOS, EOS, UNK, MASK, EOD = range(len(SPECIALS))
N_SPECIALS = len(SPECIALS)

# Symbols for document restoration: a gap sentence (between its neighbors), and a masked token.
GAP_MASK, TOKEN_MASK = "[MASK1]", "[MASK2]"

EXTRA = re.compile(r"\[MASK[12]\]|<[a-z]{2,3}>")


def extra_specials(languages: Sequence[str]) -> tuple[str, ...]:
    """Return the special symbols for cross-task training: both masks, and language tags such as `<en>`."""
    for lang in languages:
        if not re.fullmatch(r"[a-z]{2,3}", lang) or language_tag(lang) in SPECIALS:
            raise UserError(f"language {lang!r}: a tag needs a code of two or three lowercase letters, such as en")
    if len(set(languages)) != len(languages):
        raise UserError(f"duplicate language among the tags {' '.join(languages)}")
    return (GAP_MASK, TOKEN_MASK, *map(language_tag, languages))


def language_tag(lang: str) -> str:
    """Return the tag of a language, for example `<en>`."""
    return f"<{lang}>"


class Vocabulary:
    """An ordered list of symbols: specials at fixed ids, extra specials (cross-task training), subwords by frequency.

    Text cannot produce a special: a subword spelled like a special is encoded as `UNK`. The tokenizer escapes `<` and
    `[`, so this does not affect ordinary text.

    Attributes:
        symbols, extras: symbols in id order.
        counts: frequencies of the symbols in the training text (0 for specials and if unknown).
    """

    def __init__(self, counts: Sequence[tuple[str, int]], *, extras: Sequence[str] = ()) -> None:
        """Create a vocabulary from subwords and counts in id order, without specials."""
        self.extras: tuple[str, ...] = tuple(extras)
        specials = (*SPECIALS, *self.extras)
        # Without specials, which `encode` must not produce from text.
        self._ids: dict[str, int] = {}
        for number, (symbol, _) in enumerate(counts, start=len(specials)):
            if symbol in self._ids:
                raise UserError(f"vocabulary: duplicate subword {symbol!r}")
            if symbol in specials:
                raise UserError(f"vocabulary: {symbol!r} is a special symbol and cannot be a subword")
            if symbol.split() != [symbol]:
                raise UserError(f"vocabulary: {symbol!r} is empty or contains white space")
            self._ids[symbol] = number
        self.symbols: tuple[str, ...] = (*specials, *self._ids)
        self.counts: tuple[int, ...] = (*[0] * len(specials), *(count for _, count in counts))

    @classmethod
    def from_symbols(cls, symbols: Iterable[str]) -> Self:
        """Create a vocabulary from symbols in id order. The leading specials are optional."""
        names = list(symbols)
        if tuple(names[:N_SPECIALS]) == SPECIALS:
            names = names[N_SPECIALS:]
        return cls._of_rows([(name, 0) for name in names])

    @classmethod
    def from_sentences(cls, sentences: Iterable[Iterable[str]], *, extras: Sequence[str] = ()) -> Self:
        """Count subwords, except specials, and sort them by decreasing frequency, ties by spelling."""
        # Ties by spelling, so that ids do not depend on the text order.
        counts: Counter[str] = Counter()
        for sentence in sentences:
            counts.update(sentence)
        for special in (*SPECIALS, *extras):
            counts.pop(special, None)
        return cls(sorted(counts.items(), key=lambda item: (-item[1], item[0])), extras=extras)

    @classmethod
    def _of_rows(cls, rows: Sequence[tuple[str, int]]) -> Self:
        # Files do not mark extra specials, which are recognized by form, position and count.
        extras = [symbol for symbol, _ in takewhile(lambda row: row[1] == 0 and EXTRA.fullmatch(row[0]), rows)]
        return cls(rows[len(extras) :], extras=extras)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a vocabulary file."""
        rows = []
        for number, line in enumerate(read_lines(path), start=1):
            symbol, tab, count = line.rpartition("\t")
            # Python refuses to convert thousands of digits.
            if not (tab and symbol and count.isascii() and count.isdigit() and len(count) < 20):
                raise UserError(f"{path}: line {number} must be a symbol, a tab and a count")
            rows.append((symbol, int(count)))
        if tuple(symbol for symbol, _ in rows[:N_SPECIALS]) != SPECIALS:
            raise UserError(f"{path}: the first lines must be {', '.join(SPECIALS)}: learn the vocabulary again")
        try:
            return cls._of_rows(rows[N_SPECIALS:])
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write one line per symbol: the symbol, a tab and its count. The line number, from 0, is the id."""
        rows = zip(self.symbols, self.counts, strict=True)
        write_lines(path, (f"{symbol}\t{count}" for symbol, count in rows))

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def n_specials(self) -> int:
        """Number of fixed and extra specials, whose ids are smaller than it."""
        return N_SPECIALS + len(self.extras)

    def tag(self, lang: str) -> int:
        """Return the id of a language tag."""
        tag = language_tag(lang)
        if tag not in self.extras:
            tags = " ".join(symbol for symbol in self.extras if symbol not in (GAP_MASK, TOKEN_MASK))
            raise UserError(
                f"language {lang!r}: the vocabulary has no tag {tag} (it has {tags or 'none'}): learn it with "
                "`docmt text learn-vocabulary --tags`, or use a model for this language"
            )
        return self.symbols.index(tag)

    def find(self, symbol: str) -> int:
        """Return the id of a symbol, including specials."""
        if symbol not in self.symbols:
            raise UserError(f"the vocabulary has no symbol {symbol!r}, which `marks` of the model requires")
        return self.symbols.index(symbol)

    def masks(self) -> tuple[int, int]:
        """Return the ids of `[MASK1]` and `[MASK2]`."""
        if not {GAP_MASK, TOKEN_MASK} <= set(self.extras):
            raise UserError(
                f"the vocabulary has no {GAP_MASK} and {TOKEN_MASK}, which document restoration needs: learn it with "
                "`docmt text learn-vocabulary --tags`"
            )
        return self.symbols.index(GAP_MASK), self.symbols.index(TOKEN_MASK)

    def encode(self, subwords: Iterable[str]) -> list[int]:
        """Return the ids of subwords, with `UNK` for unknown subwords and specials."""
        return [self._ids.get(subword, UNK) for subword in subwords]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the symbols of ids, including specials. Raises IndexError for an id out of range."""
        return [self.symbols[number] for number in ids]
