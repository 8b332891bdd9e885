"""Subwords by SentencePiece: pieces of plain text, in which `▁` is a space.

No words are needed first, so this serves languages that are written without spaces, and pretrained models.
"""

import base64
import binascii
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from docmt.errors import UserError
from docmt.text.spacing import BLANK

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor  # pyright: ignore[reportMissingImports]

KEY = "sentencepiece"
"""The key of a codes file that holds models of SentencePiece."""
EVERY = "*"
"""Stands for every language: a model of both."""
MAX_LINE_BYTES = 1 << 16
"""Longer lines are left out of learning; the default of the library leaves out long sentences in Thai."""


class Pieces:
    """Splits tokens into the pieces of a model. Pickled without the library's object, which is made when first used."""

    def __init__(self, model: bytes) -> None:
        self.model = model

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}

    @cached_property
    def _processor(self) -> "SentencePieceProcessor":
        from sentencepiece import SentencePieceProcessor  # pyright: ignore[reportMissingImports]

        try:
            return SentencePieceProcessor(model_proto=self.model)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"the SentencePiece model is damaged ({' '.join(str(error).split())[:120]})") from None

    def split(self, tokens: list[str]) -> list[str]:
        """Split tokens, joined by spaces, into pieces."""
        return self._processor.encode(" ".join(tokens), out_type=str)

    def join(self, pieces: Sequence[str]) -> list[str]:
        """Join any pieces, such as the output of a model, to tokens."""
        return self._processor.decode(list(pieces)).split()

    def symbols(self) -> list[str]:
        """All pieces, in the order of their ids."""
        return [self._processor.id_to_piece(number) for number in range(self._processor.get_piece_size())]


def is_piece(subword: str) -> bool:
    """Whether a subword begins a word of a SentencePiece model; BPE never writes one like it."""
    return len(subword) > 1 and subword.startswith(BLANK)


def learn_pieces(sentences: Iterable[str], *, size: int) -> str:
    """Learn pieces of both languages. Returns the content of a codes file. Raises UserError when there is no text."""
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
            max_sentence_length=MAX_LINE_BYTES,
            num_threads=1,  # more would make the result depend on the machine
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise UserError(f"no SentencePiece model can be learned: {' '.join(str(error).split())[:160]}") from None
    return write_pieces({EVERY: model.getvalue()})


def write_pieces(models: Mapping[str, bytes]) -> str:
    """The content of a codes file with the model of each language, or of every one."""
    coded = {lang: base64.b64encode(model).decode("ascii") for lang, model in models.items()}
    return json.dumps({KEY: coded}, sort_keys=True) + "\n"


def read_pieces(codes: str, *, where: str) -> dict[str, Pieces] | None:
    """The models of a codes file by language; None for one of another kind. Raises UserError when it is damaged."""
    if not codes.startswith("{"):
        return None
    try:
        return {lang: Pieces(base64.b64decode(coded)) for lang, coded in json.loads(codes)[KEY].items()}
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error) as error:
        raise UserError(f"{where}: not a SentencePiece model ({error}): learn it again") from None
