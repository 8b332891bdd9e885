"""Settings of the report."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACY, main_metrics
from docmt.report.claims.settings import Claim
from docmt.report.publications import load_published
from docmt.settings import Settings, check_name, nearest


def _published(attribute: str, what: str) -> AfterValidator:
    def check(name: str) -> str:
        known = {getattr(number, attribute) for number in load_published()}
        if name not in known:
            raise ValueError(f"must name a published {what} ({nearest(name, sorted(known))})")
        return name

    return AfterValidator(check)


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
    "claims",
    "instances",
    "overlap",
    "counts",
    "roundtrip",
    "costs",
    "signatures",
    "provenance",
)
"""File names of the report's other tables."""


def _table_name(name: str) -> str:
    if name in OWN_TABLES:
        raise ValueError("the report has a table with this name; choose another")
    return check_name(name)


FactName = Literal["Bi-sent", "Mo-doc", "Gap ratio", "Objective", "Fine-tuning tasks", "Input"]
"""A fact about a system that is read from the config; also the heading of its column."""


class LaidOutTable(Settings):
    """A table laid out like one in a paper: one row per system, one column per test and metric."""

    title: str
    """Heading of the table."""
    systems: list[str] = Field(min_length=1)
    """Rows, in order."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Columns of each test, in order; `contrastive accuracy` gives one per phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`), or single test sets or suites of them (`NAME/TEST`); null means all."""
    average: bool = False
    """Whether to append the means over all tests."""
    facts: list[FactName] = []
    """Columns that describe the systems, read from the config: trained on sentence pairs (`Bi-sent`) or on restoring
    documents (`Mo-doc`) before or in this training; share of gap sentences (`Gap ratio`) and kinds of noise
    (`Objective`) of that restoration; tasks of the last training (`Fine-tuning tasks`); `Input` when decoding."""

    def shows(self, dataset: str, test: str) -> bool:
        """Whether a test set or suite of a dataset is among `tests`."""
        return self.tests is None or dataset in self.tests or f"{dataset}/{test}" in self.tests

    @model_validator(mode="after")
    def _check_average(self) -> Self:
        if self.average and ACCURACY in self.metrics:
            raise ValueError(f"only translation scores can be averaged; remove {ACCURACY!r} from metrics, or average")
        return self


class ReportSettings(Settings):
    """What the report shows beside the scores."""

    title: str = "Document-level machine translation"
    """Heading of the page."""
    metrics: list[str] = Field(default=main_metrics(), min_length=1)
    """Columns of the main table, in order; columns without values are omitted."""
    tables: dict[Annotated[str, AfterValidator(_table_name)], LaidOutTable] = {}
    """Tables laid out as in a paper, by name. They come first in the report; the target of a single one is
    `results/tables/NAME.txt`."""
    claims: dict[Annotated[str, AfterValidator(check_name)], Claim] = {}
    """Claims about systems, tested over their seeds, by name. They come after these tables; the target of all is
    `claims`, that of a single one `results/claims/NAME.txt`."""
    labels: dict[str, str] = {}
    """Display names of systems in tables and pictures, by their name in the config."""
    published: dict[str, Annotated[str, _published("row", "row")]] = {}
    """Published row that a system reproduces, as `PAPER/ROW` (see docs/report.md). Its numbers appear beside ours."""
    datasets: dict[str, Annotated[str, _published("dataset", "data set")]] = {}
    """Published data set that corresponds to a dataset (`NAME`) or to one of its test sets or suites (`NAME/TEST`)."""

    def label(self, system: str) -> str:
        """The display name of a system."""
        return self.labels.get(system, system)
