"""Subwords: byte pair encoding (subword-nmt, `@@` at the end of all but a token's last subword) or SentencePiece.

A codes file contains BPE merges, or SentencePiece models as JSON. SentencePiece splits plain text, with `▁` for a
space. Since it needs no words, it also works for languages without spaces, and for pretrained models.
"""

import base64
import binascii
import contextlib
import io
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmt.errors import UserError
from docmt.files import read_text

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor  # pyright: ignore[reportMissingImports]

SEPARATOR = "@@"
HEADER = "#version: 0.2"
SENTENCEPIECE_KEY = "sentencepiece"
# Key of a SentencePiece model for all languages.
EVERY = "*"
# Maximum number of word types for learning merges, at 1.3 kilobytes per type. Further types are rare in all texts.
MAX_TYPES = 2_000_000
RESERVED, MAX_LINE_BYTES = "\u2585", 1 << 16
"""SentencePiece does not learn from lines with this character, nor from longer lines."""

log = logging.getLogger(__name__)


class BpeModel:
    """BPE merges."""

    max_cached_words = 1 << 18

    def __init__(self, codes: str) -> None:
        from subword_nmt.apply_bpe import BPE

        _check_merges(codes, where="BPE codes")
        if codes.rstrip("\n") == HEADER:
            # The library needs at least one merge, here of a character that never occurs.
            codes = f"{codes.rstrip()}\n\uffff \uffff\n"
        self._bpe = BPE(io.StringIO(codes), separator=SEPARATOR)

    def split(self, tokens: list[str]) -> list[str]:
        """Split tokens into subwords."""
        # The library caches subwords without a limit, which takes gigabytes for a large corpus.
        if len(self._bpe.cache) > self.max_cached_words:
            self._bpe.cache.clear()
        return self._bpe.segment_tokens(tokens)

    def join(self, subwords: Iterable[str]) -> list[str]:
        """Join subwords to tokens. Drops a final separator, left by truncated decoding."""
        tokens, open_token = [], ""
        for subword in subwords:
            if subword.endswith(SEPARATOR):
                open_token += subword.removesuffix(SEPARATOR)
            else:
                tokens.append(open_token + subword)
                open_token = ""
        if open_token:
            tokens.append(open_token)
        return tokens


class SentencePieceModel:
    """A SentencePiece model. It is pickled as bytes, and loaded on first use."""

    def __init__(self, model: bytes) -> None:
        self.model = model

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}

    @cached_property
    def _processor(self) -> "SentencePieceProcessor":
        from sentencepiece import SentencePieceProcessor  # pyright: ignore[reportMissingImports]

        processor = SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self.model)  # unlike the constructor, it refuses an empty model
            return processor
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the SentencePiece model is damaged ({' '.join(str(error).split())[:120]})") from None

    def split(self, tokens: list[str]) -> list[str]:
        """Split tokens, joined by spaces, into pieces."""
        return self._processor.encode(" ".join(tokens), out_type=str)

    def join(self, pieces: Iterable[str]) -> list[str]:
        """Join arbitrary pieces, for example model output, to tokens."""
        return self._processor.decode(list(pieces)).split()

    def symbols(self) -> list[str]:
        """Return all pieces in id order."""
        return [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]


def learn_merges(sentences: Iterable[str], *, merges: int, min_frequency: int) -> str:
    """Learn BPE merges on tokenized lines. Returns the content of a codes file: a header, then one merge per line.

    The rarest words beyond `MAX_TYPES` types are left out.
    """
    from subword_nmt import learn_bpe as library

    counts: Counter[str] = Counter()
    n_left_out = 0
    for line in sentences:
        counts.update(filter(None, line.strip("\r\n ").split(" ")))
        if len(counts) > 4 * MAX_TYPES:  # counting takes an eighth of the memory for learning
            n_left_out += len(counts) - MAX_TYPES
            counts = _most_frequent(counts)
    if not counts:
        raise UserError("no text to learn BPE merges from: the training text is empty")
    surplus = max(0, len(counts) - MAX_TYPES) + n_left_out
    if surplus > 0:
        counts = _most_frequent(counts)
        log.warning("learning BPE on the %d most frequent words; %d rarer words are omitted", MAX_TYPES, surplus)
    codes = io.StringIO()
    if max(map(len, counts)) == 1:  # nothing to merge, and the library would fail
        return f"{HEADER}\n"
    # The library prints a progress bar and remarks even if standard error is not a terminal.
    messages = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    with messages:
        # As a dictionary in text order, by which the library breaks ties.
        lines = (f"{word} {count}" for word, count in counts.items())
        library.learn_bpe(lines, codes, merges, min_frequency=min_frequency, is_dict=True)
    return codes.getvalue()


