"""Rule inputs and parameters that depend on the config, as functions of wildcards.

For example, `plan.input("model", "init")` returns the `init` input files for the declaration `model` in
`docmt.config.artifacts`. A declaration's arguments are its wildcards.
"""

import operator
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docmt.commands import as_argument, option_words
from docmt.config.artifacts.base import DECLARATIONS, Artifact, Study, UserFile
from docmt.config.artifacts.discourse import TREEBANK_SPLIT
from docmt.config.artifacts.study import all_artifacts, check_user_files, final_outputs, targets
from docmt.config.loading import load_config, read_config_file
from docmt.config.schema import Config
from docmt.config.systems import count_updates, longest_chain, trained_system
from docmt.corpora.catalog import load_catalog

NEVER_MATCH = r"(?!)"
"""A pattern that matches nothing."""

BYTES_PER_PROCESS = 16_000_000
"""Text bytes per process. Starting a process takes as long as processing 20,000 lines."""
BYTES_PER_ANNOTATOR = 1_000_000
"""Text bytes per process for segmenter and parser (15 seconds)."""
MAX_PROCESSES = 8
"""Maximum processes per rule."""
TRAINING_PRIORITY = 10
"""Minimum training priority."""


class Plan:
    """Interface between a study and the Snakefile: rule inputs, parameters and wildcard constraints."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.study = Study(config)

    @classmethod
    def load(cls, values: Mapping[str, Any], *, files: Iterable[Path]) -> "Plan":
        """Return the plan for a merged configuration.

        `files` are read again, because merging hides duplicate keys.
        """
        for file in files:
            read_config_file(file)  # Snakemake's loader silently keeps the last duplicate key
        plan = cls(load_config(dict(values)))
        check_user_files(plan.study)
        return plan

    def targets(self) -> dict[str, list[str]]:
        """Return output files by stage that later stages or the user need."""
        return targets(final_outputs(self.study))

    def files(self) -> dict[str, Artifact]:
        """Return all files that jobs make, intermediate text included, with the artifacts that they belong to."""
        files: dict[str, Artifact] = {}
        artifacts = all_artifacts(self.study)
        for artifact in artifacts:
            files |= dict.fromkeys(artifact.files, artifact)
        for artifact in artifacts:
            if isinstance(artifact, UserFile):  # user-supplied tree files also belong to an artifact of the study
                del files[artifact.file]
        return files

    def training_priority(self, wildcards: Any) -> float:
        """Return a training's priority. It grows with the number of waiting trainings and their updates."""
        chain = longest_chain(self.config, wildcards.system)
        n_updates = count_updates(self.config, chain)
        return TRAINING_PRIORITY + len(chain) + n_updates / (n_updates + 100_000)

    # Functions of wildcards. `declaration` is a name in `docmt.config.artifacts`.

    def input(self, declaration: str, name: str | None = None) -> Callable[[Any], list[str]]:
        """Return a function for the input files with one name, or all."""
        return self._of(declaration, lambda artifact: artifact.input_files(name))

    def settings(self, declaration: str) -> Callable[[Any], str]:
        """Return a function for the command's settings as JSON. A dry run shows changes in them."""
        # The report shows tables, figures and claims in the order of the configuration.
        return self._of(
            declaration, lambda artifact: as_argument(artifact.params["settings"], sort_keys=artifact.stage != "report")
        )

    def fingerprint(self, declaration: str) -> Callable[[Any], str]:
        """Return a function that hashes settings and everything upstream. Snakemake reruns a job if the hash differs.

        The rule's own settings are not enough. Snakemake does not rerun a job if only an intermediate file is missing,
        and it also records the parameters for failed jobs. For example, after a failed training with new settings, the
        old scores would be considered up to date.
        """
        return self._of(declaration, lambda artifact: artifact.fingerprint)

    def param(self, declaration: str, name: str) -> Callable[[Any], Any]:
        """Return a function for one of the declaration's `params`."""
        return self._of(declaration, lambda artifact: artifact.params[name])

    def params(self, declaration: str, *names: str) -> Callable[[Any], str]:
        """Return a function for some of the declaration's `params`, as command options. A null value has no option."""
        return self._of(declaration, lambda artifact: _as_options(artifact.params, names))

    def options(self, declaration: str, *names: str) -> Callable[..., str]:
        """Return a function for some of the declaration's `options`, as command options.

        Snakemake does not record a parameter function with the argument `input`. Therefore a changed option does not
        rerun a job.
        """
        read = self._of(declaration, lambda artifact: _as_options(artifact.options, names))
        return lambda wildcards, input: read(wildcards)

    def file_option(self, declaration: str, name: str) -> Callable[..., str]:
        """Return a function for input files as an option, quoted for the shell. Without files, there is no option.

        For files that can be user-supplied, with any name. Snakemake cannot quote several files. Like `options`, the
        function is not recorded.
        """
        read = self._of(declaration, lambda artifact: shlex.join(option_words(name, artifact.input_files(name))))
        return lambda wildcards, input: read(wildcards)

    def model_option(self, declaration: str, name: str) -> Callable[[Any], str]:
        """Return a function for the option `--NAME-fingerprint`, with which a command refuses a model of another plan.

        `name` is the name of the input. A published model has no fingerprint.
        """

        def text(artifact: Artifact) -> str:
            fingerprints = [model.fingerprint for model in artifact.sources(name) if model.stage == "training"]
            return " ".join(option_words(f"{name}-fingerprint", fingerprints))

        return self._of(declaration, text)

    def score_fingerprints(self, declaration: str) -> Callable[[Any], str]:
        """Return a function for the option `--fingerprints`. With it, commands refuse scores of an older config."""
        return self._of(
            declaration, lambda artifact: " ".join(option_words("fingerprints", list(_score_fingerprints(artifact))))
        )

    def _of(self, declaration: str, read: Callable[[Artifact], Any]) -> Callable[[Any], Any]:
        declare = DECLARATIONS[declaration]

        def of(wildcards: Any) -> Any:
            values = dict(wildcards.items())
            # Paths contain a direction such as `en-de`. Monolingual and bilingual rules only differ in these wildcards.
            languages = [values[key] for key in ("src", "tgt", "lang") if key in values]
            values.setdefault("languages", "-".join(languages))
            return read(declare(self.study, *(values[name] for name in declare.wildcard_names)))

        return of

    # Literal path parts.

    def languages(self, wildcards: Any) -> Sequence[str]:
        """Return the languages for a dataset or split."""
        return self.config.datasets[wildcards.dataset].part_languages(wildcards.get("split", ""))

    def direction(self, wildcards: Any) -> str:
        """Return a dataset's languages as in paths, for example `en-de`."""
        return "-".join(self.languages(wildcards))

    def learned_on(self, wildcards: Any) -> Sequence[str]:
        """Return the splits that the text stage is trained on for a language."""
        return self.config.datasets[wildcards.dataset].learned_on(wildcards.lang)

    def instances(self, wildcards: Any) -> str:
        """Return a system's `instances` row."""
        return self.config.systems[wildcards.system].instances

    def trained_system(self, wildcards: Any) -> str:
        """Return the system that trains the model: the system itself, or `use_model_of`."""
        return trained_system(self.config, wildcards.system)

    def shards(self, wildcards: Any) -> list[str]:
        """Return the names of a translation's shards, for example `1-of-2`."""
        n_shards = self.config.decoding.n_shards
        return [f"{shard}-of-{n_shards}" for shard in range(1, n_shards + 1)]

    def parser_segmenter(self, wildcards: Any) -> str:
        """Return the segmenter that a parser is stored with."""
        return self.config.discourse.parsers[wildcards.parser].segmenter

    # Wildcard constraints.

    def row_pattern(self, section: str, *, where: str = "", unless: str = "") -> str:
        """Pattern for row names in a config section, optionally filtered by an attribute."""
        names = []
        for name, row in operator.attrgetter(section)(self.config).items():
            is_wanted = not where or getattr(row, where)
            is_excluded = unless and getattr(row, unless)
            if is_wanted and not is_excluded:
                names.append(name)
        return wildcard_regex(names)

    def scope_pattern(self) -> str:
        """Pattern for score table scopes: the study, a dataset, or a system on a dataset."""
        datasets = self.row_pattern("datasets")
        return f"report|{datasets}|({datasets})/runs/({self.row_pattern('systems')})"

    def split_pattern(self) -> str:
        """Pattern for all split names (datasets, corpora, suites and treebanks)."""
        names = {TREEBANK_SPLIT: None}
        for dataset in self.config.datasets.values():
            names |= dict.fromkeys(dataset.suite_names())
            for part, references in dataset.all_parts().items():
                names[part] = None
                names |= dict.fromkeys(reference.split("/")[1] for reference in references)
        return wildcard_regex(names)

    def catalog_pattern(self) -> str:
        """Pattern for catalog corpora, except corpora that the config replaces."""
        hidden = {*self.config.corpora.controlled, *self.config.corpora.custom, *self.config.corpora.mtdata}
        return wildcard_regex(name for name in load_catalog() if name not in hidden)

    def readable_pattern(self) -> str:
        """Pattern for corpora that are read from files."""
        return wildcard_regex([self.catalog_pattern(), *self.config.corpora.custom, *self.config.corpora.mtdata])

    def mtdata_pattern(self) -> str:
        """Pattern for mtdata dataset ids and document boundaries, as in paths to fetched files."""
        return wildcard_regex(re.escape(row.dataset_id) for row in self.config.corpora.mtdata.values())

    def filtered_pattern(self) -> str:
        """Pattern for datasets with filters. It only matches paths to filtered parts."""
        patterns = []
        for name, row in self.config.datasets.items():
            for part in row.filters:
                patterns.append(rf"{name}(?=/corpora/[^/]+/{part}\.)")
        return wildcard_regex(patterns)

    def generator_pattern(self, generator: str) -> str:
        """Pattern for corpora that a generator writes."""
        corpora = self.config.corpora.controlled
        return wildcard_regex(name for name in corpora if corpora[name].generator == generator)


