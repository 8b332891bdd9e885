"""Settings of the report."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACIES, METRICS
from docmt.report.claims.claim import Claim
from docmt.report.publications import load_published
from docmt.settings import Settings, check_name, nearest


def _published(attribute: str, what: str) -> AfterValidator:
    def check(name: str) -> str:
        known = {getattr(number, attribute) for number in load_published()}
        if name not in known:
            raise ValueError(f"must name a published {what} ({nearest(name, sorted(known))})")
        return name

    return AfterValidator(check)


# File names of the report's other tables
OWN_TABLES = (
    *(f"{name}{split}" for name in ("contrastive", "generative") for split in ("", "_by_distance", "_by_kind")),
    *("results", "further", "trees", "tree_relations", "segmenters", "parsers", "training", "passes", "claims"),
    *("instances", "overlap", "counts", "roundtrip", "costs_by_stage", "signatures", "provenance"),
)


def _table_name(name: str) -> str:
    if name in OWN_TABLES:
        raise ValueError("the report has a table with this name; choose another")
    return check_name(name)


# First words in the file names of the report's other pictures
OWN_PICTURES = ("learning_curves", "entropies", "contrastive", "distance")


def _figure_name(name: str) -> str:
    if name.split("_")[0] in [own.split("_")[0] for own in OWN_PICTURES]:
        raise ValueError(f"a name must not begin like those of the report's own pictures ({', '.join(OWN_PICTURES)})")
    return check_name(name)


# A fact about a system that is read from the config; also the heading of its column or the label of an axis
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
    """A table as in a paper: a row per system, a column per test and metric."""

    title: str
    """Heading of the table."""
    note: str = ""
    """Sentence under the table."""
    systems: list[str] = Field(min_length=1)
    """Rows, in order."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Columns per test, in order; `contrastive accuracy` gives one per phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`), or single test sets or suites of them (`NAME/TEST`); null means all."""
    baseline: str | None = None
    """System that the others are tested against; null: the report's."""
    average: bool = False
    """Whether to append the means over all tests."""
    facts: list[PaperColumn] = []
    """Columns of facts about the systems, from the config: `Bi-sent` and `Mo-doc`: whether a system, or one it starts
    from, learned from sentence pairs, and from monolingual documents."""

    @model_validator(mode="after")
    def _check_average(self) -> Self:
        for metric in self.metrics if self.average else []:
            if metric in ACCURACIES:
                raise ValueError(f"only translation scores can be averaged; remove {metric!r} from metrics, or average")
        return self


class CaseTable(Settings):
    """Sentences with the largest difference of chrF between two systems."""

    title: str
    """Heading of the table."""
    note: str = ""
    """Sentence under the table."""
    system: str
    """The better system."""
    baseline: str
    """The other system; both must be aligned by sentence. First seeds are shown."""
    test: str
    """Test set, as `NAME/TEST`."""
    count: int = Field(default=3, ge=1)
    """Number of sentences."""
    context: int = Field(default=2, ge=0)
    """Preceding source sentences to show."""


class ScoreFigure(Settings):
    """Scores over a fact about systems: a line per group of systems, a panel per test and metric.

    Points are means over seeds with the sample deviation, beside published numbers.
    """

    title: str
    """Heading of the picture."""
    note: str = ""
    """Sentence under the picture."""
    lines: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(min_length=1)
    """Systems on each line, by its name in the legend."""
    x: PaperColumn | None = None
    """Horizontal axis, from the config; null if `values` has all systems. Words become equal steps."""
    values: dict[str, int | float | str] = {}
    """Places of systems on the horizontal axis, instead of `x`."""
    x_label: str | None = None
    """Label of the horizontal axis; null: the name of `x`."""
    metrics: list[str] = Field(default=["s-BLEU"], min_length=1)
    """Panels of each test, in order; `contrastive accuracy` gives one per phenomenon."""
    tests: list[str] | None = None
    """Datasets (`NAME`), or single test sets or suites of them (`NAME/TEST`); null means all."""

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(system for line in self.lines.values() for system in line))


