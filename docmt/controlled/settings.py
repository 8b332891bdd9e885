"""Settings of the controlled corpus."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from docmt.settings import Settings, read_argument

MAX_PRONOUN_DISTANCE = 5


class SelectionWeights(Settings):
    """Relative frequencies of sentence kinds."""

    introduction: float = Field(default=2.0, gt=0)
    """Sentence that introduces a noun for later pronouns."""
    pronoun: float = Field(default=10.0, gt=0)
    """Sentence with `it`."""
    deixis: float = Field(default=2.0, gt=0)
    """Sentence with `you` or `your`."""
    ambiguous: float = Field(default=1.0, ge=0)
    """Sentence that determines the sense of an ambiguous word, or contains one."""
    consistent: float = Field(default=1.0, ge=0)
    """Sentence with a word that has two valid translations."""
    ellipsis: float = Field(default=3.5, ge=0)
    """Elliptical sentence, or a sentence that can precede one."""
    filler: float = Field(default=0.2, ge=0)
    """Sentence without relation to the context."""


class CorpusSize(Settings):
    """Size and random seed of a generated corpus."""

    seed: int = Field(default=1, ge=0)
    """Random seed. The same settings generate the same files, byte for byte."""
    n_train_documents: int = Field(default=3000, ge=1)
    """Number of training documents. Other splits and suites do not depend on it."""
    n_dev_documents: int = Field(default=150, ge=1)
    """Number of development documents."""
    n_test_documents: int = Field(default=150, ge=1)
    """Number of test documents."""
    n_suite_items: int = Field(default=300, ge=12, multiple_of=12)
    """Number of items per contrastive suite, a multiple of 12 (to balance the suite)."""


class SelectionSettings(CorpusSize):
    """A corpus in which the predicate of a pronoun determines its antecedent, without any discourse structure."""

    generator: Literal["flat"]
    """Documents without nesting."""
    min_sentences: int = Field(default=6, ge=4)
    """Minimum number of sentences per document."""
    max_sentences: int = Field(default=20, ge=10, le=200)
    """Maximum number of sentences per document."""
    min_pronouns: int = Field(default=2, ge=0)
    """Minimum number of sentences with `it` per document."""
    min_deictic: int = Field(default=2, ge=0)
    """Minimum number of sentences with `you` or `your` per document."""
    paired_introductions: float = Field(default=0.6, ge=0, le=1)
    """Share of introductions with two nouns of different genders. The first introduction of a document always has two,
    unless the share is 0. A lower share makes the corpus easier to learn, and chance accuracy higher."""
    weights: SelectionWeights = SelectionWeights()
    """Relative frequencies of sentence kinds."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_sentences > self.max_sentences:
            raise ValueError(f"min_sentences {self.min_sentences} is above max_sentences {self.max_sentences}")
        if self.min_sentences < self.min_length():
            raise ValueError(
                f"min_sentences {self.min_sentences} is too small: min_pronouns {self.min_pronouns} and "
                f"min_deictic {self.min_deictic}, a greeting and the nouns for the pronouns require {self.min_length()}"
            )
        return self

    def min_length(self) -> int:
        """Return the minimum number of sentences in a document. One noun has at most MAX_PRONOUN_DISTANCE pronouns."""
        n_introductions = max(1, math.ceil(self.min_pronouns / MAX_PRONOUN_DISTANCE))
        return 1 + n_introductions + self.min_pronouns + self.min_deictic


class SegmentWeights(Settings):
    """Relative frequencies of sentence kinds in nested segments."""

    continuation: float = Field(default=3.0, gt=0)
    """Sentence with `it` for the topic of the innermost open segment."""
    digression: float = Field(default=4.0, gt=0)
    """Sentence that opens a digression."""
    close: float = Field(default=5.0, gt=0)
    """Sentence with `it` that returns from a digression to the enclosing segment."""
    section: float = Field(default=1.5, gt=0)
    """Sentence that opens a section, outside digressions."""
    ellipsis: float = Field(default=1.0, gt=0)
    """Elliptical sentence, or a sentence that can precede one."""
    ambiguous: float = Field(default=1.0, gt=0)
    """Sentence that determines the sense of an ambiguous word, or contains one."""
    consistent: float = Field(default=1.0, gt=0)
    """Sentence with a word that has two valid translations."""


class SegmentsSettings(CorpusSize):
    """A corpus of nested segments, in which the discourse structure determines the antecedent of a pronoun."""

    generator: Literal["nested"]
    """Documents of nested segments. A pronoun refers to the topic of the innermost open segment."""
    min_sentences: int = Field(default=10, ge=8)
    """Minimum number of sentences per document."""
    max_sentences: int = Field(default=40, ge=30, le=1000)
    """Maximum number of sentences per document. Suite items with the deepest nesting have about 20 sentences."""
    n_deictic: float = Field(default=2.0, gt=0)
    """Mean number of sentences with `you` or `your` per document."""
    weights: SegmentWeights = SegmentWeights()
    """Relative frequencies of sentence kinds."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_sentences > self.max_sentences:
            raise ValueError(f"min_sentences {self.min_sentences} is above max_sentences {self.max_sentences}")
        return self


ControlledSettings = Annotated[SelectionSettings | SegmentsSettings, Field(discriminator="generator")]
"""Settings for a controlled corpus of either kind. The key `generator` distinguishes the kinds."""


class _Section(Settings):
    controlled: ControlledSettings


def load_settings(argument: str) -> ControlledSettings:
    """Read the settings of a controlled corpus from a `--settings` option."""
    values = read_argument(argument, where="corpora.controlled.NAME")
    return _Section.load({"controlled": values}, where="corpora").controlled
