"""Facts about a study that the report shows and that no file contains."""

from typing import Annotated

from pydantic import AfterValidator

from docmt.evaluation.metrics import Ties
from docmt.settings import Settings


def _check_pair(languages: list[str]) -> list[str]:
    if len(languages) != 2:
        raise ValueError("must be a source and a target language")
    return languages


class StudyFacts(Settings):
    """Facts about systems and datasets for tables, figures and the reader."""

    paper_columns: dict[str, dict[str, str]] = {}
    """System properties by system, for `columns` of tables and `x` of figures."""
    systems: list[str] = []
    """Systems in color order, before all others."""
    origins: dict[str, list[str]] = {}
    """Training chain by system, the last training first."""
    extended: list[str] = []
    """Systems whose model settings differ from their initial model."""
    generated: list[str] = []
    """Datasets whose test documents are generated from the same templates as the training documents."""
    choices: dict[str, dict[str, str]] = {}
    """Choices that depend on context, by suite (`DATASET/SUITE`) and phenomenon."""
    stages: dict[str, list[str]] = {}
    """Rules by stage, in workflow order. The costs table has a row per stage."""
    languages: dict[str, Annotated[list[str], AfterValidator(_check_pair)]] = {}
    """Source and target language by dataset, for the reader."""
    ties: Ties = "wrong"
    """Rule for contrastive items whose best candidates tie, from `evaluation.contrast.ties`, for the reader."""
