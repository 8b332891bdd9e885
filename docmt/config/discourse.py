"""Rows in section `discourse`: segmenters, parsers, and trees for models."""

from typing import Literal, Self

from pydantic import Field, model_validator

from docmt.config.names import Name
from docmt.discourse.settings import ParserSettings, SegmenterSettings
from docmt.instances.settings import InstancesSettings
from docmt.settings import Settings, UserPath

PLAIN_PARSERS = ("chain", "random")
"""Untrained parsers (controls)."""
TREEBANKS = {"gum": "gum", "gcdt": "gcdt", "rst-dt": "rst_dt"}
"""Treebanks in the catalog, with their format names."""


class SegmenterRow(Settings):
    """An EDU segmenter to train."""

    treebank: str
    """Training data: `gum`, `gcdt`, `rst-dt`, or a row of `corpora.controlled` (better not a translated one)."""
    settings: SegmenterSettings = SegmenterSettings()
    """Network and training."""
    seed: int = Field(default=1, ge=0)
    """Random seed."""


class ParserRow(Settings):
    """An RST parser to train."""

    treebank: str
    """Training data, as for segmenters."""
    segmenter: Name
    """Row of `discourse.segmenters` whose word states the parser reads."""
    settings: ParserSettings = ParserSettings()
    """Constraints, network and training."""
    seed: int = Field(default=1, ge=0)
    """Random seed."""


class TreesRow(Settings):
    """Origin of source trees: segmenter and parser, gold trees, or files."""

    segmenter: Name | None = None
    """Row of `discourse.segmenters`. Required, unless `gold` or `files` is set."""
    parser: Name | None = None
    """Row of `discourse.parsers`, or an untrained control: `chain` or `random`. Required with `segmenter`."""
    sentences: Literal["parser", "chain"] = "parser"
    """Tree over sentences: from the parser (`parser`), or a chain, where every sentence depends on the preceding one.
    Trees inside sentences always come from the parser."""
    gold: bool = False
    """Use gold trees (generated corpora only)."""
    files: dict[str, UserPath] = {}
    """User-supplied tree files, by `DATASET/train`, `DATASET/dev`, `DATASET/test_NAME` or `DATASET/suite_NAME`, and by
    `DATASET/sentences` for systems with the task `pairs`."""
    n_shards: int = Field(default=1, ge=1)
    """Parallel jobs per training split."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        sources = [bool(self.segmenter or self.parser), self.gold, bool(self.files)]
        if sum(sources) != 1 or (sources[0] and not (self.segmenter and self.parser)):
            raise ValueError("set one source of trees: segmenter and parser, gold: true, or files")
        if self.sentences == "chain" and not self.parser:
            raise ValueError("sentences: chain requires segmenter and parser; remove it for gold trees and files")
        return self


class DiscourseSettings(Settings):
    """EDUs and RST trees for source documents, for systems that read trees."""

    segmenters: dict[Name, SegmenterRow] = {}
    """EDU segmenters to train, by name."""
    parsers: dict[Name, ParserRow] = {}
    """RST parsers to train, by name."""
    trees: dict[Name, TreesRow] = {}
    """Trees of source documents, by name. Rows of `instances` refer to these names."""


class InstancesRow(InstancesSettings):
    """Documents split into instances, with or without trees."""

    trees: Name | None = None
    """Row of `discourse.trees`. Default: no trees."""

    @model_validator(mode="after")
    def _check_trees(self) -> Self:
        if self.shuffled and self.trees is not None:
            raise ValueError("shuffled sentences have no trees: remove shuffled or trees")
        return self

    def instances(self) -> InstancesSettings:
        """Return the settings for `docmt instances build`, without the tree name."""
        return InstancesSettings(**self.model_dump(exclude={"trees"}))
