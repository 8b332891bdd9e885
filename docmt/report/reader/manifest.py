"""The manifest of the reader: which runs it shows, and which texts, suites and trees belong to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import model_validator

from docmt.report.manifest import PathField, RunPattern
from docmt.settings import Settings


@dataclass(frozen=True)
class ShownRun:
    """One seed of a system on a dataset, and its folder."""

    system: str
    seed: int
    folder: Path


class ReaderManifest(Settings):
    """What the reader is made of, by dataset. Paths are relative to the working directory."""

    runs: dict[str, dict[str, list[int]]]
    """Runs whose output is shown: seeds by dataset and system."""
    legend: list[str] = []
    """Names in the order of their colors, the same as in the pictures of the report; others follow."""
    languages: dict[str, list[str]]
    """Source and target language of each dataset."""
    run_folder: RunPattern = "results/{dataset}/runs/{system}/seed{seed}"
    """Folder of a run, with `decoding/test_{test}.jsonl`, `decoding/suite_{suite}.json` and
    `decoding/generated_{suite}.jsonl`."""
    given: dict[str, dict[str, list[str]]] = {}
    """By dataset and system, the output that a system made elsewhere has: `test_{test}`, `suite_{suite}`,
    `generated_{suite}`. Systems without an entry have all of it."""
    tests: dict[str, dict[str, PathField]] = {}
    """Prefixes of the raw text of test splits, by dataset and test."""
    suites: dict[str, dict[str, PathField]] = {}
    """Contrastive test sets, by dataset and suite."""
    generative: dict[str, dict[str, PathField]] = {}
    """Generative test sets, likewise."""
    has_attention: bool = False
    """Whether the folders of runs have `decoding/attention_test_{test}.json`."""
    trees: dict[str, dict[str, dict[str, list[PathField]]]] = {}
    """Files with EDUs and trees of test splits, by dataset, test and name of the trees."""

    def shown_runs(self, dataset: str) -> Iterator[ShownRun]:
        """The runs on a dataset, in order."""
        for system, seeds in self.runs.get(dataset, {}).items():
            for seed in seeds:
                yield ShownRun(system, seed, Path(self.run_folder.format(dataset=dataset, system=system, seed=seed)))

    def outputs(self, dataset: str, name: str, suffix: str) -> list[tuple[ShownRun, Path]]:
        """The runs that have output of this name for a dataset, with its file."""
        given = self.given.get(dataset, {})
        return [
            (run, run.folder / f"decoding/{name}{suffix}")
            for run in self.shown_runs(dataset)
            if run.system not in given or name in given[run.system]
        ]

    @model_validator(mode="after")
    def _check_languages(self) -> Self:
        for dataset in {*self.tests, *self.suites, *self.generative}:
            if len(self.languages.get(dataset, [])) != 2:
                raise ValueError(f"languages of {dataset!r} must be a source and a target language")
        return self
