"""Report settings."""

import itertools
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACIES, METRICS
from docmt.report.claims.claim import Claim
from docmt.report.publications import load_published
from docmt.settings import Settings, check_distinct, check_name, nearest, one_of
from docmt.training.settings import history_columns


def _published(attribute: str, what: str) -> AfterValidator:
    def check(name: str) -> str:
        names = {getattr(number, attribute) for number in load_published()}
        if name not in names:
            raise ValueError(f"must name a published {what} ({nearest(name, sorted(names))})")
        return name

    return AfterValidator(check)


# File names for the report's other tables
OWN_TABLES = (
    *("contrastive", "contrastive_by_distance", "contrastive_by_kind"),
    *("generative", "generative_by_distance", "generative_by_kind"),
    *("results", "further", "trees", "tree_relations", "segmenters", "parsers", "training", "passes", "claims"),
    *("instances", "overlap", "counts", "roundtrip", "costs_by_stage", "signatures", "provenance"),
)


def _table_name(name: str) -> str:
    if name.lower() in OWN_TABLES:
        raise ValueError("this name is reserved for a table of the report; choose another")
    return check_name(name)


# First words in file names for the report's other figures
OWN_PICTURES = ("learning_curves", "entropies", "contrastive", "distance")


def _figure_name(name: str) -> str:
    if name.lower().split("_")[0] in [picture.split("_")[0] for picture in OWN_PICTURES]:
        raise ValueError(f"a name must not start like the report's other figures ({', '.join(OWN_PICTURES)})")
    return check_name(name)


HistoryColumn = Annotated[str, one_of(history_columns, "must name a column of the training history")]

# A system property from the config, also used as column heading or axis label
PaperColumn = Literal[
    "Bi-sent",
    "Mo-doc",
    "Gap ratio",
    "Objective",
    "Fine-tuning tasks",
    "Input",
    "Instance length",
    "Training instances",
    "Size",
    "Upper layers",
    "drop_rst",
]


class PaperTable(Settings):
    """A table as in a paper, with a row per system and columns for tests and metrics."""

    title: str
    """Heading."""
    note: str = ""
    """Text under the table."""
    systems: list[str] = Field(min_length=1)
    """Rows, in order."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Columns per test, in order. `contrastive accuracy` has one column per phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`) or single test sets and suites (`NAME/TEST`). Default: all."""
    baseline: str | None = None
    """System to test the others against. Default: the report's baseline."""
    average: bool = False
    """Add a column with means over all tests."""
    columns: list[PaperColumn] = []
    """Columns that describe the systems, taken from the configuration. `Bi-sent` and `Mo-doc` show whether a system, or
    its initial model, was trained on sentence pairs and on monolingual documents."""

    @model_validator(mode="after")
    def _check_average(self) -> Self:
        for metric in self.metrics:
            if self.average and metric in ACCURACIES:
                raise ValueError(
                    f"only translation scores can be averaged; remove {metric!r} from metrics, or set no `average`"
                )
        return self


class CaseTable(Settings):
    """Sentences where one system is better than another by the largest chrF difference."""

    title: str
    """Heading."""
    note: str = ""
    """Text under the table."""
    system: str
    """Better system."""
    baseline: str
    """Other system. Both must be aligned by sentence, and the first seed of both is shown."""
    test: str
    """Test set, written `NAME/TEST`."""
    count: int = Field(default=3, ge=1)
    """Number of sentences."""
    context: int = Field(default=2, ge=0)
    """Number of preceding source sentences to show."""


class ScoreFigure(Settings):
    """Scores by system property, with a line per system group and a panel per test and metric.

    Points are means over seeds with sample standard deviations, next to published results.
    """

    title: str
    """Heading."""
    note: str = ""
    """Text under the figure."""
    series: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(min_length=1)
    """Systems of each line, by its name in the legend."""
    x: PaperColumn | None = None
    """System property on the horizontal axis, taken from the configuration (see `columns` of a table). Values that
    are not numbers are spaced evenly. Default: `x_values`."""
    x_values: dict[str, int | float | str] = {}
    """Horizontal axis positions by system, in place of `x`."""
    x_label: str | None = None
    """Horizontal axis label. Default: the name in `x`."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Panels per test, in order. `contrastive accuracy` has one panel per phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`) or single test sets and suites (`NAME/TEST`). Default: all."""

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(itertools.chain.from_iterable(self.series.values())))


