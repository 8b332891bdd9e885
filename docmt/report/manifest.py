"""Manifests for report and reader: runs and input files."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from docmt.evaluation.metrics import Ties
from docmt.settings import Settings

PathField = Annotated[Path, Field(strict=False)]  # a path, written as text in JSON


def _check_pattern(pattern: str) -> str:
    try:
        _folder(pattern, "d", "s", 1)
    except (AttributeError, LookupError, ValueError):
        raise ValueError("must be a path with {dataset}, {system} and {seed}") from None
    return pattern


def _folder(pattern: str, dataset: str, system: str, seed: int) -> Path:
    return Path(pattern.format(dataset=dataset, system=system, seed=seed))


# Run folder, as a path with {dataset}, {system} and {seed}
RunPattern = Annotated[str, AfterValidator(_check_pattern)]


class Manifest(Settings):
    """Report inputs. Tables show the names. Paths are relative to the working directory."""

    runs: dict[str, dict[str, list[int]]]
    """Trained runs: seeds by dataset and system."""
    run_folder: RunPattern = "results/{dataset}/runs/{system}/seed{seed}"
    """Run folder with `history.csv`."""
    statistics: dict[str, PathField] = {}
    """CSV files from `docmt instances count`, by dataset."""
    overlaps: dict[str, PathField] = {}
    """JSON files from `docmt corpora count-overlap`, by dataset."""
    differences: list[PathField] = []
    """JSON files from `docmt evaluate difference`."""
    cases: dict[str, PathField] = {}
    """CSV files from `docmt report cases`, by name in the settings."""
    counts: dict[str, PathField] = {}
    """`counts.json` files, by name."""
    roundtrips: dict[str, PathField] = {}
    """JSON files from `docmt text count-roundtrip`, by dataset."""
    tree_statistics: dict[str, PathField] = {}
    """CSV files from `docmt discourse count-trees`, by name."""
    tree_relations: dict[str, PathField] = {}
    """CSV files from `docmt discourse count-trees --relations`, by name."""
    segmenters: dict[str, PathField] = {}
    """`evaluation.json` files, by segmenter."""
    parsers: dict[str, PathField] = {}
    """`evaluation.json` files, by parser."""
    systems: list[str] = []
    """Systems in color order, before all others."""
    origins: dict[str, list[str]] = {}
    """Training chain by system, the last training first."""
    extended: list[str] = []
    """Systems whose model settings differ from their initial model."""
    generated: list[str] = []
    """Datasets whose test documents are generated from the same templates as the training documents."""
    reader: str | None = None
    """Link from the report to the page with the translations. null: no link."""
    stages: dict[str, list[str]] = {}
    """Rules by stage, in workflow order. The costs table has a row per stage."""
    benchmarks: PathField | None = None
    """Snakemake's benchmarks, as `FOLDER/RULE/NAME.tsv`. null: no costs."""

    def folder(self, dataset: str, system: str, seed: int) -> Path:
        return _folder(self.run_folder, dataset, system, seed)

    def trained(self) -> list[tuple[str, str, int]]:
        return [
            (dataset, system, seed)
            for dataset, systems in self.runs.items()
            for system, seeds in systems.items()
            for seed in seeds
        ]


class ReaderManifest(Settings):
    """Reader inputs, by dataset. Paths are relative to the working directory."""

    runs: dict[str, dict[str, list[int]]]
    """Runs whose output is shown: seeds by dataset and system."""
    legend: list[str] = []
    """Names in color order, as in the report's figures, before all others."""
    languages: dict[str, list[str]]
    """Source and target language by dataset."""
    run_folder: RunPattern = "results/{dataset}/runs/{system}/seed{seed}"
    """Run folder, with `decoding/test_{test}.jsonl`, `decoding/suite_{suite}.json` and
    `decoding/generated_{suite}.jsonl`."""
    given: dict[str, dict[str, list[str]]] = {}
    """Available external outputs, by dataset and system: `test_{test}`, `suite_{suite}`,
    `generated_{suite}`. Systems without an entry have all outputs."""
    tests: dict[str, dict[str, PathField]] = {}
    """Raw test text prefixes, by dataset and test."""
    suites: dict[str, dict[str, PathField]] = {}
    """Contrastive test sets, by dataset and suite."""
    generative: dict[str, dict[str, PathField]] = {}
    """Generative test sets, by dataset and suite."""
    ties: Ties = "wrong"
    """Rule for contrastive items whose best candidates tie, from `evaluation.contrast.ties`."""
    trees: dict[str, dict[str, dict[str, list[PathField]]]] = {}
    """Test split EDU and tree files, by dataset, test and tree name."""

    def shown_runs(self, dataset: str) -> list[tuple[str, int]]:
        """Return a dataset's runs: systems with their seeds."""
        return [(system, seed) for system, seeds in self.runs.get(dataset, {}).items() for seed in seeds]

    def outputs(self, dataset: str, name: str, suffix: str) -> dict[tuple[str, int], Path]:
        """Return a dataset's output files with this name, by run."""
        given = self.given.get(dataset, {})
        return {
            (system, seed): _folder(self.run_folder, dataset, system, seed) / f"decoding/{name}{suffix}"
            for system, seed in self.shown_runs(dataset)
            if system not in given or name in given[system]
        }

    @model_validator(mode="after")
    def _check_languages(self) -> Self:
        for dataset in {*self.tests, *self.suites, *self.generative}:
            if len(self.languages.get(dataset, [])) != 2:
                raise ValueError(f"languages of {dataset!r} must be a source and a target language")
        return self
