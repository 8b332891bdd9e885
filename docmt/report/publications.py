"""Published numbers, from one YAML file per paper, arranged as in the paper's tables."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "published"


@dataclass(frozen=True)
class PublishedNumber:
    """A published table cell, in percent.

    The row is called `PAPER/ROW` in a config and `label` in the paper. Dataset, metric and phenomenon (None: not a
    contrastive test) have docmt's names.
    """

    paper: str
    table: str
    row: str
    label: str
    dataset: str
    metric: str
    phenomenon: str | None
    value: float


@dataclass(frozen=True)
class PublishedStatistics:
    """Published counts for one split. `counts` only has the paper's columns."""

    paper: str
    table: str
    dataset: str
    split: str
    counts: dict[str, float]


def _read_papers() -> list[tuple[str, dict[str, Any]]]:
    return [(path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.yaml"))]


@functools.cache
def load_published() -> tuple[PublishedNumber, ...]:
    """Read all published scores, ordered by paper, table and row. A row can be in several tables."""
    numbers = []
    for paper, content in _read_papers():
        for table, body in content["tables"].items():
            for row, cells in body["rows"].items():
                for column, value in zip(body["columns"], cells["values"], strict=True):
                    if value is None:
                        continue
                    dataset, metric, *phenomenon = column
                    number = PublishedNumber(
                        content["paper"], table, f"{paper}/{row}", cells["label"], dataset, content["metrics"][metric],
                        phenomenon[0] if phenomenon else None, float(value),
                    )  # fmt: skip
                    numbers.append(number)
    return tuple(numbers)


@functools.cache
def load_published_statistics() -> tuple[PublishedStatistics, ...]:
    """Read all published dataset statistics."""
    statistics = []
    for _, content in _read_papers():
        for table, datasets in content.get("statistics", {}).items():
            for dataset, splits in datasets.items():
                for split, counts in splits.items():
                    statistics.append(PublishedStatistics(content["paper"], table, dataset, split, counts))
    return tuple(statistics)


def find_published(
    row: str | None, dataset: str | None, *, metric: str, phenomenon: str | None = None
) -> PublishedNumber | None:
    """Return a row's first published number on a dataset, or None."""
    for number in load_published():
        if (number.row, number.dataset, number.metric, number.phenomenon) == (row, dataset, metric, phenomenon):
            return number
    return None
