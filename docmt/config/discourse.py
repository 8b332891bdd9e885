"""The rows of section `discourse`: segmenters, parsers, and the trees that models read."""

from typing import Literal, Self

from pydantic import Field, model_validator

from docmt.config.names import Name
from docmt.discourse.settings import ParserSettings, SegmenterSettings
from docmt.instances.settings import InstancesSettings
from docmt.settings import Settings, UserPath

PLAIN_PARSERS = ("chain", "random")
"""Parsers that need no training: controls."""
TREEBANKS = {"gum": "gum", "gcdt": "gcdt", "rst-dt": "rst_dt"}
"""Corpora of the catalog that are treebanks, and the name of their format."""


class SegmenterRow(Settings):
    """A segmenter to train."""

    treebank: str
    """`gum`, `gcdt`, `rst-dt`, or a row of corpora.controlled (not the documents to translate)."""
    settings: SegmenterSettings = SegmenterSettings()
    """The network and its training."""
    seed: int = Field(default=1, ge=0)
    """Seed of its training."""


class ParserRow(Settings):
    """A parser to train."""

    treebank: str
    """As for segmenters."""
    segmenter: Name
    """Row of discourse.segmenters whose word states the parser reads."""
    settings: ParserSettings = ParserSettings()
    """The parser and its training."""
    seed: int = Field(default=1, ge=0)
    """Seed of its training."""


class TreesRow(Settings):
    """Origin of the source documents' trees: segmenter and parser, gold, or files."""

    segmenter: Name | None = None
    """Row of discourse.segmenters."""
    parser: Name | None = None
    """Row of discourse.parsers, or a control without training: `chain` or `random`."""
    sentences: Literal["parser", "chain"] = "parser"
    """Origin of the tree of sentences: the parser, or a chain (each sentence depends on the one before); trees inside
    sentences are always the parser's."""
    gold: bool = False
    """The trees that a generated corpus comes with."""
    files: dict[str, UserPath] = {}
    """Files made elsewhere, by `DATASET/train`, `DATASET/dev`, `DATASET/test_NAME` or `DATASET/suite_NAME`."""
    n_shards: int = Field(default=1, ge=1)
    """Jobs per training split."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        given = [bool(self.segmenter or self.parser), self.gold, bool(self.files)]
        if sum(given) != 1 or (given[0] and not (self.segmenter and self.parser)):
            raise ValueError(
                "trees come from segmenter and parser, or from gold: true, or from files: give one of them"
            )
        if self.sentences == "chain" and not self.parser:
            raise ValueError("sentences: chain goes with segmenter and parser; leave it out for gold trees and files")
        return self


class DiscourseSettings(Settings):
    """EDUs and RST trees of the source documents, for systems that read them."""

    segmenters: dict[Name, SegmenterRow] = {}
    """EDU segmenters to train, by name."""
    parsers: dict[Name, ParserRow] = {}
    """RST parsers to train, by name."""
    trees: dict[Name, TreesRow] = {}
    """Trees, by the names that rows of `instances` take."""


class InstancesRow(InstancesSettings):
    """How documents become instances, and with which trees."""

    trees: Name | None = None
    """Row of discourse.trees; null reads none."""

    @model_validator(mode="after")
    def _check_trees(self) -> Self:
        if self.shuffled and self.trees is not None:
            raise ValueError("sentences that are dealt out to other documents have no trees: give shuffled or trees")
        return self

    def instances(self) -> InstancesSettings:
        """Without the name of the trees: what `docmt instances build` takes."""
        return InstancesSettings(**self.model_dump(exclude={"trees"}))
