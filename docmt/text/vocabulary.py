"""The vocabulary: which integer stands for which subword."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from docmt.errors import UserError
from docmt.files import read_lines, write_lines

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<mask>", "<eod>")
PAD, BOS, EOS, UNK, MASK, EOD = range(len(SPECIALS))
N_SPECIALS = len(SPECIALS)


class Vocabulary:
    """An ordered list of symbols: the specials at their fixed ids, then subwords by falling frequency.

    Text cannot name a special: a subword spelled like one is encoded as `UNK`.

    Attributes:
        symbols: the symbol of each id, specials included.
        counts: how often each symbol stood in the training text; 0 for specials and where it is not known.
    """

    def __init__(self, counts: Sequence[tuple[str, int]]) -> None:
        """Make a vocabulary of subwords in the order of their ids, without specials.

        Raises UserError when a subword stands twice, is spelled like a special, is empty or holds white space.
        """
        names = [symbol for symbol, _ in counts]
        self.symbols: tuple[str, ...] = (*SPECIALS, *names)
        self.counts: tuple[int, ...] = (*(0 for _ in SPECIALS), *(count for _, count in counts))
        self._ids = {symbol: number for number, symbol in enumerate(names, start=N_SPECIALS)}
        if len(self._ids) != len(names):
            twice = next(symbol for symbol, count in Counter(names).items() if count > 1)
            raise UserError(f"vocabulary: {twice!r} stands twice")
        for symbol in names:
            if symbol in SPECIALS:
                raise UserError(f"vocabulary: {symbol!r} is a special and cannot be a subword")
            if symbol.split() != [symbol]:
                raise UserError(f"vocabulary: {symbol!r} is empty or holds white space")

    @classmethod
    def from_symbols(cls, symbols: Iterable[str]) -> Self:
        """Make a vocabulary of symbols in the order of their ids; the leading specials may be left out."""
        names = list(symbols)
        if tuple(names[:N_SPECIALS]) == SPECIALS:
            names = names[N_SPECIALS:]
        return cls([(name, 0) for name in names])

    @classmethod
    def from_sentences(cls, sentences: Iterable[Iterable[str]]) -> Self:
        """Count subwords and sort them by falling frequency, ties by spelling; spellings of specials are left out."""
        counts = Counter(symbol for sentence in sentences for symbol in sentence)
        for special in SPECIALS:
            counts.pop(special, None)
        return cls(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a vocabulary file. Raises UserError that names the first bad line."""
        rows = []
        for number, line in enumerate(read_lines(path), start=1):
            symbol, tab, count = line.rpartition("\t")
            if not (tab and symbol and count.isascii() and count.isdigit()):
                raise UserError(f"{path}: line {number} must be a symbol, a tab and a count")
            rows.append((symbol, int(count)))
        if tuple(symbol for symbol, _ in rows[:N_SPECIALS]) != SPECIALS:
            raise UserError(f"{path}: the first lines must be {', '.join(SPECIALS)}; learn the vocabulary again")
        try:
            return cls(rows[N_SPECIALS:])
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write one symbol, a tab and its count per line; the line number, from 0, is the id."""
        rows = zip(self.symbols, self.counts, strict=True)
        write_lines(path, (f"{symbol}\t{count}" for symbol, count in rows))

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, subwords: Iterable[str]) -> list[int]:
        """The id of each subword; `UNK` for what is not known or is spelled like a special."""
        return [self._ids.get(subword, UNK) for subword in subwords]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The symbol of each id, specials included as they are spelled. Raises IndexError for an id out of range."""
        return [self.symbols[number] for number in ids]
