"""What the rules of the workflow ask for: inputs and parameters from the wildcards of their outputs.

`plan.model.input("train")`, `plan.model.param("settings")` and `plan.model.fingerprint` are functions of wildcards;
`model` is a declaration in `docmt.config.artifacts`, and its arguments are the wildcards that it reads.
"""

import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from docmt.checksums import recorded_fingerprint
from docmt.config.artifacts.base import Artifact
from docmt.config.artifacts.discourse import TREEBANK_SPLIT
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.discourse import TREEBANKS
from docmt.config.loading import load_config, read_config_file
from docmt.config.rows import MONOLINGUAL
from docmt.config.schema import Config
from docmt.config.systems import count_updates, longest_chain
from docmt.corpora.catalogue import load_catalogue
from docmt.models.catalogue import load_models

NOTHING = r"(?!)"
"""A regular expression that fits no name."""

BYTES_PER_PROCESS = 16_000_000
"""Text for which another process is worth its start, which takes as long as the work on 20,000 lines."""
MAX_PROCESSES = 8
"""Most processes of a rule that works line by line."""
TRAINING_PRIORITY = 10
"""The lowest priority of a training."""


class Rule:
    """A declaration as a rule sees it: each method gives what Snakemake takes, a value or a function of wildcards."""

    def __init__(self, declare: Callable[..., Artifact]) -> None:
        self._declare = declare
        self._wildcards = list(inspect.signature(declare).parameters)

    def input(self, name: str | None = None) -> Callable[[Any], list[str]]:
        """The files that the artifact is made from: those of one name, or all."""
        return lambda wildcards: self._at(wildcards).input_files(name)

    def param(self, name: str) -> Callable[[Any], Any]:
        """What the command is told under a name."""
        return lambda wildcards: self._at(wildcards).params[name]

    def fingerprint(self, wildcards: Any) -> str:
        """The fingerprint of the artifact."""
        return self._at(wildcards).fingerprint

    def fingerprints(self, name: str) -> Callable[[Any], list[str]]:
        """The fingerprints of what `input` names."""
        return lambda wildcards: [
            source.fingerprint for source in self._at(wildcards).sources(name) if isinstance(source, Artifact)
        ]

    def _at(self, wildcards: Any) -> Artifact:
        values = dict(wildcards.items())
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

        `files` are read again, for what merging hides (duplicate keys). Raises UserError; also when a file of the
        user's is missing, since Snakemake does not run a job whose input is missing if its output exists.
        """
        for file in files:
            read_config_file(file)
        plan = cls(load_config(dict(values)))
        for own in plan.artifacts.own_files():
            own.check()
        return plan

    def __getattr__(self, name: str) -> Rule:
        declare = getattr(self.__dict__.get("artifacts"), name, None)
        if declare is not None and hasattr(declare, "made_by"):
            return Rule(declare)
        raise AttributeError(f"no artifact or method {name!r} in the plan")

    def targets(self) -> dict[str, list[str]]:
        """By stage, the files that it makes for later stages or for the user."""
        return self.artifacts.targets

    def compare_records(self) -> tuple[list[str], list[str]]:
        """The existing files whose recorded fingerprint is not that of the plan, and those without any."""
        outdated, unrecorded = [], []
        for artifact in self.artifacts.all_made:
            for file in artifact.files if artifact.is_recorded else ():
                if not os.path.exists(file):
                    continue
                recorded = recorded_fingerprint(Path(file))
                if recorded is None:
                    unrecorded.append(file)
                elif recorded != artifact.fingerprint:
                    outdated.append(file)
        return outdated, unrecorded

    def mirror(self, wildcards: Any, output: Any) -> str:
        """`--mirror DIR`, or nothing. As it asks for `output`, Snakemake does not fetch again for another mirror."""
        mirror = self.config.corpora.mirror
        return f"--mirror {shlex.quote(mirror)}" if mirror else ""

    def described(self, wildcards: Any, output: Any) -> str:
        """`--corpus NAME --files FOLDER` for a corpus of the catalogue, `--spec JSON` for the user's own."""
        declared = self.corpus_suite if "suite" in dict(wildcards.items()) else self.corpus
        corpus = declared.param("corpus")(wildcards)
        if wildcards.corpus in self.config.corpora.custom:
            return f"--spec {shlex.quote(corpus)}"
        return f"--corpus {wildcards.corpus} --files {corpus}"

    def languages(self, wildcards: Any, output: Any) -> str:
        """The languages of a text with one or two sides. As it asks for `output`, Snakemake does not record it."""
        return " ".join(value for key, value in wildcards.items() if key in ("src", "tgt", "lang"))

    def tags(self, wildcards: Any, output: Any) -> str:
        """`--tags LANG LANG` for a vocabulary with masks and language tags, or nothing."""
        return self.artifacts.vocabulary(wildcards.dataset).params["tags"]

    def monolingual_lang(self, wildcards: Any, input: Any) -> str:
        """`--monolingual-lang LANG` where a training reads monolingual documents."""
        (lang,) = self.config.datasets[wildcards.dataset].part_languages(MONOLINGUAL)
        return f"--monolingual-lang {lang}" if input.monolingual else ""

    def loggers(self, wildcards: Any, output: Any) -> str:
        """`--loggers NAME …`, or nothing. As it asks for `output`, Snakemake does not train again for other loggers."""
        recipe = self.config.systems[wildcards.system].recipe
        names = self.config.training[recipe].loggers if recipe else []
        return f"--loggers {' '.join(names)}" if names else ""

    def urgency(self, wildcards: Any) -> float:
        """The priority of a training: the more trainings wait for it in a row, and the more updates, the higher."""
        chain = longest_chain(self.config, wildcards.system)
        n_updates = count_updates(self.config, chain)
        return TRAINING_PRIORITY + len(chain) + n_updates / (n_updates + 100_000)

    # Constraints of wildcards.

    def names(self, section: str) -> str:
        """The names of the rows of a section, such as `systems` or `discourse.trees`."""
        rows: Any = self.config
        for key in section.split("."):
            rows = getattr(rows, key)
        return one_of(rows)

    def splits(self) -> str:
        """The names of all splits: of datasets, corpora, suites and treebanks."""
        datasets = self.config.datasets.values()
        parts = [(name, references) for dataset in datasets for name, references in dataset.all_parts().items()]
        members = [reference.split("/")[1] for _, references in parts for reference in references]
        suites = [suite for dataset in datasets for suite in dataset.suite_names()]
        return one_of(dict.fromkeys([*(name for name, _ in parts), *members, *suites, TREEBANK_SPLIT]))

    def catalogue_corpora(self) -> str:
        """Corpora of the catalogue, except those that a row of the config replaces."""
        hidden = {*self.config.corpora.controlled, *self.config.corpora.custom}
        return one_of(name for name in load_catalogue() if name not in hidden)

    def published_models(self) -> str:
        """Published models of the catalog."""
        return one_of(load_models())

    def corpora_of_files(self) -> str:
        """Corpora of the catalogue and the user's own."""
        return one_of([self.catalogue_corpora(), *self.config.corpora.custom])

    def controlled_corpora(self, documents: str) -> str:
        """Corpora that docmt generates, with documents of one kind."""
        return one_of(name for name, row in self.config.corpora.controlled.items() if row.documents == documents)

    def given_systems(self) -> str:
        """Systems whose output is given."""
        return one_of(name for name, row in self.config.systems.items() if row.is_given)

    def decoding_systems(self) -> str:
        """Systems that docmt decodes."""
        return one_of(name for name, row in self.config.systems.items() if not row.is_given)

    def treebanks(self) -> str:
        """Treebanks of the catalogue."""
        return one_of(TREEBANKS)

    def annotated_trees(self) -> str:
        """Trees that a segmenter and a parser of docmt make."""
        return one_of(name for name, row in self.config.discourse.trees.items() if row.segmenter)

    def gold_trees(self) -> str:
        """Trees that a generated corpus comes with."""
        return one_of(name for name, row in self.config.discourse.trees.items() if row.gold)


def option(flag: str, name: str) -> Callable[[Any, Any], str]:
    """A parameter: `flag` with the files of an input, or nothing without any."""

    def given(wildcards: Any, input: Any) -> str:
        files = getattr(input, name)
        files = [files] if isinstance(files, str) else files
        return " ".join([flag, *map(shlex.quote, files)]) if files else ""

    return given


def growing(amount: int) -> Callable[[Any, int], int]:
    """A resource that is `amount` at the first attempt, twice that at the second, and so on.

    Attempts after the first are those that a profile or `--retries` asks for: each is a new job of the cluster.
    """
    return lambda wildcards, attempt: amount * attempt


def processes(wildcards: Any, input: Any) -> int:
    """The threads of a rule that works line by line: one for small files, so that it fits beside a training."""
    sizes = [Path(file).stat().st_size for file in input if Path(file).exists()]
    return min(1 + sum(sizes) // BYTES_PER_PROCESS, MAX_PROCESSES)


def one_of(names: Iterable[str]) -> str:
    """A regular expression that fits the given names only."""
    return "|".join(names) or NOTHING
