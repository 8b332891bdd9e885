"""Settings of evaluation."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from docmt.decoding.settings import ContrastSettings
from docmt.evaluation.comet_settings import CometSettings
from docmt.evaluation.metrics import check_metric, default_metrics, selectable_metrics
from docmt.settings import Settings

MetricName = Annotated[
    str, AfterValidator(check_metric), WithJsonSchema({"enum": selectable_metrics(), "type": "string"})
]


class EvaluationSettings(Settings):
    """How translations are scored."""

    metrics: list[MetricName] = Field(default=default_metrics(), min_length=1)
    """Scores to compute. Those over sentence pairs are left out for systems without sentence alignment. METEOR needs
    Java, and APT (accuracy of pronouns) the word aligner eflomal; without these programs they have no value."""
    lowercase: bool = False
    """Ignore case (customary for Chinese to English); the signatures then say `case:lc`."""
    bleu_tokenizer: Literal["auto", "13a", "intl", "zh", "char"] = "auto"
    """sacreBLEU's tokenizer for the detokenized scores; `auto` is `zh` for Chinese and `13a` otherwise."""
    word_tokenizer: Literal["auto", "moses", "jieba"] = "auto"
    """Tokenizer of the tokenized scores; `auto` is `jieba` for Chinese and `moses` otherwise."""
    meteor_language: Literal["auto", "independent"] = "auto"
    """`auto` is METEOR's setting for the target language where it has one (see docs/evaluation.md), `independent` its
    language-independent setting, which only matches identical words."""
    aligner_runs: int = Field(default=3, ge=1, le=100)
    """Number of word alignments for APT. The aligner is random, so APT is the mean over this many runs."""
    aligner_sentences: int = Field(default=20_000, ge=0)
    """Sentence pairs from the beginning of the training text that are aligned together with the test for APT."""

    comet: CometSettings | None = None
    """COMET, by a program in a separate environment; null computes none."""
    contrast: ContrastSettings = ContrastSettings()
    """How candidates of contrastive test sets are compared."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = next((name for name in self.metrics if self.metrics.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"duplicate metric {twice!r}")
        return self
