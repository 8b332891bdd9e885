"""Small helpers that the plans of all stages share."""

import json
from collections.abc import Iterable
from typing import Any

from docmt.config.schema import Config

NOTHING = r"(?!)"
"""A regular expression that fits no name."""


def as_argument(settings: Any) -> str:
    """Settings as one line of JSON with sorted keys: equal settings are equal text."""
    return json.dumps(settings, sort_keys=True, ensure_ascii=False)


def one_of(names: Iterable[str]) -> str:
    """A regular expression that fits the given names only: the constraint of a wildcard."""
    return "|".join(names) or NOTHING


def dataset_prefix(config: Config, dataset: str, split: str) -> str:
    """The prefix of a dataset's split as text."""
    languages = config.datasets[dataset].part_languages(split)
    return f"results/{dataset}/corpora/{'-'.join(languages)}/{split}"


def dataset_files(config: Config, dataset: str, split: str) -> list[str]:
    """The text of a dataset's split in its languages, and its document index."""
    prefix = dataset_prefix(config, dataset, split)
    return [f"{prefix}.{end}" for end in (*config.datasets[dataset].part_languages(split), "documents.tsv")]
