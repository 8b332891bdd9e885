"""Subwords by byte pair encoding (subword-nmt): every piece of a token but the last ends in `@@`.

A codes file holds BPE merges, or models of SentencePiece (pieces.py).
"""

import contextlib
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from docmt.errors import UserError
from docmt.files import atomic_writer, read_text
from docmt.text.pieces import EVERY, Pieces, read_pieces

SEPARATOR = "@@"
HEADER = "#version: 0.2"

MAX_CACHED_WORDS = 1 << 18
"""The library remembers the pieces of each word; the words of a large corpus would take gigabytes."""

_NO_MERGE = "\uffff \uffff"
"""A merge of a character that never occurs, because the library needs at least one merge."""


def learn_codes(sentences: Iterable[str], *, merges: int, min_frequency: int) -> str:
    """Learn BPE merges on tokenized lines. Returns the content of a codes file: a header, then one merge per line.

    Raises UserError when there is no text.
    """
    longest = 0

    def lines() -> Iterator[str]:
        nonlocal longest
        for line in sentences:
            if longest < 2:
                longest = max(longest, *map(len, line.split(" ")))
            yield line

    codes = io.StringIO()
    # The library draws a progress bar and writes remarks even if standard error is not a terminal.
    messages = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    try:
        with messages:
            learn_bpe(lines(), codes, merges, min_frequency=min_frequency)
    except ValueError:  # the library fails if no word has two characters
        if longest > 1:
            raise
    if not longest:
        raise UserError("no text to learn BPE merges from: the training text is empty")
    return codes.getvalue()


def write_codes(path: Path, codes: str) -> None:
    """Write a codes file."""
    with atomic_writer(path) as file:
        file.write(codes)


def read_codes(path: Path) -> str:
    """Read a codes file. Raises UserError that names the first bad line."""
    codes = read_text(path)
    if read_pieces(codes, where=str(path)) is None:
        _check(codes, where=str(path))
    return codes


def subwords_of(codes: str, lang: str) -> "Subwords | Pieces":
    """What splits and joins sentences of a language. Raises UserError when the codes are malformed or lack it."""
    pieces = read_pieces(codes, where="codes")
    if pieces is None:
        return Subwords(codes)
    found = pieces.get(lang) or pieces.get(EVERY)
    if found is None:
        raise UserError(f"language {lang!r}: the SentencePiece models are for {' and '.join(pieces)}")
    return found


class Subwords:
    """Splits tokens into subwords with given merges."""

    def __init__(self, codes: str) -> None:
        """Raises UserError when the codes are malformed."""
        _check(codes, where="BPE codes")
        self.codes = codes
        has_merges = codes.rstrip("\n") != HEADER
        self._bpe = BPE(io.StringIO(codes if has_merges else f"{codes.rstrip()}\n{_NO_MERGE}\n"), separator=SEPARATOR)

    def split(self, tokens: list[str]) -> list[str]:
        """Split tokens into subwords."""
        if len(self._bpe.cache) > MAX_CACHED_WORDS:
            self._bpe.cache.clear()
        return self._bpe.segment_tokens(tokens)

    def join(self, subwords: Iterable[str]) -> list[str]:
        """As `join_subwords`."""
        return join_subwords(subwords)


def join_subwords(subwords: Iterable[str]) -> list[str]:
    """Join subwords to tokens. A separator at the very end, where decoding was cut off, is dropped."""
    tokens, open_pieces = [], ""
    for subword in subwords:
        if subword.endswith(SEPARATOR):
            open_pieces += subword.removesuffix(SEPARATOR)
        else:
            tokens.append(open_pieces + subword)
            open_pieces = ""
    return [*tokens, open_pieces] if open_pieces else tokens


def _check(codes: str, *, where: str) -> None:
    lines = codes.rstrip("\n").split("\n")
    if lines[0] != HEADER:
        raise UserError(f"{where}: line 1 must be {HEADER!r}: create the file with `docmt text learn-bpe`")
    for number, line in enumerate(lines[1:], start=2):
        if len(line.split(" ")) != 2 or len(line.split()) != 2:
            raise UserError(f"{where}: line {number} must be two subwords, separated by a space")
