"""Settings of the instances stage."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class InstancesSettings(Settings):
    """How documents are split into instances."""

    later: ClassVar[tuple[str, ...]] = ("shuffled",)

    max_tokens: int = Field(default=512, ge=8)
    """Most tokens of an instance: over its sentences, the sum of max(source, target subwords) + 2 marks."""
    max_sentences: int | None = Field(default=None, ge=1)
    """Most sentences of an instance; null sets no limit."""
    min_document_tokens: int | None = Field(default=None, ge=1)
    """Training documents with fewer tokens are left out and counted; null keeps all."""
    subset: int | None = Field(default=None, ge=1)
    """Train on this many random instances; null uses all."""
    subset_seed: int = 1
    """Seed of the random subset."""
    shuffled: bool = False
    """Deal training sentence pairs out to other documents, without trees: a control for document models, with the same
    sentences but no useful context."""


class RestorationSettings(Settings):
    """Noise in a monolingual document, for a model to restore it (cross-task pre-training, §2.1).

    The paper cuts documents at `max_sentences` 30.
    """

    gap_ratio: float = Field(default=0.2, ge=0, le=1)
    """Share of gap sentences, as far as the rules allow; 0: masked sentences only (Table 7)."""
    mask_ratio: float = Field(default=0.15, ge=0, le=1)
    """Share of words selected in all other sentences."""
    mask_share: float = Field(default=0.8, ge=0, le=1)
    """Share of selected words that become `[MASK2]`."""
    random_share: float = Field(default=0.1, ge=0, le=1)
    """Share of selected words that become random words; the rest stay."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(f"mask_share {self.mask_share} and random_share {self.random_share} add up to more than 1")
        return self
