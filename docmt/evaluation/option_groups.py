"""Options that several `docmt evaluate` commands share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from cyclopts import Parameter
from pydantic import Field, model_validator

from docmt.commands import SrcLang, TgtLang, option
from docmt.corpora.documents import DocumentIndex
from docmt.errors import UserError
from docmt.evaluation.references import read_more_references, read_reference
from docmt.settings import Settings, read_argument


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TestText:
    """Options that name a test split's text and references."""

    prefix: Annotated[Path, option("raw text of the split, as PREFIX.{lang}, with PREFIX.documents.tsv.")]
    src_lang: SrcLang
    tgt_lang: TgtLang
    references: Annotated[
        list[Path] | None,
        option("additional references, with a line for each sentence, or in SGML or XML."),
    ] = None

    def read(self) -> tuple[DocumentIndex, list[str], list[list[str]]]:
        """Read document index, reference and additional references."""
        index, reference = read_reference(self.prefix, src_lang=self.src_lang, tgt_lang=self.tgt_lang)
        return index, reference, read_more_references(self.references or [], index, reference)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """Options that identify the scored run."""

    dataset: Annotated[str, option("name of the dataset.")]
    system: Annotated[str, option("name of the system.")]
    seed: Annotated[int, option("seed of the run.")]


class StudyTest(Settings):
    """A test split or suite with output files from `docmt decode` or an external system."""

    test: str
    """Test split or suite name."""
    prefix: str | None = None
    """A test split's raw text, as PREFIX.{lang}, with PREFIX.documents.tsv."""
    references: list[str] = []
    """Additional references for the split: one line per sentence, or refsets in SGML or XML."""
    contrastive: str | None = None
    """A contrastive test set instead of a split, JSON lines."""
    generative: str | None = None
    """A generative test set instead of a split, JSON lines."""
    outputs: list[str] = Field(min_length=1)
    """Translations or candidate log probabilities for one run, or one file per seed."""
    baseline: list[str] = []
    """The baseline's files."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.prefix, self.contrastive, self.generative).count(None) != 2:
            raise ValueError("set exactly one of prefix, contrastive and generative")
        return self

    def suite(self) -> Path:
        """Return the suite file."""
        return Path(self.contrastive or self.generative or "")


def read_tests(_: Any, tokens: Sequence[Any]) -> list[StudyTest]:
    """Parse the `--tests` value."""
    values = read_argument(tokens[0].value, where="--tests")
    if not (isinstance(values, list) and values):
        raise UserError('--tests: expected a list of tests, [{"test": NAME, …}, …]')
    return [StudyTest.load(value, where=f"--tests: test {number}") for number, value in enumerate(values, start=1)]


Tests = Annotated[
    list[StudyTest],
    option(
        "test splits and suites with the files to score, JSON or @FILE (docs/evaluation.md).",
        converter=read_tests,
        accepts_keys=False,
        n_tokens=1,
        json_list=False,
        metavar="JSON",
    ),
]
TestName = Annotated[str, option("name of the test set or suite.")]
