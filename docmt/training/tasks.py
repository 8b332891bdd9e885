"""Tasks: what a training learns in turn, and how each reads its instances (cross-task pre-training, §2.3 and §3).

Each task has its own instances and makes its own passes over them. The number of an update determines its task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from docmt.errors import UserError
from docmt.instances.packing import Marks, as_sentences
from docmt.instances.restoration import RestorationSymbols, noise_instances
from docmt.instances.settings import RestorationSettings
from docmt.instances.storage import InstanceSet, offsets_of
from docmt.models.batch import Batch, collate
from docmt.models.model_file import model_marks
from docmt.models.settings import Context, MarkSettings, ModelSettings
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import Vocabulary
from docmt.training.settings import TaskName, TrainingSettings

DEV_EPOCH = 0
"""Every validation noises development documents as in this epoch, so that losses can be compared."""


@dataclass(frozen=True)
class Noise:
    """Turns monolingual documents into documents to restore."""

    settings: RestorationSettings
    symbols: RestorationSymbols
    seed: int

    def apply(self, instance_set: InstanceSet, instances: np.ndarray, *, epoch: int) -> InstanceSet:
        """Take the given instances, in this order, with the noise of an epoch on their source side."""
        packed, _ = noise_instances(
            instance_set, instances.tolist(), seed=self.seed, epoch=epoch, settings=self.settings, symbols=self.symbols
        )
        return InstanceSet(
            src_tokens=packed.src_tokens_S,
            src_offsets=offsets_of(packed.src_lengths_G),
            tgt_tokens=packed.tgt_tokens_N,
            tgt_offsets=offsets_of(packed.tgt_lengths_G),
            instances=offsets_of(packed.counts_B),
            documents=instance_set.documents[instances],
            manifest=instance_set.manifest,
        )


@dataclass(frozen=True)
class Reading:
    """The instances of one update as a task reads them; batches are numbers of instances in `instance_set`."""

    instance_set: InstanceSet
    tokens: np.ndarray
    batches: list[np.ndarray]


@dataclass(frozen=True)
class Task:
    """One thing to learn.

    Attributes:
        name: as in the settings.
        train: what its passes run over.
        dev: what it is validated on, with noise where the task has some.
        marks: what stands around sentences; None for those of the instances.
        context: whether a context encoder reads the instances as documents.
        noise: of the source side in training, if any.
    """

    name: TaskName
    train: InstanceSet
    dev: InstanceSet
    marks: Marks | None = None
    context: Context = "document"
    noise: Noise | None = None

    @cached_property
    def tokens(self) -> np.ndarray:
        """The tokens of each training instance, as batches count them; int64."""
        return self.train.n_tokens()

    def read(self, batches: Sequence[np.ndarray], *, epoch: int) -> Reading:
        """Read the batches of an update, as they are in an epoch."""
        if self.noise is None:
            return Reading(self.train, self.tokens, list(batches))
        noised = self.noise.apply(self.train, np.concatenate(batches), epoch=epoch)
        ends = np.cumsum([len(batch) for batch in batches])
        return Reading(noised, noised.n_tokens(), np.split(np.arange(len(noised)), ends[:-1]))

    def collate(self, instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings) -> Batch:
        """Collate instances of `dev` or of a reading into a batch."""
        return collate(instance_set, instances.tolist(), settings, marks=self.marks, context=self.context)


@dataclass(frozen=True)
class TaskData:
    """The data of all tasks.

    Attributes:
        train, dev: parallel documents, in the cutting of the system.
        pairs: sentence pairs for pre-training, or None.
        monolingual: documents of one language, or None.
        monolingual_side: the side of parallel documents that is in the language of `monolingual`.
    """

    train: InstanceSet
    dev: InstanceSet
    pairs: InstanceSet | None
    monolingual: InstanceSet | None
    monolingual_side: Literal["src", "tgt"] = "src"


def build_tasks(
    settings: TrainingSettings,
    data: TaskData,
    vocabulary: Vocabulary,
    pipeline: TextPipeline,
    *,
    seed: int,
    symbols: MarkSettings | None = None,
) -> list[Task]:
    """Build the tasks of a recipe, in its order, for a model with the given marks.

    Raises:
        UserError: a task has no data, data have no task, or the vocabulary lacks a language tag or the masks.
    """
    for name, option, instance_set in (
        ("pairs", "--sentences", data.pairs),
        ("restoration", "--monolingual", data.monolingual),
    ):
        if name not in settings.tasks and instance_set is not None:
            raise UserError(f"{option}: training.tasks does not include {name!r}: add it or remove {option}")

    marks = model_marks(symbols, vocabulary, pipeline)

    def documents() -> Task:
        return Task("documents", data.train, data.dev, marks)

    def sentences() -> Task:
        return Task("sentences", as_sentences(data.train), as_sentences(data.dev), marks, "none")

    def pairs() -> Task:
        return Task("pairs", _required(data.pairs, "pairs", "--sentences"), as_sentences(data.dev), marks, "none")

    def restoration() -> Task:
        documents = _required(data.monolingual, "restoration", "--monolingual")
        noise = Noise(settings.restoration, RestorationSymbols.of(vocabulary), seed)
        side = data.monolingual_side
        lang = getattr(pipeline, f"{side}_lang")
        dev = one_side(data.dev, side)
        dev = noise.apply(dev, np.arange(len(dev)), epoch=DEV_EPOCH)
        both = model_marks(symbols, vocabulary, pipeline, both=lang)
        return Task("restoration", documents, dev, both, noise=noise)

    builders: dict[TaskName, Callable[[], Task]] = {
        "documents": documents,
        "sentences": sentences,
        "pairs": pairs,
        "restoration": restoration,
    }
    return [builders[name]() for name in settings.tasks]


def _required(instance_set: InstanceSet | None, task: TaskName, option: str) -> InstanceSet:
    if instance_set is None:
        raise UserError(f"training.tasks includes {task!r}, which needs {option} FOLDER")
    return instance_set


def one_side(instance_set: InstanceSet, side: Literal["src", "tgt"]) -> InstanceSet:
    """Use one side of parallel documents, `src` or `tgt`, as both sides; without trees."""
    tokens, offsets = getattr(instance_set, f"{side}_tokens"), getattr(instance_set, f"{side}_offsets")
    return replace(
        instance_set, src_tokens=tokens, src_offsets=offsets, tgt_tokens=tokens, tgt_offsets=offsets, trees=None
    )
