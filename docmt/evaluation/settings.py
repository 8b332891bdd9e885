"""Settings of evaluation."""

from typing import Literal, Self

from pydantic import Field, model_validator

from docmt.settings import Settings

Metric = Literal[
    "s-BLEU",
    "d-BLEU (instances)",
    "d-BLEU (documents)",
    "tokenised s-BLEU",
    "tokenised d-BLEU (instances)",
    "chrF",
]

METRICS: list[Metric] = [
    "s-BLEU",
    "d-BLEU (instances)",
    "d-BLEU (documents)",
    "tokenised s-BLEU",
    "tokenised d-BLEU (instances)",
    "chrF",
]


class EvaluationSettings(Settings):
    """How translations are scored."""

    metrics: list[Metric] = Field(METRICS, min_length=1)
    """Scores to compute. Those that need sentence pairs are left out when a system cannot be aligned."""
    lowercase: bool = False
    """Compare without regard to case (customary for Chinese to English); the signatures then say `case:lc`."""
    bleu_tokenizer: Literal["auto", "13a", "intl", "zh", "char"] = "auto"
    """sacreBLEU's tokeniser for the detokenised scores; `auto` is `zh` for Chinese and `13a` otherwise."""
    word_tokenizer: Literal["auto", "moses", "jieba"] = "auto"
    """Words of the tokenised scores; `auto` is `jieba` for Chinese and `moses` otherwise."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = next((name for name in self.metrics if self.metrics.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"metrics holds {twice!r} twice")
        return self
