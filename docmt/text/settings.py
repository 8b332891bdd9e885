"""Settings of the text stage."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class TextSettings(Settings):
    """Tokenization and subwords (docs/text.md). Source and target share subwords and vocabulary."""

    tokenization: Literal["words", "sentencepiece"] = "words"
    """`words`: a tokenizer for the language, then BPE. `sentencepiece`: SentencePiece on raw text, for any language
    (requires `truecase: false`)."""
    sentencepiece_size: int = Field(default=32000, ge=1)
    """SentencePiece vocabulary size, joint for both languages."""
    pretrained: str | None = None
    """Published model (folder, or name in `docmt models list`) whose subwords are used (docs/pretrained.md). Default:
    learn subwords."""
    keep_pieces: Literal["all", "seen"] = "all"
    """Subwords of `pretrained` to keep in the vocabulary: `all`, or only those `seen` in the training text."""
    normalize: bool = False
    """Replace typographic quotes, dashes and spaces by plain ones (Moses punctuation normalizer). Cannot be undone."""
    truecase: bool = True
    """Write the first word of a line as it is written inside sentences of the training text."""
    lowercase: bool = False
    """Lowercase the text. Cannot be undone."""
    bpe_merges: int = Field(default=30000, ge=1)
    """Number of BPE merges, learned jointly on both languages."""
    bpe_min_frequency: int = Field(default=2, ge=1)
    """Minimum frequency of a pair to be merged."""

    def tokenizer_options(self) -> dict[str, Any]:
        """The options of `get_tokenizer`."""
        return {"normalize": self.normalize, "lowercase": self.lowercase, "tokenization": self.tokenization}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.truecase and self.lowercase:
            raise ValueError("truecase and lowercase exclude each other: set one of them to false")
        if self.truecase and self.tokenization == "sentencepiece":
            raise ValueError("tokenization 'sentencepiece' does not support truecase: set truecase to false")
        if self.pretrained is not None and self.tokenization != "sentencepiece":
            raise ValueError("pretrained requires tokenization 'sentencepiece'")
        return self
