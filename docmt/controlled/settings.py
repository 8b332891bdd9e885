"""Settings of the controlled corpus."""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from docmt.settings import Settings, read_argument

MAX_PRONOUN_DISTANCE = 5


class SelectionWeights(Settings):
    """Relative weights of possible kinds of sentences."""

    introduction: float = Field(default=2.0, gt=0)
    """A sentence that introduces a noun to which a pronoun can refer."""
    pronoun: float = Field(default=10.0, gt=0)
    """A sentence with `it`."""
    deixis: float = Field(default=2.0, gt=0)
    """A sentence with `you` or `your`."""
    ambiguous: float = Field(default=1.0, ge=0)
    """A sentence that decides the sense of an ambiguous word, or uses the word."""
    consistent: float = Field(default=1.0, ge=0)
    """A sentence with a word that has two legitimate renderings."""
    ellipsis: float = Field(default=3.5, ge=0)
    """An elliptical sentence, or one that an elliptical sentence can follow."""
    filler: float = Field(default=0.2, ge=0)
    """A sentence that decides nothing and depends on nothing."""


class CorpusSize(Settings):
    """The size and the seed of a controlled corpus."""

    seed: int = Field(default=1, ge=0)
    """The same seed and settings give the same files, byte for byte."""
    n_train_documents: int = Field(default=3000, ge=1)
    """Documents in the training split; other splits and suites do not depend on it."""
    n_dev_documents: int = Field(default=150, ge=1)
    """Documents in the development split."""
    n_test_documents: int = Field(default=150, ge=1)
    """Documents in the test split."""
    n_suite_items: int = Field(default=300, ge=12, multiple_of=12)
    """Items in each contrastive suite, a multiple of 12 (for complete balance groups)."""


class SelectionSettings(CorpusSize):
    """A controlled corpus in which a pronoun's predicate selects its antecedent; no tree is needed."""

    # Excluded from fingerprints, since older corpora have none in theirs.
    documents: Literal["selection"] = Field(default="selection", exclude=True)
    """In these documents, the predicate of a pronoun selects its antecedent."""
    min_sentences: int = Field(default=6, ge=4)
    """Sentences in the shortest documents."""
    max_sentences: int = Field(default=20, ge=10, le=200)
    """Sentences in the longest documents; suites need at least 10."""
    min_pronouns: int = Field(default=2, ge=0)
    """Fewest sentences with `it` in a document."""
    min_deictic: int = Field(default=2, ge=0)
    """Fewest sentences with `you` or `your` in a document."""
    paired_introductions: float = Field(default=0.6, ge=0, le=1)
    """Share of introductions with two nouns of different genders, which only their class distinguishes; unless 0, a
    document's first is one. With fewer, models learn the class sooner, and guessing works better."""
    weights: SelectionWeights = SelectionWeights()
    """The mixture of the kinds of sentences."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_sentences > self.max_sentences:
            raise ValueError(f"min_sentences {self.min_sentences} is above max_sentences {self.max_sentences}")
        if self.min_sentences < (needed := self.min_length()):
            raise ValueError(
                f"min_sentences {self.min_sentences} is too small: min_pronouns {self.min_pronouns} and min_deictic "
                f"{self.min_deictic}, a greeting and the nouns for the pronouns need {needed}"
            )
        return self

    def min_length(self) -> int:
        """Return the minimum length in sentences. One noun serves up to MAX_PRONOUN_DISTANCE pronouns."""
        n_introductions = max(1, math.ceil(self.min_pronouns / MAX_PRONOUN_DISTANCE))
        return 1 + n_introductions + self.min_pronouns + self.min_deictic


class SegmentWeights(Settings):
    """Relative weights of possible kinds of sentences in nested segments."""

    continuation: float = Field(default=3.0, gt=0)
    """A sentence with `it`, the topic of the innermost open segment."""
    digression: float = Field(default=4.0, gt=0)
    """A sentence that opens a digression."""
    close: float = Field(default=5.0, gt=0)
    """A sentence with `it` that returns from a digression to the segment around it."""
    section: float = Field(default=1.5, gt=0)
    """A sentence that opens a section, where no digression is open."""
    ellipsis: float = Field(default=1.0, ge=0)
    """An elliptical sentence, or one that an elliptical sentence can follow."""
    ambiguous: float = Field(default=1.0, ge=0)
    """A sentence that decides the sense of an ambiguous word, or uses the word."""
    consistent: float = Field(default=1.0, ge=0)
    """A sentence with a word that has two legitimate renderings."""


class SegmentsSettings(CorpusSize):
    """A controlled corpus of nested segments, whose structure decides what a pronoun means."""

    documents: Literal["segments"]
    """In these documents, a pronoun means the topic of the innermost segment that is still open."""
    min_sentences: int = Field(default=10, ge=8)
    """Sentences in the shortest documents."""
    max_sentences: int = Field(default=40, ge=30, le=1000)
    """Sentences in the longest documents; a suite's deepest nesting needs about 20."""
    n_deictic: float = Field(default=2.0, gt=0)
    """Sentences with `you` or `your` in a document, on average."""
    weights: SegmentWeights = SegmentWeights()
    """The mixture of the kinds of sentences."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_sentences > self.max_sentences:
            raise ValueError(f"min_sentences {self.min_sentences} is above max_sentences {self.max_sentences}")
        return self


def _kind(values: Any) -> str:
    found = values.get("documents") if isinstance(values, dict) else getattr(values, "documents", None)
    return "selection" if found is None else str(found)


ControlledSettings = Annotated[
    Annotated[SelectionSettings, Tag("selection")] | Annotated[SegmentsSettings, Tag("segments")],
    Discriminator(
        _kind, custom_error_type="documents", custom_error_message="documents must be one of selection, segments"
    ),
]
"""Settings of a controlled corpus. The key `documents` distinguishes the two kinds."""


class _Section(Settings):
    controlled: ControlledSettings


def load_settings(argument: str) -> ControlledSettings:
    """Read the settings of a controlled corpus from a `--settings` option."""
    values = read_argument(argument, where="corpora.controlled")
    return _Section.load({"controlled": values}, where="corpora").controlled
