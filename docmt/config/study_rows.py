"""The rows of a study: corpora, datasets and systems."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from docmt.config.names import Language, Name, Seeds, SplitReference
from docmt.controlled.settings import ControlledSettings
from docmt.corpora.catalog import ReadableCorpus
from docmt.models.settings import ModelSettings
from docmt.settings import Settings, UserPath

SENTENCES, MONOLINGUAL = "sentences", "monolingual"
"""Names in paths of the parts of a dataset for pre-training."""
TRAINED_ON = ("train", SENTENCES, MONOLINGUAL)


class CorporaSettings(Settings):
    """Sources of documents besides docmt's catalog (`docmt corpora list`)."""

    mirror: str | None = None
    """Folder to copy the catalog's files from, in place of downloading them; `DOCMT_MIRROR` does the same."""
    controlled: dict[Name, ControlledSettings] = {}
    """Corpora that docmt generates itself (English and German), by name; splits `train`, `dev` and `test`."""
    custom: dict[Name, ReadableCorpus] = {}
    """Corpora in your own files, described as in the catalog; files are paths."""


class DatasetSettings(Settings):
    """Training, development and test data: splits of corpora, written `corpus/split` and joined in order."""

    src_lang: Language
    """Source language."""
    tgt_lang: Language
    """Target language."""
    train: list[SplitReference] = Field(min_length=1)
    """Training data; truecaser, BPE and vocabulary are learned from it too."""
    dev: list[SplitReference] = Field(min_length=1)
    """Validation data: early stopping and the choice of the final model."""
    test: dict[Name, Annotated[list[SplitReference], Field(min_length=1)]] = Field(min_length=1)
    """Test sets by name; each is scored separately."""
    references: dict[Name, list[UserPath]] = {}
    """Files with further references, by test set: plain lines, or SGML or XML (`.sgm`, `.sgml`, `.xml`)."""
    suites: list[SplitReference] = []
    """Contrastive test sets, written `corpus/suite`."""
    sentences: list[SplitReference] = []
    """Sentence pairs for pre-training: text without documents, or documents read as single sentences."""
    monolingual: list[SplitReference] = []
    """Documents of one language for pre-training: monolingual corpora, or one side of parallel ones."""
    monolingual_lang: Language | None = None
    """Language of `monolingual`; null means the source language."""
    text: dict[str, Any] = {}
    """Keys of section `text` to override for this dataset."""

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.src_lang, self.tgt_lang

    def parts(self) -> dict[str, list[str]]:
        """Its splits by their names in paths: `train`, `dev` and `test_{name}`."""
        return {"train": self.train, "dev": self.dev} | {f"test_{name}": self.test[name] for name in self.test}

    def parallel_parts(self) -> dict[str, list[str]]:
        """`parts`, and `sentences` if there are any: everything with two sides."""
        return self.parts() | ({SENTENCES: self.sentences} if self.sentences else {})

    def all_parts(self) -> dict[str, list[str]]:
        """`parallel_parts`, and `monolingual` if there are any."""
        return self.parallel_parts() | ({MONOLINGUAL: self.monolingual} if self.monolingual else {})

    def part_languages(self, part: str) -> tuple[str, ...]:
        """The languages of a part: both, or that of the monolingual documents."""
        return (self.monolingual_lang or self.src_lang,) if part == MONOLINGUAL else self.languages

    def learned_on(self, lang: str) -> list[str]:
        """The parts that provide training text in a language."""
        return [part for part in self.all_parts() if part in TRAINED_ON and lang in self.part_languages(part)]

    @property
    def is_for_pretraining(self) -> bool:
        """Whether it holds text for cross-task pre-training."""
        return bool(self.sentences or self.monolingual)

    def suite_names(self) -> list[str]:
        """Its contrastive test sets by their names in paths."""
        return [reference.split("/")[1] for reference in self.suites]

    def suite_reference(self, suite: str) -> str:
        """The `corpus/suite` that a suite's name in paths refers to."""
        return next(reference for reference in self.suites if reference.split("/")[1] == suite)


USER_OUTPUT_KEYS = {"hypotheses", "log_probabilities"}
"""Keys that make a system one that docmt does not train; it has no others."""


class PretrainedInit(Settings):
    """A published model as a start."""

    pretrained: str
    """Folder, in the format of transformers, or name in `docmt models list`; the same as `text.pretrained`."""


class SystemSettings(Settings):
    """A model and its recipe, or the output of a system made elsewhere. Its runs are dataset × system × seed."""

    renamed: ClassVar[dict[str, str]] = {"segmentation": "cutting"}
    overridden: ClassVar[dict[str, type[Settings]]] = {"model": ModelSettings}

    datasets: list[str] | None = None
    """Datasets it is trained on; null means all."""
    hypotheses: dict[str, UserPath] = {}
    """For a system that docmt does not train: files with its translations, by test set `DATASET/TEST`."""
    log_probabilities: dict[str, UserPath] = {}
    """For such a system, files with its scores of the candidates of contrastive test sets, by `DATASET/SUITE`."""
    cutting: str = ""
    """Name in section `instances`; required unless the output of the system is given."""
    model_of: Name | None = None
    """System whose models this one decodes with instead of training its own."""
    architecture: str | None = None
    """Name in `docmt config presets`; required unless `model_of` is given."""
    size: str = "base"
    """Layers and widths: a name in `docmt config presets`, or `pretrained`: those of the model in `text.pretrained`."""
    model: dict[str, Any] = {}
    """Keys of the model's settings that override size and architecture."""
    recipe: str | None = None
    """Name in section `training`; required unless `model_of` is given."""
    training: dict[str, Any] = {}
    """Keys of the training settings that override the recipe."""
    init: str | PretrainedInit | None = None
    """System whose model of the same dataset and seed provides the initial parameters, or a published model:
    `{pretrained: FOLDER or NAME}`; null starts from scratch."""

    seeds: Seeds | None = None
    """Seeds of this system; null means the study's `seeds`."""
    decoding: dict[str, Any] = {}
    """Keys of section `decoding` to override for this system."""
    scored: bool = True
    """Whether its models translate and are scored; false for pre-training."""

    @property
    def has_user_output(self) -> bool:
        """Whether its output is read from files."""
        return bool(self.hypotheses or self.log_probabilities)

    def runs_on(self, dataset: str) -> bool:
        """Whether the system is trained on a dataset, or has output for a test of it."""
        if self.has_user_output:
            return any(name.split("/")[0] == dataset for name in (*self.hypotheses, *self.log_probabilities))
        return self.datasets is None or dataset in self.datasets

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.has_user_output:
            if other := sorted(self.model_fields_set - USER_OUTPUT_KEYS):
                raise ValueError(f"the output of this system is given, so docmt trains no model: leave out {other[0]}")
            return self
        if not self.cutting:
            raise ValueError("cutting is missing: set it, or give hypotheses of a system made elsewhere")
        missing = [key for key in ("architecture", "recipe") if getattr(self, key) is None]
        if self.model_of is None and missing:
            raise ValueError(f"{missing[0]} is missing: set it, or set model_of to use the models of another system")
        own = self.model_fields_set & {"architecture", "recipe", "size", "model", "training", "init"}
        if self.model_of is not None and own:
            raise ValueError(f"model_of uses the models of {self.model_of!r} unchanged; leave out {sorted(own)[0]}")
        return self

    @property
    def init_system(self) -> str | None:
        """The system that it starts from, if it starts from one."""
        return self.init if isinstance(self.init, str) else None
