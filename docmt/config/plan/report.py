"""The plan of the report."""

from docmt.config.facts import system_facts
from docmt.config.fingerprints import Fingerprints, Place, Wildcards
from docmt.config.plan.corpora import CorporaPlan
from docmt.config.plan.discourse import DiscoursePlan
from docmt.config.plan.paths import as_argument, one_of
from docmt.config.plan.runs import RunsPlan
from docmt.config.schema import Config
from docmt.provenance import fingerprint


class ReportPlan:
    """Tables and pictures of all runs."""

    def __init__(self, config: Config, runs: RunsPlan, *, corpora: CorporaPlan, discourse: DiscoursePlan) -> None:
        self.config = config
        self._runs = runs
        self._corpora = corpora
        self._discourse = discourse
        self._fingerprints = Fingerprints(config)

    def fingerprint(self, wildcards: Wildcards) -> str:
        """The fingerprint of all that the report shows."""
        places = [Place(dataset=dataset) for dataset in self.config.datasets]
        overlaps = [self._fingerprints.overlap(place) for place in places]
        statistics = [self._fingerprints.statistics(place) for place in places]
        roundtrips = [self._fingerprints.roundtrip(place) for place in places]
        used = [Place(dataset=dataset, trees=trees) for dataset, trees in self._discourse.used()]
        trees = [self._fingerprints.tree_statistics(place) for place in used]
        return fingerprint([self._runs.fingerprint(wildcards), overlaps, statistics, roundtrips, trees])

    def settings(self, wildcards: Wildcards) -> str:
        """The settings of the report."""
        return as_argument(self.config.report.model_dump(mode="json"))

    def facts(self, wildcards: Wildcards) -> str:
        """What the config says of the systems, for the tables that show it."""
        systems = dict.fromkeys(name for table in self.config.report.tables.values() for name in table.systems)
        return as_argument({name: system_facts(self.config, name) for name in systems})

    def table_names(self) -> str:
        """A regular expression of the names of the tables of a paper."""
        return one_of(self.config.report.tables)

    def table_scores(self, wildcards: Wildcards) -> list[str]:
        """The scores that a table is made of."""
        return self._runs.table_scores(self.config.report.tables[wildcards.table])

    def table_fingerprint(self, wildcards: Wildcards) -> str:
        """The fingerprint of `table_scores`."""
        return self._runs.table_fingerprint(self.config.report.tables[wildcards.table])

    def table_targets(self) -> list[str]:
        """The tables of a paper."""
        return [f"results/tables/{name}.txt" for name in self.config.report.tables]

    def histories(self, wildcards: Wildcards) -> list[str]:
        """The histories of all runs."""
        return [f"{self._runs.run_folder(run)}/history.csv" for run in self._runs.trained()]

    def named_histories(self, wildcards: Wildcards) -> list[str]:
        """`DATASET/SYSTEM/seedN=FILE` for the history of each run."""
        runs = self._runs.trained()
        return [f"{run.dataset}/{run.system}/seed{run.seed}={self._runs.run_folder(run)}/history.csv" for run in runs]

    def counts(self, wildcards: Wildcards) -> list[str]:
        """What was read of each corpus, and what was left out."""
        return list(self._corpora.named_counts().values())

    def named_counts(self, wildcards: Wildcards) -> list[str]:
        """`DATASET/CORPUS/SPLIT=FILE` for the counts of each split read from files."""
        return [f"{name}={file}" for name, file in self._corpora.named_counts().items()]

    def named_overlaps(self, wildcards: Wildcards) -> list[str]:
        """`DATASET=FILE` for the overlap of each dataset."""
        return [f"{name}={file}" for name, file in zip(self.config.datasets, self.overlaps(wildcards), strict=True)]

    def statistics(self, wildcards: Wildcards) -> list[str]:
        """The statistics of each dataset's instances."""
        return [f"results/{dataset}/instances/statistics.csv" for dataset in self.config.datasets]

    def overlaps(self, wildcards: Wildcards) -> list[str]:
        """What training and test data of each dataset share."""
        return [f"results/{dataset}/corpora/overlap.json" for dataset in self.config.datasets]

    def roundtrips(self, wildcards: Wildcards) -> list[str]:
        """How much of the text of each dataset comes back."""
        return [f"results/{dataset}/text/roundtrip.json" for dataset in self.config.datasets]

    def named_roundtrips(self, wildcards: Wildcards) -> list[str]:
        """`DATASET=FILE` for the round trip of each dataset."""
        return [f"{name}={file}" for name, file in zip(self.config.datasets, self.roundtrips(wildcards), strict=True)]

    def trees(self, wildcards: Wildcards) -> list[str]:
        """Statistics, evaluations and pictures of trees; nothing in a study without trees."""
        return self._discourse.reports()

    def tree_options(self, wildcards: Wildcards) -> str:
        """The options of `docmt report render` for these files."""
        options = {
            "tree-statistics": self._discourse.statistics(),
            "tree-relations": self._discourse.relations(),
            "segmenters": _named(self._discourse.named_segmenter_evaluations()),
            "parsers": _named(self._discourse.named_parser_evaluations()),
            "tree-pictures": _named(self._discourse.named_pictures()),
        }
        return " ".join(f"--{name} {' '.join(files)}" for name, files in options.items() if files)


def _named(files: dict[str, str]) -> list[str]:
    return [f"{name}={file}" for name, file in files.items()]
