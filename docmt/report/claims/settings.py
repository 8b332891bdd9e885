"""Settings of claims."""

from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import ACCURACIES, ACCURACY, METRICS
from docmt.report.claims.relations import ClaimedDifference, Term, parse_relation
from docmt.settings import Settings, nearest

LOSSES = ("dev_loss", "dev_nll")
ENTROPY = "entropy_"
"""Prefix of the columns of a history with entropies of attention."""


def _relation(text: str) -> str:
    parse_relation(text)
    return text


def _metric(name: str) -> str:
    if name not in (*METRICS, *LOSSES) and not name.startswith(ENTROPY):
        known = [*METRICS, *LOSSES, f"{ENTROPY}cross"]
        raise ValueError(f"must name a metric or a column of the training history ({nearest(name, known)})")
    return name


class Claim(Settings):
    """A claim about systems of the study, tested over their seeds. docs/claims.md explains the verdicts."""

    statement: str
    """What is claimed, in a sentence."""
    paper: str = ""
    """Who claims it."""
    place: str = ""
    """Where: tables, figures, sections."""
    reported: str = ""
    """What was reported there."""
    metric: Annotated[str, AfterValidator(_metric)]
    """What is measured: a metric of the scores, or a column of the training history (`dev_loss`, `dev_nll`,
    `entropy_cross` and the like)."""
    test: str | None = None
    """Test set or suite of the dataset; needed by metrics of the scores."""
    phenomenon: str | None = None
    """Phenomenon, for suites that hold several; null means the whole suite."""
    distances: list[int] = []
    """Distances of contrastive items; empty means all."""
    kind: str | None = None
    """Kind of contrastive items; null means all."""
    at: int | Literal["best", "last"] = "best"
    """Where a history is read: after that many updates, at the lowest validation loss, or at the end."""
    dataset: str | None = None
    """Dataset of the systems in `relations` that name none (as `SYSTEM@DATASET`); needed if there are several."""
    relations: list[Annotated[str, AfterValidator(_relation)]] = Field(min_length=1)
    """Relations between the scores of systems, such as `a > b`, `a >= b >= c`, `|a - b| <= 1` or
    `a - b > c - d`; all of them are claimed."""
    margin: float = Field(default=0.0, ge=0)
    """Smallest difference that matters: `a > b` claims more than that, `a >= b` allows as much in the other
    direction."""
    min_seeds: int = Field(default=3, ge=2)
    """Fewest seeds that all systems must have for a verdict."""
    remark: str = ""
    """How the systems of this study differ from the paper's, or what else readers should know."""

    @cached_property
    def comparisons(self) -> list[ClaimedDifference]:
        """The comparisons of all relations."""
        return [comparison for relation in self.relations for comparison in parse_relation(relation)]

    @property
    def terms(self) -> list[Term]:
        """The scores that the claim is about, each once."""
        return list(dict.fromkeys(term for comparison in self.comparisons for term in comparison.weights))

    @property
    def is_of_history(self) -> bool:
        """Whether it is about the training history instead of scores."""
        return self.metric not in METRICS

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.is_of_history and self.test is not None:
            raise ValueError(f"{self.metric!r} is measured in training; leave out test")
        if not self.is_of_history and self.test is None:
            raise ValueError(f"test is missing: name the test set or suite that {self.metric!r} is measured on")
        if not self.is_of_history and self.at != "best":
            raise ValueError(f"at is for columns of the training history, not for {self.metric!r}")
        items = [name for name in ("phenomenon", "distances", "kind") if getattr(self, name)]
        if items and self.metric not in ACCURACIES:
            raise ValueError(f"{items[0]} is for the metric {ACCURACY!r}, not for {self.metric!r}")
        if self.distances and self.kind is not None:
            raise ValueError("suites are split by distance or by kind, not by both: leave out distances or kind")
        return self
