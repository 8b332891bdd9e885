"""The rows of a study: corpora, datasets and systems."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from docmt.corpora.catalogue import ReadableCorpus
from docmt.corpora.controlled.settings import ControlledSettings
from docmt.settings import Settings

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"
RESERVED = ("benchmarks", "corpora", "report")


def _name(name: str) -> str:
    if not re.fullmatch(NAME, name):
        raise ValueError("a name is made of letters, digits, '_' and '-', for it becomes part of paths")
    return name


def _dataset_name(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"this name is taken by a folder of the results ({', '.join(RESERVED)})")
    return _name(name)


def _split_reference(reference: str) -> str:
    if not re.fullmatch(rf"{NAME}/{NAME}", reference):
        raise ValueError("write CORPUS/SPLIT")
    return reference


def _language(code: str) -> str:
    if not re.fullmatch(r"[a-z]{2,3}", code):
        raise ValueError("a language is a code of two or three small letters, such as en")
    return code


Name = Annotated[str, AfterValidator(_name)]
DatasetName = Annotated[str, AfterValidator(_dataset_name)]
SplitReference = Annotated[str, AfterValidator(_split_reference)]
Language = Annotated[str, AfterValidator(_language)]


class CorporaSettings(Settings):
    """Where documents come from, besides the catalogue that docmt ships (`docmt corpora list`)."""

    mirror: str | None = None
    """Folder that serves the catalogue's files, so that nothing is downloaded; `DOCMT_MIRROR` does the same."""
    controlled: dict[Name, ControlledSettings] = {}
    """Corpora that docmt generates itself (English and German), by name; splits `train`, `dev` and `test`."""
    custom: dict[Name, ReadableCorpus] = {}
    """Corpora of one's own files, described as the catalogue describes its own; files are paths."""


class DatasetSettings(Settings):
    """What is trained, tuned and tested on: splits of corpora, written `corpus/split` and joined in order."""

    src_lang: Language
    """Source language."""
    tgt_lang: Language
    """Target language."""
    train: list[SplitReference] = Field(min_length=1)
    """Training data; truecaser, BPE and vocabulary are learnt on it too."""
    dev: list[SplitReference] = Field(min_length=1)
    """Validation data: early stopping and the choice of the final model."""
    test: dict[Name, Annotated[list[SplitReference], Field(min_length=1)]] = Field(min_length=1)
    """Test sets by name; each is scored by itself."""
    suites: list[SplitReference] = []
    """Contrastive test sets, written `corpus/suite`."""
    text: dict[str, Any] = {}
    """Keys of section `text` that differ for this dataset."""

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.src_lang, self.tgt_lang

    def parts(self) -> dict[str, list[str]]:
        """Its splits by their names in paths: `train`, `dev` and `test_{name}`."""
        return {"train": self.train, "dev": self.dev} | {f"test_{name}": self.test[name] for name in self.test}

    def suite_names(self) -> list[str]:
        """Its contrastive test sets by their names in paths."""
        return [reference.split("/")[1] for reference in self.suites]

    def suite_reference(self, suite: str) -> str:
        """The `corpus/suite` behind a suite's name in paths."""
        return next(reference for reference in self.suites if reference.split("/")[1] == suite)


class SystemSettings(Settings):
    """A model and its recipe. Its runs are dataset × system × seed."""

    datasets: list[str] | None = None
    """Datasets it is trained on; null means all."""
    segmentation: str
    """How documents become instances: a name in section `instances`."""
    architecture: str
    """What each attention sees: a name in `docmt config presets`."""
    size: str = "base"
    """Layers and widths: a name in `docmt config presets`."""
    model: dict[str, Any] = {}
    """Keys of the model's settings, put over those of size and architecture."""
    recipe: str
    """How it is trained: a name in section `training`."""
    training: dict[str, Any] = {}
    """Keys of the training settings, put over those of the recipe."""
    init: str | None = None
    """System whose model of the same dataset and seed gives the first parameters; null starts from scratch."""
    seeds: list[int] | None = Field(None, min_length=1)
    """Seeds of this system; null takes the study's `seeds`."""
