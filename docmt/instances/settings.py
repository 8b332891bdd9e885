"""Settings of the instances stage."""

from typing import Self

from pydantic import Field, model_validator

from docmt.settings import Settings


class InstancesSettings(Settings):
    """Limits and selection of instances."""

    max_tokens: int = Field(default=512, ge=8)
    """Maximum length in tokens: the sum over sentences of max(source, target subwords) + 2."""
    max_sentences: int | None = Field(default=None, ge=1)
    """Maximum number of sentences. Default: no limit."""
    min_document_tokens: int | None = Field(default=None, ge=1)
    """Minimum length of training documents in tokens. Shorter documents are left out and counted. Default: keep all."""
    subset: int | None = Field(default=None, ge=1)
    """Number of random training instances to use. Default: all."""
    subset_seed: int = Field(default=1, ge=0)
    """Random seed of the subset."""
    shuffled: bool = False
    """Distribute training sentence pairs randomly over documents (not with `trees`). A control for document models: the
    same sentences without useful context."""


class RestorationSettings(Settings):
    """Noise for document restoration (cross-task pre-training, §2.1). The paper has documents of up to 30 sentences."""

    gap_ratio: float = Field(default=0.2, ge=0, le=1)
    """Share of sentences that are replaced by gaps, as a rounded number of sentences. 0: only masks (Table 7)."""
    clean_neighbors: bool = True
    """Input for a gap: its neighbors without masks, or with the same masks as in their own input. The paper does not
    specify this."""
    mask_ratio: float = Field(default=0.15, ge=0, le=1)
    """Share of words selected in all other sentences."""
    mask_share: float = Field(default=0.8, ge=0, le=1)
    """Share of the selected words that become `[MASK2]`."""
    random_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the selected words that become random words. The rest remain unchanged."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(f"mask_share {self.mask_share} and random_share {self.random_share} add up to more than 1")
        return self
