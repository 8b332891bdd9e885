"""Settings and files of a training."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from cyclopts import Parameter
from cyclopts.validators import Number
from pydantic import Field, model_validator

from docmt.commands import (
    ModelFingerprint,
    OptionalFile,
    OutFile,
    OutWithJobFacts,
    SharedFolder,
    option,
    optional_file,
)
from docmt.instances.settings import RestorationSettings
from docmt.models.attention.patterns import PATTERNS, SLOTS, Pattern
from docmt.models.settings import ModelSettings
from docmt.settings import Settings

TaskName = Literal["documents", "sentences", "pairs", "restoration"]
"""What a training can learn: to translate documents, the sentences of these documents, or further sentence pairs; or to
restore noised monolingual documents."""

# What is wrong with a recipe that freezes the sentence model of a model with a context module.
FROZEN_SENTENCES = "training.freeze 'pretrained': the tasks 'sentences' and 'pairs' read no context, so they have "
FROZEN_SENTENCES += "nothing to train: remove them"

HISTORY_COLUMNS = (
    *("step", "epoch", "tokens", "seconds", "tokens_per_second", "learning_rate", "gradient_norm", "train_loss"),
    *("dev_loss", "dev_nll", "entropy_cross", "entropy_encoder", "entropy_decoder"),
)
TASK_COLUMNS = ("passes", "train_loss", "dev_loss")
"""Columns per task if there are several, followed by the task name, for example `train_loss_restoration`."""

LoggerName = Literal["csv", "tensorboard", "wandb", "mlflow"]
"""A logger of Lightning."""

GraphsMode = Literal["auto", "off"]
"""`auto`: a training records updates as CUDA graphs if it can. `off`: it never does."""


class TrainingSettings(Settings):
    """The keys of a recipe that shape a model. The defaults train G-Transformer from scratch (Appendix B.2, C.1)."""

    tasks: list[TaskName] = Field(default=["documents"], min_length=1)
    """Training tasks, one update each in turn. The first determines epochs and validation loss. `documents`: parallel
    documents. `sentences`: the sentences of these documents without context. `pairs`: the sentence pairs in
    `sentences` of the dataset. `restoration`: `monolingual` of the dataset, noised (cross-task pre-training)."""
    restoration: RestorationSettings = RestorationSettings()
    """Noise for the task `restoration`."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate of parameters that are not copied from `init`."""
    pretrained_learning_rate: float = Field(default=1e-4, gt=0)
    """Peak learning rate of parameters copied from `init`."""
    init_new_parameters: Literal["random", "zero"] = "random"
    """Initial values of parameters that the `init` model lacks. `random`: as in the papers. `zero`: output layers start
    at zero, so that the model first translates exactly as the `init` model (docs/pretrained.md)."""
    freeze: Literal["none", "pretrained"] = "none"
    """Parameters to exclude from training: `none`, or `pretrained` (copied from `init`)."""
    warmup_steps: int = Field(default=4000, ge=0)
    """Number of linear warm-up updates."""
    decay_steps: int | None = Field(default=None, ge=1)
    """Update at which the learning rate reaches 0, with linear decay after warm-up. Default: inverse square root
    decay."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """Adam's beta1 (decay of the first moment)."""
    adam_beta2: float = Field(default=0.98, ge=0, lt=1)
    """Adam's beta2 (decay of the second moment)."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """Adam's epsilon."""
    max_gradient_norm: float | None = Field(default=None, gt=0)
    """Maximum gradient norm (clipping). Default: no clipping."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Label smoothing: probability mass spread evenly over the vocabulary."""
    word_dropout: float = Field(default=0.3, ge=0, lt=1)
    """Probability of replacing an input word by `<mask>`, on the source and target side."""
    word_dropout_epochs: int | None = Field(default=None, ge=1)
    """Number of epochs with word dropout (29 or 39 in the paper's code). Default: all."""
    drop_rst: float = Field(default=0.0, ge=0, le=1)
    """Probability that an update trains an instance without its tree. With 1, trees are never used, not even in
    validation."""
    max_batch_tokens: int = Field(default=4096, ge=1)
    """Maximum batch size in tokens: the sum over instances of max(source, target)."""
    accumulation_steps: int = Field(default=1, ge=1)
    """Number of batches per update (gradient accumulation)."""
    max_steps: int | None = Field(default=None, ge=1)
    """Maximum number of updates. Default: no limit."""
    max_epochs: int | None = Field(default=None, ge=1)
    """Maximum number of epochs over the first task's instances. Default: no limit."""
    patience: int | None = Field(default=10, ge=1)
    """Stop after this many validations without improvement. null: no early stopping."""
    validate_every_steps: int | None = Field(default=None, ge=1)
    """Number of updates between validations. Default: validate after each epoch."""
    log_every_steps: int = Field(default=50, ge=1)
    """Number of updates between rows of `history.csv`."""
    precision: Literal["auto", "fastest", "float32", "tf32", "bfloat16", "float16"] = "auto"
    """`auto`: bfloat16 on GPUs that support it, otherwise float32. `fastest`: also bfloat16 on CPUs that train faster
    with it, and float16 on GPUs without bfloat16 (V100, T4). `tf32`: float32 with TF32 matrix products. `float32`:
    never TF32. `float16`: with loss scaling, only on GPUs."""
    compile: Literal["auto", "off"] = "auto"
    """`auto`: `torch.compile` on GPUs with flash attention and triton. Results are equal up to rounding and the random
    numbers of dropout."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_steps is None and self.max_epochs is None and self.patience is None:
            raise ValueError("max_steps, max_epochs and patience are all null: set one of them, so that training ends")
        twice = next((name for name in self.tasks if self.tasks.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"tasks contains {twice!r} twice")
        if self.decay_steps is not None and self.decay_steps <= max(self.warmup_steps, 1):
            raise ValueError(f"decay_steps is {self.decay_steps}: it must be above warmup_steps, {self.warmup_steps}")
        return self


N_CHECKPOINTS = 2  # during a training


class Recipe(TrainingSettings):
    """A training recipe. The defaults train G-Transformer from scratch as in the paper (Appendix B.2, C.1)."""

    loggers: list[LoggerName] = []
    """Lightning loggers in addition to `history.csv`, written to `loggers/` of the run. `wandb` and `mlflow` only write
    files and contact no server. Changing loggers reruns nothing."""
    checkpoint_every_minutes: float = Field(default=10, gt=0)
    """Minutes between checkpoints. Validations and interruptions also write one. Changing this reruns nothing."""
    checkpoint_every_steps: int | None = Field(default=None, ge=1)
    """Number of updates between additional checkpoints. Default: none. Changing this reruns nothing."""
    keep_checkpoints: int = Field(default=1, ge=0, le=N_CHECKPOINTS)
    """Number of checkpoints that a finished training keeps, from the newest. 1 can be continued with a larger
    `max_steps`, and 2 is safe from a damaged file. Changes apply to later trainings."""
    graphs: GraphsMode = "off"
    """`auto`: record updates as CUDA graphs on GPUs with flash attention (docs/training.md). Results are equal up to
    rounding and the random numbers of dropout, and a training can continue with either value. Not yet tested on a GPU.
    Changing this reruns nothing."""


def history_columns() -> list[str]:
    """Return all columns that a training history can have (docs/training.md)."""
    tasks = [f"{column}_{task}" for column in TASK_COLUMNS for task in get_args(TaskName)]
    columns = [*HISTORY_COLUMNS, "dev_nll_marks", *tasks]
    for measure in ("entropy", "below_uniform"):
        columns += [f"{measure}_{slot}" for slot in SLOTS]
        for name, pattern in PATTERNS.items():
            # Fusions are measured by part. Patterns of context modules have no slots, and are not measured.
            if isinstance(pattern, Pattern):
                columns += [f"{measure}_{slot}_{name}" for slot in pattern.slots]
    return list(dict.fromkeys(columns))


class RunSettings(Settings):
    """The settings of `docmt train`."""

    model: ModelSettings
    """Size and attention."""
    training: TrainingSettings
    """Recipe."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainingFiles:
    """Input and output files of a training, with the words of `docmt train` on each.

    Each combination of settings, data and seed has a subfolder of `checkpoints`, so that a changed setting never
    resumes from the wrong weights.
    """

    train: Annotated[Path, option("folder of training instances.")]
    dev: Annotated[Path, option("folder of validation instances.")]
    pairs: Annotated[OptionalFile, optional_file("folder of sentence pairs, for the task `pairs`.")] = None
    monolingual: Annotated[
        OptionalFile, optional_file("folder of monolingual documents, for the task `restoration`.")
    ] = None
    monolingual_lang: Annotated[str | None, option("language of --monolingual. Default: the source language.")] = None
    vocabulary: Annotated[Path, option("vocabulary file, stored in the model.")]
    pipeline: Annotated[Path, option("text pipeline, stored in the model.")]
    init: Annotated[OptionalFile, optional_file("model file, or folder of a published model, to start from.")] = None
    init_fingerprint: ModelFingerprint = None
    checkpoints: Annotated[SharedFolder, option("folder for checkpoints, to resume from.")]
    history: Annotated[OutFile, option("CSV file to write.")]
    out: Annotated[OutWithJobFacts, option("model file to write.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Keys of a `Recipe` without effect on the model, with the words of `docmt train` on each."""

    loggers: Annotated[
        list[LoggerName] | None, option("Lightning loggers, which write to `loggers/` next to the model.")
    ] = None
    checkpoint_every_minutes: Annotated[
        float,
        option("minutes between checkpoints. Validations and interruptions also write one.", validator=Number(gt=0)),
    ] = 10
    checkpoint_every_steps: Annotated[
        int | None,
        option("number of updates between additional checkpoints. Default: none.", validator=Number(gte=1)),
    ] = None
    keep_checkpoints: Annotated[
        int,
        option("number of checkpoints that stay after the training, from the newest.", validator=Number(gte=0)),
    ] = 1
    graphs: Annotated[GraphsMode, option("`auto` records updates as CUDA graphs on GPUs with flash attention.")] = "off"


WITHOUT_EFFECT = tuple(field.name for field in fields(TrainingOptions))
"""Keys that fingerprints exclude."""
