"""Settings of the text stage."""

from typing import Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class TextSettings(Settings):
    """How sentences become subwords.

    The tokeniser follows from the language: jieba for `zh`, Moses for all others. Source and target share one set of
    BPE merges and one vocabulary.
    """

    normalise: bool = False
    """Replace typographic quotes, dashes and spaces by plain ones (Moses punctuation normaliser); cannot be undone."""
    truecase: bool = True
    """Write the first word of a line as it is written inside sentences of the training text."""
    lowercase: bool = False
    """Write everything in lower case; cannot be undone."""
    bpe_merges: int = Field(30000, ge=1)
    """BPE merges, learnt on both sides of the training text together."""
    bpe_min_frequency: int = Field(2, ge=1)
    """Stop learning merges when no pair of symbols is as frequent as this."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.truecase and self.lowercase:
            raise ValueError("truecase and lowercase contradict each other: set one of them to false")
        return self
