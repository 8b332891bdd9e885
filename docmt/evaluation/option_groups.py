"""Options that several `docmt evaluate` commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import OptionalFile, option, optional_file

Outputs = Annotated[
    list[Path],
    option("test_NAME.jsonl (translations), suite_NAME.json (candidate scores), generated_NAME.jsonl (suite)."),
]
TextFiles = Annotated[list[Path], option("raw text of a split: PREFIX.documents.tsv, and PREFIX.LANG of both sides.")]
TestTexts = Annotated[
    list[Path] | None,
    option("raw texts of test splits: PREFIX/test_NAME.documents.tsv, and test_NAME.LANG of both sides."),
]
SuiteFiles = Annotated[list[Path] | None, option("contrastive and generative test sets, NAME.jsonl.")]
SuiteFile = Annotated[OptionalFile, optional_file("contrastive test set (JSON lines).")]
References = Annotated[
    list[str] | None,
    option("additional references, TEST=FILE, with a line for each sentence, or in SGML or XML."),
]
TestName = Annotated[str, option("name of the test set or suite.")]
Fingerprint = Annotated[
    str | None,
    option("hash of settings and inputs, which scores record. Default: hash of the settings.", show_default=False),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """Options that identify the scored run."""

    dataset: Annotated[str, option("name of the dataset.")]
    system: Annotated[str, option("name of the system.")]
    seed: Annotated[int, option("seed of the run.")]