class CurveFigure(Settings):
    """Systems in training: columns of `history.csv` over updates."""

    title: str
    """Heading of the picture."""
    note: str = ""
    """Sentence under the picture."""
    systems: list[str] = Field(min_length=1)
    """Trained systems, a color each."""
    datasets: list[str] | None = None
    """Datasets, with panels each; null means all."""
    panels: dict[str, Annotated[list[str], Field(min_length=1)]] = Field(min_length=1)
    """Columns of `history.csv` in each panel (a kind of line each), by its heading: `train_loss`, `dev_loss`,
    `entropy_cross`, `entropy_cross_group` … (docs/training.md)."""
    y_label: str = ""
    """Label of the vertical axis."""


def shows(layout: PaperTable | ScoreFigure, dataset: str, test: str) -> bool:
    """True if a test set or suite of a dataset is among the `tests` of a table or figure."""
    return layout.tests is None or dataset in layout.tests or f"{dataset}/{test}" in layout.tests


class ReaderSettings(Settings):
    """Size of the page `results/report/reader.html`."""

    seeds: int = Field(default=1, ge=1)
    """Seeds shown of each system: the first of `seeds`."""
    max_megabytes: float = Field(default=10, gt=0)
    """Limit of the page; beyond it, each test set is reduced to the same share of documents and items, evenly
    spaced."""


class ReportSettings(Settings):
    """What the report shows beside the scores."""

    title: str = "Document-level machine translation"
    """Heading of the page."""
    metrics: list[str] = Field(default=[name for name, metric in METRICS.items() if metric.is_main], min_length=1)
    """Columns of the main table, in order; columns without values are omitted."""
    tables: dict[Annotated[str, AfterValidator(_table_name)], PaperTable] = {}
    """Tables as in a paper, by name, first in the report; target of one: `results/tables/NAME.txt`."""
    cases: dict[Annotated[str, AfterValidator(_table_name)], CaseTable] = {}
    """Case studies by name; target of one: `results/tables/NAME.txt`."""
    baseline: str | None = None
    """System that others are tested against on the same dataset (`*`: p < 0.05, `**`: p < 0.01); null tests nothing."""
    figures: dict[Annotated[str, AfterValidator(_figure_name)], ScoreFigure] = {}
    """Pictures of scores as in a paper, by name, after the tables; target of one: `results/figures/NAME.svg`."""
    curves: dict[Annotated[str, AfterValidator(_figure_name)], CurveFigure] = {}
    """Pictures of trainings as in a paper, by name; targets as for `figures`."""
    note: str = ""
    """Sentence under the main tables."""
    reader: ReaderSettings = ReaderSettings()
    """The page for reading translations (docs/reader.md)."""
    claims: dict[Annotated[str, AfterValidator(check_name)], Claim] = {}
    """Claims about systems, tested over seeds, by name, after these tables; target of one:
    `results/claims/NAME.txt`."""
    labels: dict[str, str] = {}
    """Display names of systems in tables and pictures."""
    short_labels: dict[str, str] = {}
    """Shorter names of systems in LaTeX tables."""
    published: dict[str, Annotated[str, _published("row", "row")]] = {}
    """Published row that a system reproduces, `PAPER/ROW` (docs/report.md); its numbers appear beside the study's."""
    datasets: dict[str, Annotated[str, _published("dataset", "data set")]] = {}
    """Published counterpart of a dataset (`NAME`), or of a test set or suite (`NAME/TEST`)."""

    @property
    def drawn(self) -> list[str]:
        return [*self.figures, *self.curves]

    @property
    def legend(self) -> list[str]:
        """The lines and systems of `figures` and `curves`: they take the first colors of the study."""
        lines = [line for figure in self.figures.values() for line in figure.lines]
        return [*lines, *(system for figure in self.curves.values() for system in figure.systems)]

    def published_dataset(self, dataset: str, test: str) -> str | None:
        """Return the published dataset that corresponds to a test set or suite, or None."""
        return self.datasets.get(f"{dataset}/{test}", self.datasets.get(dataset))

    def label(self, system: str) -> str:
        return self.labels.get(system, system)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        for key, other in (("figures", "curves"), ("tables", "cases")):
            if twice := next((name for name in getattr(self, key) if name in getattr(self, other)), None):
                raise ValueError(f"{key} and {other} both contain {twice!r}; rename one")
        for name, claim in self.claims.items():
            if claim.control is not None and claim.control not in self.claims:
                raise ValueError(f"claims.{name}.control: no claim {claim.control!r}")
            if claim.control is not None and self.claims[claim.control].control is not None:
                raise ValueError(f"claims.{name}.control: {claim.control!r} has a control itself; name one without")
        return self
