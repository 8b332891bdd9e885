"""Subwords: byte pair encoding (subword-nmt, `@@` at the end of all but a token's last subword) or SentencePiece.

A codes file holds one of them: BPE merges, or SentencePiece models as JSON. Pieces of SentencePiece are parts of plain
text in which `▁` is a space. They need no words, and so serve languages without spaces, and pretrained models.
"""

import base64
import binascii
import contextlib
import io
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
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
# The language of a SentencePiece model that serves all languages.
EVERY = "*"
# Different words on which merges are learned, at 1.3 kilobytes each; the others are rare in every text.
MAX_TYPES = 2_000_000

log = logging.getLogger(__name__)


class BpeModel:
    """BPE merges."""

    max_cached_words = 1 << 18

    def __init__(self, codes: str) -> None:
        from subword_nmt.apply_bpe import BPE

        _check_merges(codes, where="BPE codes")
        if codes.rstrip("\n") == HEADER:
            # The library needs at least one merge: one of a character that never occurs.
            codes = f"{codes.rstrip()}\n\uffff \uffff\n"
        self._bpe = BPE(io.StringIO(codes), separator=SEPARATOR)

    def split(self, tokens: list[str]) -> list[str]:
        """Split tokens into subwords."""
        # The library caches the subwords of every word without a limit: gigabytes in a large corpus.
        if len(self._bpe.cache) > self.max_cached_words:
            self._bpe.cache.clear()
        return self._bpe.segment_tokens(tokens)

    def join(self, subwords: Iterable[str]) -> list[str]:
        """Join subwords to tokens. A separator at the very end, where decoding was cut off, is dropped."""
        tokens, open_token = [], ""
        for subword in subwords:
            if subword.endswith(SEPARATOR):
                open_token += subword.removesuffix(SEPARATOR)
            else:
                tokens.append(open_token + subword)
                open_token = ""
        return [*tokens, open_token] if open_token else tokens


class SentencePieceModel:
    """A SentencePiece model. Pickled as bytes, without the library's object, which is made on first use."""

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
        """Join any pieces, such as the output of a model, to tokens."""
        return self._processor.decode(list(pieces)).split()

    def symbols(self) -> list[str]:
        """All pieces, in the order of their ids."""
        return [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]


def learn_merges(sentences: Iterable[str], *, merges: int, min_frequency: int) -> str:
    """Learn BPE merges on tokenized lines. Returns the content of a codes file: a header, then one merge per line.

    Of more than `MAX_TYPES` different words, the rarest are left out.
    """
    from subword_nmt import learn_bpe as library

    counts: Counter[str] = Counter()
    n_left_out = 0
    for line in sentences:
        counts.update(filter(None, line.strip("\r\n ").split(" ")))
        if len(counts) > 4 * MAX_TYPES:  # counting takes an eighth of the memory of learning
            n_left_out += len(counts) - MAX_TYPES
            counts = _most_frequent(counts)
    if not counts:
        raise UserError("no text to learn BPE merges from: the training text is empty")
    if (surplus := max(0, len(counts) - MAX_TYPES) + n_left_out) > 0:
        counts = _most_frequent(counts)
        log.warning("BPE is learned on the %d most frequent words; %d rarer ones are left out", MAX_TYPES, surplus)
    codes = io.StringIO()
    if max(map(len, counts)) == 1:  # nothing to merge, and the library would fail
        return f"{HEADER}\n"
    # The library draws a progress bar and writes remarks even if standard error is not a terminal.
    messages = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    with messages:
        # As a dictionary, in the order of the text: the library breaks ties by it.
        lines = (f"{word} {count}" for word, count in counts.items())
        library.learn_bpe(lines, codes, merges, min_frequency=min_frequency, is_dict=True)
    return codes.getvalue()


def _most_frequent(counts: Counter[str]) -> Counter[str]:
    # Not `most_common`, whose heap is slow for millions. Sorting is stable: among equals, the first in the text stay.
    return Counter(dict(sorted(counts.items(), key=itemgetter(1), reverse=True)[:MAX_TYPES]))


def learn_sentencepiece(sentences: Iterable[str], *, size: int) -> str:
    """Learn pieces of both languages. Returns the content of a codes file."""
    from sentencepiece import SentencePieceTrainer  # pyright: ignore[reportMissingImports]

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=filter(None, sentences),
            model_writer=model,
            vocab_size=size,
            hard_vocab_limit=False,  # little text has fewer pieces
            character_coverage=1.0,  # the vocabulary of docmt counts what occurs
            normalization_rule_name="identity",  # text comes back as it was
            max_sentence_length=1 << 16,  # longer lines are skipped; the default skips long sentences in Thai
            num_threads=1,  # more would make the result depend on the machine
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"no SentencePiece model can be learned: {' '.join(str(error).split())[:160]}") from None
    return sentencepiece_codes({EVERY: model.getvalue()})


def sentencepiece_codes(models: Mapping[str, bytes]) -> str:
    """The content of a codes file with the SentencePiece model of each language, or of every one."""
    coded = {lang: base64.b64encode(model).decode("ascii") for lang, model in models.items()}
    return json.dumps({SENTENCEPIECE_KEY: coded}, sort_keys=True) + "\n"


def sentencepiece_models(codes: str, *, where: str) -> dict[str, SentencePieceModel] | None:
    """The models of a codes file by language; None if it holds BPE merges."""
    # Merges begin with a `#version` line, the JSON object with a brace.
    if not codes.startswith("{"):
        return None
    try:
        coded = json.loads(codes)[SENTENCEPIECE_KEY].items()
        return {lang: SentencePieceModel(base64.b64decode(model)) for lang, model in coded}
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error) as error:
        raise UserError(f"{where}: not a SentencePiece model ({error}): learn it again") from None


def subword_model(codes: str, lang: str) -> BpeModel | SentencePieceModel:
    """The model of a language in a codes file."""
    models = sentencepiece_models(codes, where="codes")
    if models is None:
        return BpeModel(codes)
    found = models.get(lang) or models.get(EVERY)
    if found is None:
        raise UserError(f"language {lang!r}: the SentencePiece models are for {' and '.join(models)}")
    return found


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
