"""Settings of the report."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACY, main_metrics
from docmt.report.publications import load_published
from docmt.settings import Settings, check_name, nearest


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


OWN_TABLES = (
    "results",
    "further",
    "contrastive",
    "contrastive_by_distance",
    "contrastive_by_kind",
    "trees",
    "tree_relations",
    "segmenters",
    "parsers",
    "training",
    "passes",
    "instances",
    "overlap",
    "counts",
    "roundtrip",
    "costs",
    "signatures",
    "provenance",
)
"""Names of the files of the report's other tables."""


def _table_name(name: str) -> str:
    if name in OWN_TABLES:
        raise ValueError("the report has a table of this name; take another")
    return check_name(name)


FactName = Literal["Bi-sent", "Mo-doc", "Gap ratio", "Objective", "Fine-tuning tasks", "Input"]
"""What the config says of a system, by its name as the heading of a column."""


class LaidOutTable(Settings):
    """A table laid out as that of a paper: a row per system, with tests by metrics as columns."""

    title: str
    """Heading of the table."""
    systems: list[str] = Field(min_length=1)
    """Its rows, in order."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Its columns for each test, in order; `contrastive accuracy` makes one for each phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`), or single test sets or suites of them (`NAME/TEST`); null means all."""
    average: bool = False
    """Whether means over all tests follow."""
    facts: list[FactName] = []
    """Columns that tell systems apart, read off the config: trained on sentence pairs (`Bi-sent`) or on restoring
    documents (`Mo-doc`) before or in this training; share of gap sentences (`Gap ratio`) and kinds of noise
    (`Objective`) of that restoration; tasks of the last training (`Fine-tuning tasks`); `Input` in decoding."""

    def shows(self, dataset: str, test: str) -> bool:
        """Whether a test set or suite of a dataset is among `tests`."""
        return self.tests is None or dataset in self.tests or f"{dataset}/{test}" in self.tests

    @model_validator(mode="after")
    def _check_average(self) -> Self:
        if self.average and ACCURACY in self.metrics:
            raise ValueError(f"average is of translation scores; leave {ACCURACY!r} out of metrics, or average")
        return self


class ReportSettings(Settings):
    """What the report says beyond the scores."""

    title: str = "Document-level machine translation"
    """Heading of the page."""
    metrics: list[str] = Field(default=main_metrics(), min_length=1)
    """Columns of the main table, in order; columns without any value are left out."""
    tables: dict[Annotated[str, AfterValidator(_table_name)], LaidOutTable] = {}
    """Tables of a paper, by name. They open the report; `results/tables/NAME.txt` is the target of one alone."""
    labels: dict[str, str] = {}
    """How systems are called in tables and pictures, by their name in the config."""
    published: dict[str, Annotated[str, AfterValidator(_published_row)]] = {}
    """Published row that a system repeats, as `PAPER/ROW` (see docs/report.md). Its numbers stand beside ours."""
    datasets: dict[str, Annotated[str, AfterValidator(_published_dataset)]] = {}
    """Published data set that a dataset (`NAME`), or one test set or suite of it (`NAME/TEST`), stands for."""

    def label(self, system: str) -> str:
        """What a system is called in tables and pictures."""
        return self.labels.get(system, system)