def _most_frequent(counts: Counter[str]) -> Counter[str]:
    # Not `most_common`, whose heap is slow for millions. Sorting is stable, so ties keep the text order.
    return Counter(dict(sorted(counts.items(), key=itemgetter(1), reverse=True)[:MAX_TYPES]))


def learn_sentencepiece(sentences: Iterable[str], *, size: int) -> str:
    """Learn pieces jointly for both languages. Returns the content of a codes file."""
    from sentencepiece import SentencePieceTrainer  # pyright: ignore[reportMissingImports]

    model = io.BytesIO()
    n_skipped = 0

    def usable() -> Iterator[str]:
        nonlocal n_skipped
        for sentence in filter(None, sentences):
            # The library skips such lines without a message.
            if RESERVED in sentence or len(sentence.encode()) > MAX_LINE_BYTES:
                n_skipped += 1
            else:
                yield sentence

    try:
        SentencePieceTrainer.train(
            sentence_iterator=usable(),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,  # little text has fewer pieces
            character_coverage=1.0,  # rare characters also need pieces
            normalization_rule_name="identity",  # so that text can be restored
            max_sentence_length=MAX_LINE_BYTES,  # the default skips long sentences in Thai
            num_threads=1,  # more would make the result depend on the machine
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"no SentencePiece model can be learned: {' '.join(str(error).split())[:160]}") from None
    if n_skipped:
        log.warning(
            "learning pieces without %d lines that contain %s or are longer than %d bytes",
            n_skipped,
            RESERVED,
            MAX_LINE_BYTES,
        )
    return sentencepiece_codes({EVERY: model.getvalue()})


def sentencepiece_codes(models: Mapping[str, bytes]) -> str:
    """Return the content of a codes file for language (or `EVERY`) → SentencePiece model."""
    coded = {lang: base64.b64encode(model).decode("ascii") for lang, model in models.items()}
    return json.dumps({SENTENCEPIECE_KEY: coded}, sort_keys=True) + "\n"


def sentencepiece_models(codes: str, *, where: str) -> dict[str, SentencePieceModel] | None:
    """Return the SentencePiece models of a codes file by language. None for BPE merges."""
    # Merges begin with a `#version` line, the JSON object with a brace.
    if not codes.startswith("{"):
        return None
    try:
        coded = json.loads(codes)[SENTENCEPIECE_KEY].items()
        return {lang: SentencePieceModel(base64.b64decode(model)) for lang, model in coded}
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error) as error:
        raise UserError(f"{where}: not a SentencePiece model ({error}): learn it again") from None


def subword_model(codes: str, lang: str) -> BpeModel | SentencePieceModel:
    """Return the model for a language in a codes file."""
    models = sentencepiece_models(codes, where="codes")
    if models is None:
        return BpeModel(codes)
    model = models.get(lang) or models.get(EVERY)
    if model is None:
        raise UserError(f"language {lang!r}: the SentencePiece models are for {' and '.join(models)}")
    return model


def read_codes(path: Path) -> str:
    """Read a codes file."""
    codes = read_text(path)
    if sentencepiece_models(codes, where=str(path)) is None:
        _check_merges(codes, where=str(path))
    return codes


def _check_merges(codes: str, *, where: str) -> None:
    lines = codes.rstrip("\n").split("\n")
    if lines[0] != HEADER:
        raise UserError(f"{where}: line 1 must be {HEADER!r}: create the file with `docmt text learn-bpe`")
    for number, line in enumerate(lines[1:], start=2):
        if len(line.split(" ")) != 2 or len(line.split()) != 2:
            raise UserError(f"{where}: line {number} must be two subwords, separated by a space")
