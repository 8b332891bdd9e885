"""The configuration: one strict typed class per section."""

import itertools
from typing import Self

from pydantic import Field, model_validator

from docmt.config.discourse import CuttingRow, DiscourseSettings
from docmt.config.names import DatasetName, Name, Seeds
from docmt.config.study_rows import CorporaSettings, DatasetSettings, SystemSettings
from docmt.decoding.settings import DecodingSettings
from docmt.evaluation.metrics import EvaluationSettings
from docmt.report.settings import ReportSettings
from docmt.settings import Settings
from docmt.text.settings import TextSettings
from docmt.training.settings import Recipe


class Config(Settings):
    """A study: sections named as the packages, and the rows of its datasets and systems."""

    corpora: CorporaSettings = CorporaSettings()
    """Sources of documents."""
    text: TextSettings = TextSettings()
    """From text to subwords."""
    discourse: DiscourseSettings = DiscourseSettings()
    """EDUs and trees."""
    instances: dict[Name, CuttingRow] = {}
    """Ways of cutting documents into instances, by name."""
    training: dict[Name, Recipe] = {}
    """Recipes by name."""
    decoding: DecodingSettings = DecodingSettings()
    """Beam search."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Scores."""
    report: ReportSettings = ReportSettings()
    """Tables, pictures and the page."""
    datasets: dict[DatasetName, DatasetSettings] = Field(min_length=1)
    """Training, development and test data, by name."""
    systems: dict[Name, SystemSettings] = Field(min_length=1)
    """Models with their recipes, by name."""
    seeds: Seeds = [1]
    """Seeds of every system that does not set its own."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        sections = {name: getattr(self.corpora, name) for name in ("controlled", "custom", "mtdata")}
        for (one, rows), (other, others) in itertools.combinations(sections.items(), 2):
            if both := sorted(rows.keys() & others.keys()):
                raise ValueError(f"corpora.{one} and corpora.{other} both contain {both[0]!r}; rename one")
        return self


Settings.study = Config
