"""Study rows: corpora, datasets and systems."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from docmt.config.names import Language, Name, Seeds, SplitReference
from docmt.controlled.settings import ControlledSettings
from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.mtdata_corpus import MtdataCorpus
from docmt.corpora.settings import FilterSettings
from docmt.models.settings import ModelSettings
from docmt.settings import Settings, UserPath

SENTENCES = "sentences"
MONOLINGUAL = "monolingual"
"""Path names for pre-training parts."""
TRAINED_ON = ("train", SENTENCES, MONOLINGUAL)


class CorporaSettings(Settings):
    """Corpora in addition to docmt's catalog (`docmt corpora list`)."""

    mirror: str | None = None
    """Folder with copies of catalog files, as `DOCMT_MIRROR`. Default: download."""
    controlled: dict[Name, ControlledSettings] = {}
    """Generated English-German corpora, by name. Their splits are `train`, `dev` and `test`."""
    custom: dict[Name, ReadableCorpus] = {}
    """Corpora in your files, by name."""
    mtdata: dict[Name, MtdataCorpus] = {}
    """Datasets of mtdata, by name. Each has the split `all`."""
    filters: dict[Name, FilterSettings] = {}
    """Filters for sentence pairs, by name. `datasets.NAME.filters` applies them."""


class DatasetSettings(Settings):
    """Training, development and test data. Splits are written `corpus/split` and joined in order."""

    src_lang: Language
    """Source language code."""
    tgt_lang: Language
    """Target language code."""
    train: list[SplitReference] = Field(min_length=1)
    """Training splits. Truecaser, BPE and vocabulary are learned from them, `sentences` and `monolingual`."""
    dev: list[SplitReference] = Field(min_length=1)
    """Validation splits, for early stopping and model selection."""
    test: dict[Name, Annotated[list[SplitReference], Field(min_length=1)]] = Field(min_length=1)
    """Test sets by name. They are scored separately."""
    references: dict[Name, list[UserPath]] = {}
    """Files with additional references, by test set: plain lines, SGML or XML (`.sgm`, `.sgml`, `.xml`)."""
    suites: list[SplitReference] = []
    """Contrastive and generative test sets, written `corpus/suite`."""
    sentences: list[SplitReference] = []
    """Sentence pairs for pre-training. Documents are read sentence by sentence."""
    monolingual: list[SplitReference] = []
    """Documents for monolingual pre-training: a monolingual corpus, or one side in a parallel corpus."""
    monolingual_lang: Language | None = None
    """Language for `monolingual`. Default: the source language."""
    filters: dict[str, Name] = {}
    """Rows of `corpora.filters` by part (`train`, `sentences`, `dev`, `test_NAME`), for example `{train: web}`."""
    text: dict[str, Any] = {}
    """Keys of section `text` to override for this dataset."""

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return self.src_lang, self.tgt_lang

    def parts(self) -> dict[str, list[str]]:
        """Return the splits by their path names: `train`, `dev` and `test_{name}`."""
        parts = {"train": self.train, "dev": self.dev}
        for name, references in self.test.items():
            parts[f"test_{name}"] = references
        return parts

    def parallel_parts(self) -> dict[str, list[str]]:
        """Return all parallel data: `parts`, and `sentences` if set."""
        parts = self.parts()
        if self.sentences:
            parts[SENTENCES] = self.sentences
        return parts

    def all_parts(self) -> dict[str, list[str]]:
        """Return `parallel_parts`, and `monolingual` if set."""
        parts = self.parallel_parts()
        if self.monolingual:
            parts[MONOLINGUAL] = self.monolingual
        return parts

    def part_languages(self, part: str) -> tuple[str, ...]:
        """Return a part's languages: both, or the monolingual language."""
        if part == MONOLINGUAL:
            return (self.monolingual_lang or self.src_lang,)
        return self.languages

    def learned_on(self, lang: str) -> list[str]:
        """Return the parts that provide training text in a language."""
        return [part for part in self.all_parts() if part in TRAINED_ON and lang in self.part_languages(part)]

    def suite_names(self) -> list[str]:
        """Return the contrastive test sets' path names."""
        return [reference.split("/")[1] for reference in self.suites]

    def suite_reference(self, suite: str) -> str:
        """Return the `corpus/suite` for a path name."""
        return next(reference for reference in self.suites if reference.split("/")[1] == suite)


