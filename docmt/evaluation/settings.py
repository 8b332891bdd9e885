"""Settings of evaluation."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from docmt.evaluation.metrics import check_metric, default_metrics, selectable_metrics
from docmt.settings import Settings

MetricName = Annotated[
    str, AfterValidator(check_metric), WithJsonSchema({"enum": selectable_metrics(), "type": "string"})
]


class EvaluationSettings(Settings):
    """How translations are scored."""

    metrics: list[MetricName] = Field(default=default_metrics(), min_length=1)
    """Scores to compute. Those that need sentence pairs are left out when a system cannot be aligned. METEOR needs
    Java, and APT (accuracy of pronouns) the word aligner eflomal; without these they have no value."""
    lowercase: bool = False
    """Compare without regard to case (customary for Chinese to English); the signatures then say `case:lc`."""
    bleu_tokenizer: Literal["auto", "13a", "intl", "zh", "char"] = "auto"
    """sacreBLEU's tokeniser for the detokenised scores; `auto` is `zh` for Chinese and `13a` otherwise."""
    word_tokenizer: Literal["auto", "moses", "jieba"] = "auto"
    """Words of the tokenised scores; `auto` is `jieba` for Chinese and `moses` otherwise."""
    meteor_language: Literal["auto", "independent"] = "auto"
    """`auto` is METEOR's own setting for the target language where it has one (see docs/evaluation.md), `independent`
    its language-independent one, which matches equal words only."""
    aligner_runs: int = Field(default=3, ge=1, le=100)
    """How often words are aligned for APT. The aligner draws at random, so APT is the mean over as many runs."""
    aligner_sentences: int = Field(default=20_000, ge=0)
    """Sentence pairs of the training text, from its beginning, that are aligned together with the test for APT."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = next((name for name in self.metrics if self.metrics.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"metrics holds {twice!r} twice")
        return self
