"""Settings of the report."""

from typing import Annotated

from pydantic import AfterValidator, Field

from docmt.report.publications import load_published
from docmt.settings import Settings, nearest


def _published_row(reference: str) -> str:
    rows = {number.row for number in load_published()}
    if reference not in rows:
        raise ValueError(f"must name a published row ({nearest(reference, sorted(rows))})")
    return reference


def _published_dataset(name: str) -> str:
    datasets = {number.dataset for number in load_published()}
    if name not in datasets:
        raise ValueError(f"must name a published data set ({nearest(name, sorted(datasets))})")
    return name


class ReportSettings(Settings):
    """What the report says beyond the scores."""

    title: str = "Document-level machine translation"
    """Heading of the page."""
    metrics: list[str] = Field(["s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "chrF"], min_length=1)
    """Columns of the main table, in order; columns without any value are left out."""
    labels: dict[str, str] = Field({})
    """How systems are called in tables and pictures, by their name in the config."""
    published: dict[str, Annotated[str, AfterValidator(_published_row)]] = Field({})
    """Published row that a system repeats, as `PAPER/ROW` (see docs/report.md). Its numbers stand beside ours."""
    datasets: dict[str, Annotated[str, AfterValidator(_published_dataset)]] = Field({})
    """Published data set that a dataset (`NAME`), or one test set or suite of it (`NAME/TEST`), stands for."""
