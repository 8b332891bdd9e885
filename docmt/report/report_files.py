"""Input files of report and reader as options. Names in tables come from their paths."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import option
from docmt.paths import CORPUS_COUNTS, SPLIT_COUNTS, name_paths, names_in_path

Histories = Annotated[
    Sequence[Path],
    option("history.csv of `docmt train`, as DATASET/runs/SYSTEM/seedN/history.csv.", show_default=False),
]
Differences = Annotated[Sequence[Path], option("JSON files of `docmt evaluate difference`.", show_default=False)]


@Parameter(name="*", show_default=False)
@dataclass(frozen=True, kw_only=True)
class ReportFiles:
    """Input files of the report, in addition to scores."""

    histories: Histories = ()
    statistics: Sequence[Path] = ()
    """CSV files of `docmt instances count`."""
    overlaps: Sequence[Path] = ()
    """JSON files of `docmt corpora count-overlap`, as DATASET/corpora/overlap.json."""
    counts: Sequence[Path] = ()
    """corpora/CORPUS/LANGUAGES/SPLIT.counts.json, or DATASET/corpora/LANGUAGES/SPLIT.counts.json if filtered."""
    roundtrips: Sequence[Path] = ()
    """JSON files of `docmt text count-roundtrip`, as DATASET/text/roundtrip.json."""
    tree_statistics: Sequence[Path] = ()
    """CSV files of `docmt discourse count-trees`."""
    tree_relations: Sequence[Path] = ()
    """CSV files of `docmt discourse count-trees --relations`."""
    segmenters: Sequence[Path] = ()
    """Scores of segmenters, as discourse/segmenters/NAME/evaluation.json."""
    parsers: Sequence[Path] = ()
    """Scores of parsers, as discourse/parsers/NAME/evaluation.json."""
    differences: Differences = ()
    cases: Sequence[Path] = ()
    """CSV files of `docmt report cases`, as CASE.csv with the name in the settings."""
    benchmarks: Path | None = None
    """Snakemake's benchmarks, as FOLDER/RULE/NAME.tsv, next to the folders of datasets. Default: no costs."""


@Parameter(name="*", show_default=False)
@dataclass(frozen=True, kw_only=True)
class ReaderFiles:
    """Input files of the reader."""

    outputs: Sequence[Path] = ()
    """DATASET/runs/SYSTEM/seedN/decoding/FILE, FILE is test_NAME.jsonl, suite_NAME.json or generated_NAME.jsonl."""
    texts: Sequence[Path] = ()
    """DATASET/corpora/LANGUAGES/test_NAME.documents.tsv, and test_NAME.LANG of both sides."""
    suites: Sequence[str] = ()
    """Contrastive test sets, DATASET/SUITE=FILE."""
    generative: Sequence[str] = ()
    """Generative test sets, DATASET/SUITE=FILE."""
    trees: Sequence[str] = ()
    """EDUs and trees of test splits, DATASET/TEST/TREES=FILE. Files with the same name belong together."""


def name_counts(paths: Sequence[Path]) -> dict[str, Path]:
    """Return count files by name in the table, `CORPUS/SPLIT` or `DATASET/SPLIT, filtered`.

    If two files have the same name, it is followed by their languages.
    """
    of_corpora = []
    of_datasets = []
    for path in paths:
        if names_in_path(CORPUS_COUNTS, path):
            of_corpora.append(path)
        else:
            of_datasets.append(path)
    files = []
    for (corpus, languages, split), path in name_paths(CORPUS_COUNTS, of_corpora).items():
        files.append((f"{corpus}/{split}", languages, path))
    for (dataset, languages, split), path in name_paths(SPLIT_COUNTS, of_datasets).items():
        files.append((f"{dataset}/{split}, filtered", languages, path))
    n_files = Counter(name for name, _, _ in files)
    paths_by_name = {}
    for name, languages, path in files:
        if n_files[name] > 1:
            name = f"{name} ({languages})"
        paths_by_name[name] = path
    return paths_by_name
