"""Options that several `docmt evaluate` commands share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import OptionalFile, option, optional_file

Outputs = Annotated[
    list[Path],
    option("test_NAME.jsonl (translations), suite_NAME.json (candidate scores) or generated_NAME.jsonl (suite)."),
]
TextFiles = Annotated[list[Path], option("raw text of a split: PREFIX.documents.tsv, and PREFIX.LANG of both sides.")]
SuiteFile = Annotated[OptionalFile, optional_file("contrastive test set (JSON lines).")]
TestName = Annotated[str, option("name of the test set or suite.")]
Fingerprint = Annotated[
    str | None, option("hash of settings and inputs, which scores record. Default: hash of the settings.")
]


@Parameter(name="*", show_default=False)
@dataclass(frozen=True, kw_only=True)
class TestFiles:
    """Options that name the texts and suites of tests."""

    texts: Sequence[Path] = ()
    """raw texts of test splits: test_NAME.documents.tsv, and test_NAME.LANG of both sides."""
    suites: Sequence[Path] = ()
    """contrastive and generative test sets, NAME.jsonl."""
    references: Sequence[str] = ()
    """additional references, TEST=FILE, with a line for each sentence, or in SGML or XML."""
    external: Sequence[str] = ()
    """scores of other programs, TEST/METRIC=FILE, with a number for each sentence or document. A metric of a test has
    one file per output, and then one per output of the baseline."""
    src_lang: str
    """source language code."""
    tgt_lang: str
    """target language code."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """Options that identify the scored run."""

    dataset: str
    """name of the dataset."""
    system: str
    """name of the system."""
    seed: int
    """seed of the run."""
