"""The plan of a study: for each rule of the workflow its inputs and settings, from the wildcards of its outputs.

One class per stage; `Plan` holds them. Methods that take wildcards are input or parameter functions of rules; the rest
list targets. Paths are those of the rules' outputs (docs/files.md).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from docmt.config.fingerprints import Fingerprints
from docmt.config.loading import load_config, read_config_file
from docmt.config.plan.corpora import CorporaPlan
from docmt.config.plan.discourse import TREEBANK_SPLIT, DiscoursePlan
from docmt.config.plan.paths import one_of
from docmt.config.plan.report import ReportPlan
from docmt.config.plan.runs import RunsPlan
from docmt.config.plan.text import TextPlan
from docmt.config.schema import Config


class Plan:
    """What the Snakefile asks for."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.fingerprints = Fingerprints(config)
        self.corpora = CorporaPlan(config)
        self.text = TextPlan(config)
        self.discourse = DiscoursePlan(config, self.corpora)
        self.runs = RunsPlan(config)
        self.report = ReportPlan(config, self.runs, corpora=self.corpora, discourse=self.discourse)

    def names(self, section: str) -> str:
        """A regular expression of the names of a section's rows, to constrain a wildcard."""
        return one_of(getattr(self.config, section))

    def splits(self) -> str:
        """A regular expression of the names of all splits: of datasets, corpora, suites and treebanks."""
        datasets = self.config.datasets.values()
        parts = [(name, references) for dataset in datasets for name, references in dataset.all_parts().items()]
        members = [reference.split("/")[1] for _, references in parts for reference in references]
        suites = [suite for dataset in datasets for suite in dataset.suite_names()]
        return one_of(dict.fromkeys([*(name for name, _ in parts), *members, *suites, TREEBANK_SPLIT]))

    def parallel_splits(self) -> str:
        """A regular expression of the names of the splits of datasets that have two sides."""
        return one_of(
            dict.fromkeys(name for dataset in self.config.datasets.values() for name in dataset.parallel_parts())
        )

    @classmethod
    def load(cls, values: Mapping[str, Any], *, files: Iterable[Path]) -> "Plan":
        """The plan of a merged configuration.

        `files` are read once more, for what merging hides (a key that stands twice). Raises UserError.
        """
        for file in files:
            read_config_file(file)
        return cls(load_config(dict(values)))