def _score_fingerprints(artifact: Artifact) -> Iterator[str]:
    # After `--touch` or under `--rerun-triggers mtime`, planned files can contain scores from an older study.
    for source in [*artifact.sources("scores"), *artifact.sources("differences")]:
        if "scores" in source.inputs:  # gathered in a table
            yield from _score_fingerprints(source)
        else:
            yield source.fingerprint


def _as_options(values: Mapping[str, Any], names: Iterable[str]) -> str:
    words = []
    for name in names:
        words += option_words(name, values.get(name))
    return shlex.join(words)


def scale_with_attempt(**amounts: int) -> dict[str, Callable[[Any, int], int]]:
    """Return resources that are multiplied by the attempt number. For example, the second attempt has twice as much.

    A profile or `--retries` sets the number of attempts. Every attempt is a new cluster job.
    """
    return {name: lambda wildcards, attempt, first=first: first * attempt for name, first in amounts.items()}


def shard_options(wildcards: Any, input: Any) -> str:
    """Return the options for a shard, or nothing for a whole split. Snakemake does not record them (`Plan.options`)."""
    return _as_options(wildcards, ("shard", "n_shards"))


def text_job_threads(wildcards: Any, input: Any) -> int:
    """Return the threads for a line-by-line rule. Small files have one, so that the job fits next to a training."""
    return _count_processes(input, BYTES_PER_PROCESS)


def annotation_job_threads(wildcards: Any, input: Any) -> int:
    """Return the threads for a rule that segments and parses a text, or one of `n_shards` parts."""
    texts = [file for file in input if not file.endswith(".pt")]
    return _count_processes(texts, BYTES_PER_ANNOTATOR * int(wildcards.get("n_shards", 1)))


def _count_processes(files: Iterable[str], bytes_per_process: int) -> int:
    n_bytes = 0
    for file in map(Path, files):
        if file.exists():
            n_bytes += file.stat().st_size
    return min(1 + n_bytes // bytes_per_process, MAX_PROCESSES)


def wildcard_regex(names: Iterable[str]) -> str:
    """Return a pattern that matches these names only."""
    return "|".join(names) or NEVER_MATCH
