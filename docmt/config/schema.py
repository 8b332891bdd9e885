"""Configuration schema, with a strict typed class per section."""

from typing import Self

from pydantic import Field, model_validator

from docmt.config.discourse import DiscourseSettings, InstancesRow
from docmt.config.names import DatasetName, Name, Seeds
from docmt.config.study_rows import CorporaSettings, DatasetSettings, SystemSettings
from docmt.corpora.catalog import load_catalog
from docmt.decoding.settings import DecodingSection
from docmt.evaluation.metrics import EvaluationSettings
from docmt.report.settings import ReportSettings
from docmt.settings import Settings, check_distinct
from docmt.text.settings import TextSettings
from docmt.training.settings import Recipe


class Config(Settings):
    """A study. Sections are named like the packages. Every dataset and system is a row."""

    corpora: CorporaSettings = CorporaSettings()
    """Corpora in addition to docmt's catalog: generated, in your own files, or from mtdata. Filters."""
    text: TextSettings = TextSettings()
    """Tokenization and subwords."""
    discourse: DiscourseSettings = DiscourseSettings()
    """EDU segmenters, RST parsers and trees."""
    instances: dict[Name, InstancesRow] = {}
    """Instances (documents split into whole-sentence pieces), by name."""
    training: dict[Name, Recipe] = {}
    """Training recipes, by name."""
    decoding: DecodingSection = DecodingSection()
    """Beam search."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """Metrics."""
    report: ReportSettings = ReportSettings()
    """Report tables, figures and claims."""
    datasets: dict[DatasetName, DatasetSettings] = Field(min_length=1)
    """Training, development and test data, by name."""
    systems: dict[Name, SystemSettings] = Field(min_length=1)
    """Models to train with their recipes, or external systems, by name."""
    seeds: Seeds = [1]
    """Random seeds. A system is trained once per seed, unless it sets `seeds`."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        sections: dict[str, str] = {}
        for section in ("controlled", "custom", "mtdata"):
            for name in sorted(getattr(self.corpora, section)):
                other = sections.setdefault(name, section)
                if other != section:
                    raise ValueError(f"corpora.{other} and corpora.{section} both contain {name!r}; rename one")
        check_distinct([*load_catalog(), *sections], where="corpora")
        return self

    def test_sets(self) -> dict[str, str]:
        """Return the dataset of each test set, by `DATASET/TEST`."""
        datasets = {}
        for dataset, row in self.datasets.items():
            for test in row.test:
                datasets[f"{dataset}/{test}"] = dataset
        return datasets


Settings.study = Config
