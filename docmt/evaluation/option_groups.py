"""Options that several commands of `docmt evaluate` share, as dataclasses that the command line takes apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from docmt.commands import SrcLang, TgtLang, option
from docmt.corpora.documents import DocumentIndex
from docmt.evaluation.references import read_more_references, read_reference
from docmt.files import write_json
from docmt.provenance import describe_result

if TYPE_CHECKING:  # numpy is imported by the commands that need it
    from docmt.evaluation.significance import PairedDifference


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TestText:
    """Options that name the text of a test split, with all its references."""

    prefix: Annotated[Path, option("raw text of the split, as PREFIX.{lang}, with PREFIX.documents.tsv.")]
    src_lang: SrcLang
    tgt_lang: TgtLang
    references: Annotated[
        list[Path] | None,
        option("further references: a line for each sentence of the split, or refsets in SGML or XML."),
    ] = None

    def read(self) -> tuple[DocumentIndex, list[str], list[list[str]]]:
        """The document index, the reference and the further references."""
        index, reference = read_reference(self.prefix, src_lang=self.src_lang, tgt_lang=self.tgt_lang)
        return index, reference, read_more_references(self.references or [], index, reference)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """Options that say which run was scored on which test."""

    dataset: Annotated[str, option("name of the dataset.")]
    system: Annotated[str, option("name of the system.")]
    seed: Annotated[int, option("seed of the run.")]
    test: Annotated[str, option("name of the test set or suite.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ComparedPair:
    """Options that name the files of two systems, one file for each seed."""

    system: Annotated[list[Path], option("files of the system, one for each seed.")]
    baseline: Annotated[list[Path], option("files of the baseline, one for each seed.")]
    names: Annotated[tuple[str, str], option("names of the system and of the baseline.")]
    dataset: Annotated[str, option("name of the dataset.")]
    test: Annotated[str, option("name of the test set or suite.")]

    def write(self, out: Path, found: "Sequence[PairedDifference]", *, settings: Mapping[str, Any]) -> None:
        """Write the differences with their provenance."""
        keys = {"dataset": self.dataset, "test": self.test, "system": self.names[0], "baseline": self.names[1]}
        described = describe_result(settings=settings)
        write_json(out, {"provenance": described, "differences": [keys | vars(difference) for difference in found]})
