"""What the rules of the workflow ask for: inputs and parameters from the wildcards of their outputs.

`plan.model.input("train")` and `plan.model.flags` are functions of wildcards; `model` is a declaration in
`docmt.config.artifacts`, and its arguments are the wildcards that it reads.
"""

import contextlib
import functools
import inspect
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from docmt.checksums import input_token, is_in_place, recorded_fingerprint, recorded_time, restore_time
from docmt.commands import as_argument, flags, options_of
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
MAX_PROCESSES = 8
"""Most processes of a rule that works line by line."""
TRAINING_PRIORITY = 10
"""The lowest priority of a training."""


class Rule:
    """A declaration as a rule sees it: each method gives what Snakemake takes, a value or a function of wildcards."""

    def __init__(self, declare: Callable[..., Artifact], study: StudyArtifacts) -> None:
        self._declare = declare
        self._study = study
        self._wildcards = list(inspect.signature(declare).parameters)

    def input(self, name: str | None = None) -> Callable[[Any], list[Any]]:
        """The files under one name of the rule's inputs, or under all names."""

        def files(wildcards: Any) -> list[Any]:
            from snakemake.io import ancient  # here, as `docmt status` does without Snakemake

            # Content decides about the user's files, through the fingerprint: their times say nothing in a copy.
            files = self._at(wildcards).input_files(name)
            return [ancient(file) if file in self._study.user_paths else file for file in files]

        return files

    def settings(self, wildcards: Any) -> str:
        """The settings of the command as JSON. Snakemake records them, and a dry run shows what changed."""
        return as_argument(self._at(wildcards).params["settings"])

    def flags(self, wildcards: Any, input: Any, output: Any, threads: int, resources: Any) -> str:
        """The options of the command: the artifact's parameters, files by their names in the rule, and wildcards.

        Snakemake does not record parameters that ask for `input` or `output`: the fingerprint decides what runs again.
        """
        artifact = self._at(wildcards)
        assert artifact.command is not None  # a rule without a command has no flags
        given = [resources, wildcards, input, output, artifact.params]  # later ones hide earlier ones
        values = {"threads": threads, "jobs": threads, "fingerprints": list(_score_fingerprints(artifact))} | {
            name: value for named in given for name, value in named.items()
        }
        mark = f" --fingerprint {artifact.fingerprint}" if artifact.is_recorded else ""
        # Tables compare the fingerprints of scores themselves, and name systems where one is of another study.
        compared = "scores" if "fingerprints" in dict(options_of(artifact.command)) else None
        sources = (source for name in artifact.inputs if name != compared for source in artifact.sources(name))
        recorded = [source for source in sources if isinstance(source, Artifact) and source.is_recorded]
        tokens = [input_token(file, source.fingerprint) for source in recorded for file in source.files]
        return flags(artifact.command, values) + mark + (f" --made-from {','.join(tokens)}" if tokens else "")

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
            return Rule(declare, self.artifacts)
        raise AttributeError(f"no artifact or method {name!r} in the plan")

    def targets(self) -> dict[str, list[str]]:
        """The files of each stage that later stages or the user need."""
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

    def restore_times(self) -> None:
        """Put the files of a copied study in the order again in which they were made, which Snakemake reads from times.

        A file that was copied into a study, whose own results were made from another one, keeps its time: what reads
        it runs again. Marks without a record become as old as the results made from them, where these are as planned.
        """
        readers: dict[str, list[str]] = {}
        recorded: dict[str, None] = {}
        for artifact in self.artifacts.all_made:
            named = [source for source in artifact.sources() if isinstance(source, str)]
            recorded.update(dict.fromkeys([*artifact.files, *named] if artifact.is_recorded else []))
            for file in artifact.input_files():
                readers.setdefault(file, []).extend(artifact.files)
        replaced = {file for files in self.compare_records() for file in files}

        @functools.cache  # each file counts for all that it was made from
        def stays(file: str) -> bool:
            if os.path.exists(file):
                return file not in replaced and is_in_place(Path(file))
            # A temporary file: what was made from it counts. Trees of the user's are read from their own path.
            return any(stays(reader) for reader in readers.get(file, []) if reader != file)

        copies = [Path(file) for file in recorded if not any(map(stays, [file, *readers.get(file, [])]))]
        # Oldest first: after a kill, no copy is left whose results have their old times.
        for file in sorted(copies, key=recorded_time):
            restore_time(file)
        unmarked = [file for artifact in self.artifacts.all_made if not artifact.is_recorded for file in artifact.files]
        for mark in filter(os.path.exists, unmarked):
            made = [file for file in readers.get(mark, []) if os.path.exists(file)]
            if made and replaced.isdisjoint(made) and mark not in self.artifacts.user_paths:
                oldest = min(os.stat(file).st_mtime_ns for file in made)
                if os.stat(mark).st_mtime_ns > oldest:
                    with contextlib.suppress(OSError):  # someone else's file
                        os.utime(mark, ns=(oldest, oldest))

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

    def splits(self) -> str:
        """The names of all splits: of datasets, corpora, suites and treebanks."""
        datasets = self.config.datasets.values()
        parts = [(name, references) for dataset in datasets for name, references in dataset.all_parts().items()]
        members = [reference.split("/")[1] for _, references in parts for reference in references]
        suites = [suite for dataset in datasets for suite in dataset.suite_names()]
        return one_of(dict.fromkeys([*(name for name, _ in parts), *members, *suites, TREEBANK_SPLIT]))

    def catalog_corpora(self) -> str:
        """Corpora of the catalog, except those that a row of the config replaces."""
        hidden = {*self.config.corpora.controlled, *self.config.corpora.custom}
        return one_of(name for name in load_catalog() if name not in hidden)

    def corpora_of_files(self) -> str:
        """Corpora of the catalog and the user's own."""
        return one_of([self.catalog_corpora(), *self.config.corpora.custom])

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
    sizes = [Path(file).stat().st_size for file in input if Path(file).exists()]
    return min(1 + sum(sizes) // BYTES_PER_PROCESS, MAX_PROCESSES)


def one_of(names: Iterable[str]) -> str:
    """A regular expression that fits the given names only."""
    return "|".join(names) or NOTHING
