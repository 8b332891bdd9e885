"""The manifest of a report: which runs it shows, and which files it reads beside the long table of scores."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from docmt.settings import Settings

PathField = Annotated[Path, Field(strict=False)]
"""A path, written as text in JSON."""


def _check_pattern(pattern: str) -> str:
    try:
        pattern.format(dataset="d", system="s", seed=1)
    except (LookupError, ValueError):
        raise ValueError("must be a path with {dataset}, {system} and {seed}") from None
    return pattern


RunPattern = Annotated[str, AfterValidator(_check_pattern)]
"""The folder of a run, as a path with {dataset}, {system} and {seed}."""


class Manifest(Settings):
    """What a report is made of. Names are shown in its tables; paths are relative to the working directory."""

    runs: dict[str, dict[str, list[int]]]
    """Trained runs: seeds by dataset and system."""
    run_folder: RunPattern = "results/{dataset}/runs/{system}/seed{seed}"
    """Folder of a run; its `history.csv` is read."""
    statistics: dict[str, PathField] = {}
    """CSV files of `docmt instances statistics`, by dataset."""
    overlaps: dict[str, PathField] = {}
    """JSON files of `docmt corpora overlap`, by dataset."""
    differences: list[PathField] = []
    """JSON files of `docmt evaluate difference` and `contrast-difference`."""
    cases: dict[str, PathField] = {}
    """CSV files of `docmt report cases`, by name in the settings."""
    counts: dict[str, PathField] = {}
    """`counts.json` files, by name."""
    roundtrips: dict[str, PathField] = {}
    """JSON files of `docmt text roundtrip`, by dataset."""
    tree_statistics: dict[str, PathField] = {}
    """CSV files of `docmt discourse statistics`, by name."""
    tree_relations: dict[str, PathField] = {}
    """CSV files of its `--relations`, by name."""
    segmenters: dict[str, PathField] = {}
    """`evaluation.json` files, by segmenter."""
    parsers: dict[str, PathField] = {}
    """`evaluation.json` files, by parser."""
    tree_pictures: dict[str, PathField] = {}
    """SVG files of `docmt discourse draw`, by name."""
    systems: list[str] = []
    """Systems in the order of their colors; others follow."""
    origins: dict[str, list[str]] = {}
    """The trained systems whose updates made the models of a system, the last training first."""
    generated: list[str] = []
    """Datasets whose test documents are generated from the templates of their training documents."""
    reader: str | None = None
    """Where the page with the translations is, as a link from the report; null for none."""
    stages: dict[str, list[str]] = {}
    """Rules of each stage, in the order of the workflow: the rows of the costs."""
    benchmarks: PathField | None = None
    """Snakemake's benchmarks, as `FOLDER/RULE/NAME.tsv`; null leaves out the costs."""

    def folder(self, dataset: str, system: str, seed: int) -> Path:
        """The folder of a run."""
        return Path(self.run_folder.format(dataset=dataset, system=system, seed=seed))

    def trained(self) -> list[tuple[str, str, int]]:
        """Dataset, system and seed of each trained run, in order."""
        return [
            (dataset, system, seed)
            for dataset, systems in self.runs.items()
            for system, seeds in systems.items()
            for seed in seeds
        ]
