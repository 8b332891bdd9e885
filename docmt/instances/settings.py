"""Settings of the instances stage."""

from pydantic import Field

from docmt.settings import Settings


class InstancesSettings(Settings):
    """How documents are split into instances."""

    max_tokens: int = Field(512, ge=8)
    """Most tokens of an instance: the sum over its sentences of max(source, target subwords) + 2 marks."""
    max_sentences: int | None = Field(None, ge=1)
    """Most sentences of an instance; 1 makes every sentence an instance, null sets no limit."""
    min_document_tokens: int | None = Field(None, ge=1)
    """Training documents with fewer tokens (counted as above) are left out and counted; null keeps all."""
    subset: int | None = Field(None, ge=1)
    """Train on a random subset of so many instances (the data-scale study); null takes all."""
    subset_seed: int = 1
    """Seed of the random subset."""