class CurveFigure(Settings):
    """Training curves: `history.csv` columns over updates."""

    title: str
    """Heading."""
    note: str = ""
    """Text under the figure."""
    systems: list[str] = Field(min_length=1)
    """Trained systems, one color each."""
    datasets: list[str] | None = None
    """Datasets, with separate panels. Default: all."""
    panels: dict[str, Annotated[list[HistoryColumn], Field(min_length=1)]] = Field(min_length=1)
    """`history.csv` columns by panel heading, for example `train_loss`, `dev_loss` or
    `entropy_cross` (docs/training.md)."""
    y_label: str = ""
    """Vertical axis label."""


def shows(layout: PaperTable | ScoreFigure, dataset: str, test: str) -> bool:
    """True if the `tests` in a table or figure include this test set or suite."""
    return layout.tests is None or dataset in layout.tests or f"{dataset}/{test}" in layout.tests


class ReaderSettings(Settings):
    """Size limits for the reader page, `results/report/reader.html`."""

    seeds: int = Field(default=1, ge=1)
    """Number of seeds per system to show, from the first."""
    max_megabytes: float = Field(default=10, gt=0)
    """Maximum page size in MB. A larger page shows an evenly spaced sample of documents and items."""


class ReportSettings(Settings):
    """Report contents."""

    title: str = "Document-level machine translation"
    """Page heading."""
    metrics: list[str] = Field(default=[name for name, metric in METRICS.items() if metric.is_main], min_length=1)
    """Main table columns, in order, if they are filled and comparable."""
    tables: dict[Annotated[str, AfterValidator(_table_name)], PaperTable] = {}
    """Tables as in a paper, by name, shown first. Target for one table: `results/tables/NAME.txt`."""
    cases: dict[Annotated[str, AfterValidator(_table_name)], CaseTable] = {}
    """Case studies, by name. Target for one: `results/tables/NAME.txt`."""
    baseline: str | None = None
    """System to test the others against (`*`: p < 0.05, `**`: p < 0.01). Default: no tests."""
    figures: dict[Annotated[str, AfterValidator(_figure_name)], ScoreFigure] = {}
    """Score figures as in a paper, by name, after the tables. Target for one: `results/figures/NAME.svg`."""
    curves: dict[Annotated[str, AfterValidator(_figure_name)], CurveFigure] = {}
    """Training curve figures, by name. Targets are as for `figures`."""
    note: str = ""
    """Text under the main tables."""
    reader: ReaderSettings = ReaderSettings()
    """Page for reading translations (docs/reader.md)."""
    claims: dict[Annotated[str, AfterValidator(check_name)], Claim] = {}
    """Claims about systems, tested over seeds, by name. Target for one: `results/claims/NAME.txt`."""
    labels: dict[str, str] = {}
    """System display names."""
    short_labels: dict[str, str] = {}
    """Shorter display names for LaTeX tables."""
    published: dict[str, Annotated[str, _published("row", "row")]] = {}
    """Published result that a system reproduces, written `PAPER/ROW` (docs/report.md) and shown next to the system's
    scores."""
    datasets: dict[str, Annotated[str, _published("dataset", "data set")]] = {}
    """Published dataset that corresponds to a dataset (`NAME`), test set or suite (`NAME/TEST`)."""

    @property
    def drawn(self) -> list[str]:
        return [*self.figures, *self.curves]

    @property
    def legend(self) -> list[str]:
        """Lines and systems in `figures` and `curves`. They have the first colors in the study."""
        lines = itertools.chain.from_iterable(figure.series for figure in self.figures.values())
        systems = itertools.chain.from_iterable(figure.systems for figure in self.curves.values())
        return [*lines, *systems]

    def published_dataset(self, dataset: str, test: str) -> str | None:
        """Return the published dataset that corresponds to a test set or suite, or None."""
        return self.datasets.get(f"{dataset}/{test}", self.datasets.get(dataset))

    def label(self, system: str) -> str:
        return self.labels.get(system, system)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for key, other in (("figures", "curves"), ("tables", "cases")):
            for name in getattr(self, key):
                if name in getattr(self, other):
                    raise ValueError(f"{key} and {other} both contain {name!r}; rename one")
            check_distinct([*getattr(self, key), *getattr(self, other)], where=f"{key} and {other}")
        for name, claim in self.claims.items():
            if claim.control is not None and claim.control not in self.claims:
                raise ValueError(f"claims.{name}.control: no claim {claim.control!r}")
            if claim.control is not None and self.claims[claim.control].control is not None:
                raise ValueError(f"claims.{name}.control: {claim.control!r} has a control itself; choose another")
        return self
