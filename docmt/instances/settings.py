"""Settings of the instances stage."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class InstancesSettings(Settings):
    """How documents are split into instances."""

    later: ClassVar[tuple[str, ...]] = ("shuffled",)

    max_tokens: int = Field(default=512, ge=8)
    """Most tokens of an instance: the sum over its sentences of max(source, target subwords) + 2 marks."""
    max_sentences: int | None = Field(default=None, ge=1)
    """Most sentences of an instance; 1 makes every sentence an instance, null sets no limit."""
    min_document_tokens: int | None = Field(default=None, ge=1)
    """Training documents with fewer tokens (counted as above) are left out and counted; null keeps all."""
    subset: int | None = Field(default=None, ge=1)
    """Train on a random subset of this many instances (the data-scale study); null uses all."""
    subset_seed: int = 1
    """Seed of the random subset."""
    shuffled: bool = False
    """Deal the sentence pairs of the training data out to other documents, which then have no trees: a control for
    document models, with the same parameters and sentences, but no context worth using."""


class RestorationSettings(Settings):
    """How a monolingual document is noised, for a model to restore it (cross-task pre-training, §2.1).

    The instances determine its length: the paper cuts documents at `max_sentences` 30.
    """

    gap_ratio: float = Field(default=0.2, ge=0, le=1)
    """Share of sentences that become gap sentences, as far as the rules allow. 0 means masked sentences only
    (Table 7)."""
    mask_ratio: float = Field(default=0.15, ge=0, le=1)
    """Share of the words of all other sentences that are selected."""
    mask_share: float = Field(default=0.8, ge=0, le=1)
    """Share of selected words that become `[MASK2]`."""
    random_share: float = Field(default=0.1, ge=0, le=1)
    """Share of selected words that become a random word; the rest stay unchanged."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(f"mask_share {self.mask_share} and random_share {self.random_share} add up to more than 1")
        return self