USER_OUTPUT_KEYS = {"hypotheses", "log_probabilities"}
"""The only keys for external systems."""


class PretrainedInit(Settings):
    """A published model to start from."""

    pretrained: str
    """Folder (transformers format) or name in `docmt models list`. Must equal `text.pretrained`."""


class SystemSettings(Settings):
    """A model to train, a published model, or an external system whose outputs are read from files.

    Runs are dataset × system × seed.
    """

    overridden: ClassVar[dict[str, type[Settings]]] = {"model": ModelSettings}

    datasets: list[str] | None = None
    """Datasets to train on. Default: all."""
    hypotheses: dict[str, UserPath] = {}
    """External system's translation files, by `DATASET/TEST`."""
    log_probabilities: dict[str, UserPath] = {}
    """External system's files with contrastive candidate scores, by `DATASET/SUITE`."""
    instances: str = ""
    """Name in section `instances`. Required, except for external systems."""
    use_model_of: Name | None = None
    """System whose trained models this system decodes with. Default: train models."""
    architecture: str | None = None
    """Name in `docmt config presets`. Required, unless `use_model_of` is set, or for a published model as it is."""
    size: str = "base"
    """Layers and widths: a name in `docmt config presets`, or `pretrained` for the same size as `text.pretrained`."""
    model: dict[str, Any] = {}
    """Model settings that override size and architecture."""
    recipe: str | None = None
    """Name in section `training`. Required, unless `use_model_of` is set, or for a published model as it is."""
    training: dict[str, Any] = {}
    """Training settings that override the recipe."""
    init: str | PretrainedInit | None = None
    """Initial weights: the model of another system (same dataset and seed), or a published model (`{pretrained:
    FOLDER or NAME}`). Default: random. A published model without architecture and recipe is not trained, but
    translates sentence by sentence."""

    seeds: Seeds | None = None
    """Random seeds for this system. Default: the study's `seeds`."""
    decoding: dict[str, Any] = {}
    """Keys of section `decoding` to override for this system."""
    evaluate: bool = True
    """Translate and score the test sets. Set to false for systems that only pre-train."""

    @property
    def has_user_output(self) -> bool:
        """True for external systems."""
        return bool(self.hypotheses or self.log_probabilities)

    @property
    def is_published(self) -> bool:
        """True for published models that are not trained further."""
        return isinstance(self.init, PretrainedInit) and self.architecture is None and self.recipe is None

    def runs_on(self, dataset: str) -> bool:
        """True if the system is trained on a dataset, or has output for one of the test sets."""
        if self.has_user_output:
            return any(name.split("/")[0] == dataset for name in (*self.hypotheses, *self.log_probabilities))
        return self.datasets is None or dataset in self.datasets

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.has_user_output:
            superfluous = sorted(self.model_fields_set - USER_OUTPUT_KEYS)
            if superfluous:
                raise ValueError(
                    "an external system (with hypotheses or log_probabilities) has no other keys: remove "
                    f"{superfluous[0]}"
                )
            return self
        if not self.instances:
            raise ValueError("instances is missing: set it, or set hypotheses for an external system")
        if self.is_published:
            superfluous = sorted(self.model_fields_set & {"size", "model", "training", "use_model_of"})
            if superfluous:
                raise ValueError(
                    "a published model without architecture and recipe is not trained: remove "
                    f"{superfluous[0]}, or set both"
                )
            return self
        if self.use_model_of is None:
            for key in ("architecture", "recipe"):
                if getattr(self, key) is None:
                    raise ValueError(
                        f"{key} is missing: set it, or set use_model_of to use the models of another system"
                    )
            return self
        superfluous = sorted(self.model_fields_set & {"architecture", "recipe", "size", "model", "training", "init"})
        if superfluous:
            raise ValueError(
                f"use_model_of uses the models of {self.use_model_of!r} unchanged; remove {superfluous[0]}"
            )
        return self

    @property
    def init_system(self) -> str | None:
        """System that provides the initial model, or None."""
        if isinstance(self.init, str):
            return self.init
        return None
