"""What the rules of the workflow ask for: inputs and parameters from the wildcards of their outputs.

`plan.model.input("train")` and `plan.model.settings` are functions of wildcards; `model` is a declaration in
`docmt.config.artifacts`, and its arguments are the wildcards that it reads.
"""

import inspect
import operator
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docmt.commands import as_argument, option_words
from docmt.config.artifacts.base import Artifact
from docmt.config.artifacts.discourse import TREEBANK_SPLIT
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, read_config_file
from docmt.config.schema import Config
from docmt.config.systems import count_updates, longest_chain
from docmt.corpora.catalog import load_catalog

NOTHING = r"(?!)"
"""A regular expression that fits no name."""

BYTES_PER_PROCESS = 16_000_000
"""Text for which another process is worth its start, which takes as long as the work on 20,000 lines."""
BYTES_PER_ANNOTATOR = 1_000_000
"""The same for a segmenter with its parser: they need 15 seconds for so much text."""
MAX_PROCESSES = 8
"""Maximum number of processes of such a rule."""
TRAINING_PRIORITY = 10
"""The lowest priority of a training."""


class Rule:
    """A declaration as a rule sees it: each method gives what Snakemake takes, a value or a function of wildcards."""

    def __init__(self, declare: Callable[..., Artifact]) -> None:
        self._declare = declare
        self._wildcards = list(inspect.signature(declare).parameters)

    def input(self, name: str | None = None) -> Callable[[Any], list[str]]:
        """The files under one name of the rule's inputs, or under all names."""
        return lambda wildcards: self._at(wildcards).input_files(name)

    def settings(self, wildcards: Any) -> str:
        """The settings of the command as JSON. Snakemake records them, and a dry run shows what changed."""
        return as_argument(self._at(wildcards).params["settings"])

    def fingerprint(self, wildcards: Any) -> str:
        """A hash of the settings and of everything upstream, which Snakemake records: where it differs, a job reruns.

        The settings of the rule alone would not do: Snakemake does not run a job again because a file between it and
        its old result is missing, and records the parameters of a job that fails. After a failed training with new
        settings, the scores of the old ones would count as up to date.
        """
        return self._at(wildcards).fingerprint

    def param(self, name: str) -> Callable[[Any], Any]:
        """One of the `params` of the declaration, by its name."""
        return lambda wildcards: self._at(wildcards).params[name]

    def options(self, *names: str, is_recorded: bool = True) -> Callable[..., str]:
        """Options of the command as text for a shell, each with its parameter or input files, if there are any.

        Snakemake does not record parameters that ask for `input`: this one with `is_recorded=False` reruns nothing.
        """

        def text(wildcards: Any) -> str:
            artifact = self._at(wildcards)
            values = {name: artifact.params.get(name, artifact.input_files(name)) for name in names}
            return shlex.join(word for name, value in values.items() for word in option_words(name, value))

        return text if is_recorded else lambda wildcards, input: text(wildcards)

    def score_fingerprints(self, wildcards: Any) -> str:
        """The option with which tables compare the fingerprints of scores: an older study's may lie in their place."""
        return " ".join(option_words("fingerprints", list(_score_fingerprints(self._at(wildcards)))))

    def _at(self, wildcards: Any) -> Artifact:
        values = dict(wildcards.items())
        # Paths name a direction `en-de`; rules that handle one or two languages differ in these wildcards only.
        values.setdefault("languages", "-".join(values[key] for key in ("src", "tgt", "lang") if key in values))
        return self._declare(*(values[name] for name in self._wildcards))


