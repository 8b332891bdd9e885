"""Settings of the text stage."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class TextSettings(Settings):
    """How sentences are split into subwords.

    With `tokenization: words` the language decides the tokenizer (docs/text.md). Source and target share segmentation
    and vocabulary.
    """

    later: ClassVar[tuple[str, ...]] = ("tokenization", "sentencepiece_size", "pretrained", "keep_pieces")

    tokenization: Literal["words", "sentencepiece"] = "words"
    """`words`: a tokenizer, then BPE; `sentencepiece`: pieces of plain text, for any language (`truecase` must be
    false)."""
    sentencepiece_size: int = Field(default=32000, ge=1)
    """Most pieces of SentencePiece, learned jointly on both sides."""
    pretrained: str | None = None
    """Published model (folder, or name in `docmt models list`) whose SentencePiece models and pieces are taken
    (docs/pretrained.md)."""
    keep_pieces: Literal["all", "seen"] = "all"
    """Pieces of `pretrained` in the vocabulary: all, or those in the training text."""
    normalise: bool = False
    """Make typographic quotes, dashes and spaces plain (Moses punctuation normalizer); irreversible."""
    truecase: bool = True
    """Write a line's first word as inside sentences of the training text."""
    lowercase: bool = False
    """Write everything in lower case; irreversible."""
    bpe_merges: int = Field(default=30000, ge=1)
    """BPE merges, learned jointly on both sides."""
    bpe_min_frequency: int = Field(default=2, ge=1)
    """Fewest occurrences of a merged pair."""

    def tokenizer_options(self) -> dict[str, Any]:
        """Return the keyword arguments for `get_tokenizer`."""
        return {"normalize": self.normalise, "lowercase": self.lowercase, "tokenization": self.tokenization}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.truecase and self.lowercase:
            raise ValueError("truecase and lowercase exclude each other: set one of them to false")
        if self.truecase and self.tokenization == "sentencepiece":
            raise ValueError("tokenization 'sentencepiece' knows no words to truecase: set truecase to false")
        if self.pretrained is not None and self.tokenization != "sentencepiece":
            raise ValueError("pretrained is for tokenization 'sentencepiece': set it too")
        return self
