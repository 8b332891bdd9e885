"""Settings of the text stage."""

from typing import Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class TextSettings(Settings):
    """How sentences are split into subwords.

    The language decides the tokenizer: jieba for `zh`, Moses for others (docs/text.md lists them). Source and target
    share one set of BPE merges and one vocabulary.
    """

    normalise: bool = False
    """Replace typographic quotes, dashes and spaces by plain ones (Moses punctuation normalizer); irreversible."""
    truecase: bool = True
    """Write the first word of a line as it is written inside sentences of the training text."""
    lowercase: bool = False
    """Write everything in lower case; irreversible."""
    bpe_merges: int = Field(default=30000, ge=1)
    """BPE merges, learned jointly on both sides of the training text."""
    bpe_min_frequency: int = Field(default=2, ge=1)
    """Stop learning merges when no pair of symbols occurs this often."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.truecase and self.lowercase:
            raise ValueError("truecase and lowercase exclude each other: set one of them to false")
        return self