class Plan:
    """A study as the Snakefile sees it: a `Rule` for each declaration, and the constraints of wildcards."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.artifacts = StudyArtifacts(config)

    @classmethod
    def load(cls, values: Mapping[str, Any], *, files: Iterable[Path]) -> "Plan":
        """The plan of a merged configuration.

        `files` are read again, for what merging hides (duplicate keys).
        """
        for file in files:
            read_config_file(file)  # Snakemake has read them with a loader that takes the last of duplicate keys
        plan = cls(load_config(dict(values)))
        for own in plan.artifacts.user_files():
            own.check()
        return plan

    def __getattr__(self, name: str) -> Rule:
        declare = getattr(self.__dict__.get("artifacts"), name, None)
        if declare is not None and hasattr(declare, "made_by"):
            return Rule(declare)
        raise AttributeError(f"no artifact or method {name!r} in the plan")

    def targets(self) -> dict[str, list[str]]:
        """The files of each stage that later stages or the user need."""
        return self.artifacts.targets

    def urgency(self, wildcards: Any) -> float:
        """The priority of a training: the more trainings wait for it in a row, and the more updates, the higher."""
        chain = longest_chain(self.config, wildcards.system)
        n_updates = count_updates(self.config, chain)
        return TRAINING_PRIORITY + len(chain) + n_updates / (n_updates + 100_000)

    # Constraints of wildcards.

    def names(self, section: str, *, having: str = "", lacking: str = "") -> str:
        """The names of a section's rows, such as `systems`, or of those where an attribute is set, or is not."""
        rows = operator.attrgetter(section)(self.config)
        return one_of(
            name
            for name, row in rows.items()
            if (not having or getattr(row, having)) and not (lacking and getattr(row, lacking))
        )

    def score_scopes(self) -> str:
        """What a table of scores is of: the study, a dataset, or a system on a dataset."""
        datasets = self.names("datasets")
        return f"report|{datasets}|({datasets})/runs/({self.names('systems')})"

    def splits(self) -> str:
        """The names of all splits: of datasets, corpora, suites and treebanks."""
        datasets = self.config.datasets.values()
        parts = [(name, references) for dataset in datasets for name, references in dataset.all_parts().items()]
        members = [reference.split("/")[1] for _, references in parts for reference in references]
        suites = [suite for dataset in datasets for suite in dataset.suite_names()]
        return one_of(dict.fromkeys([*(name for name, _ in parts), *members, *suites, TREEBANK_SPLIT]))

    def catalog_corpora(self) -> str:
        """Corpora of the catalog, except those that a row of the config replaces."""
        hidden = {*self.config.corpora.controlled, *self.config.corpora.custom, *self.config.corpora.mtdata}
        return one_of(name for name in load_catalog() if name not in hidden)

    def corpora_of_files(self) -> str:
        """Corpora of the catalog, of mtdata and the user's own."""
        return one_of([self.catalog_corpora(), *self.config.corpora.custom, *self.config.corpora.mtdata])

    def mtdata_corpora(self) -> str:
        """Datasets of mtdata with the kind of documents, as in the paths of fetched files."""
        files = (Path(row.file).with_suffix("") for row in self.config.corpora.mtdata.values())
        return one_of(f"{file.parent.name}/{file.name}" for file in files)

    def filtered_datasets(self) -> str:
        """Datasets in the paths of those parts that a filter makes."""
        datasets = self.config.datasets.items()
        return one_of(rf"{name}(?=/corpora/[^/]+/{part}\.)" for name, row in datasets for part in row.filters)

    def controlled_corpora(self, documents: str) -> str:
        """Corpora that docmt generates, with documents of one kind."""
        return one_of(name for name, row in self.config.corpora.controlled.items() if row.documents == documents)


def _score_fingerprints(artifact: Artifact) -> Iterator[str]:
    # Under `--rerun-triggers mtime`, scores of an older study may lie in place of the planned ones.
    for source in artifact.sources("scores"):
        if isinstance(source, Artifact) and "scores" in source.inputs:  # gathered in a table
            yield from _score_fingerprints(source)
        elif isinstance(source, Artifact):
            yield source.fingerprint


def growing(**amounts: int) -> dict[str, Callable[[Any, int], int]]:
    """Resources that are as given at the first attempt, twice as much at the second, and so on.

    Attempts after the first are those that a profile or `--retries` asks for: each is a new job of the cluster.
    """
    return {name: lambda wildcards, attempt, first=first: first * attempt for name, first in amounts.items()}


def processes(wildcards: Any, input: Any) -> int:
    """The threads of a rule that works line by line: one for small files, so that it fits beside a training."""
    return _count_processes(input, BYTES_PER_PROCESS)


def annotators(wildcards: Any, input: Any) -> int:
    """The threads of a rule that segments and parses a text, or one of `n_shards` parts of it."""
    text = [file for file in input if not file.endswith(".pt")]
    return _count_processes(text, BYTES_PER_ANNOTATOR * int(wildcards.get("n_shards", 1)))


def _count_processes(files: Iterable[str], bytes_per_process: int) -> int:
    sizes = [Path(file).stat().st_size for file in files if Path(file).exists()]
    return min(1 + sum(sizes) // bytes_per_process, MAX_PROCESSES)


def one_of(names: Iterable[str]) -> str:
    """A regular expression that fits the given names only."""
    return "|".join(names) or NOTHING
