"""Training tasks that take turns, and their instances (cross-task pre-training, §2.3 and §3).

Tasks have their own instances and make their own passes over them. The update number determines the task.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from docmt.errors import UserError
from docmt.instances.packing import BoundaryTokens, as_sentences
from docmt.instances.restoration import Noise, RestorationSymbols
from docmt.instances.storage import InstanceSet
from docmt.models.batch import Batch, collate
from docmt.models.model_file import boundary_tokens
from docmt.models.settings import Context, MarkSettings, ModelSettings
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import Vocabulary
from docmt.training.settings import TaskName, TrainingSettings

DEV_NOISE_EPOCH = 0  # every validation noises development documents as in this epoch, so that losses can be compared


@dataclass(frozen=True)
class Task:
    """One training task."""

    name: TaskName
    train: InstanceSet  # without noise
    dev: InstanceSet  # with the noise of the task
    boundaries: BoundaryTokens | None = None  # None: as in the instances
    context: Context = "document"  # whether a context encoder reads the instances as documents
    noise: Noise | None = None  # of the source side

    @cached_property
    def tokens(self) -> np.ndarray:
        """Tokens per training instance, as batches count them, int64."""
        return self.train.n_tokens()

    def read(self, instances: np.ndarray, *, epoch: int) -> tuple[InstanceSet, np.ndarray]:
        """Read training instances with the noise for an epoch, if any. Returns a set, and the numbers in it."""
        if self.noise is None:
            return self.train, instances
        noised = self.noise.apply(self.train, instances, epoch=epoch)
        return noised, np.arange(len(noised))

    def collate(self, instance_set: InstanceSet, instances: np.ndarray, settings: ModelSettings) -> Batch:
        """Collate instances from `dev`, or from a set returned by `read`, into a batch."""
        return collate(instance_set, instances.tolist(), settings, boundaries=self.boundaries, context=self.context)


@dataclass(frozen=True)
class TaskData:
    """Data for all tasks."""

    train: InstanceSet
    dev: InstanceSet
    pairs: InstanceSet | None
    monolingual: InstanceSet | None
    monolingual_side: Literal["src", "tgt"] = "src"  # the side of parallel documents in the language of `monolingual`


def build_tasks(
    settings: TrainingSettings,
    data: TaskData,
    vocabulary: Vocabulary,
    pipeline: TextPipeline,
    *,
    seed: int,
    symbols: MarkSettings | None = None,
) -> list[Task]:
    """Return the tasks in a recipe, in order, for a model with the boundary tokens `symbols`."""
    for name, option, instance_set in (
        ("pairs", "--pairs", data.pairs),
        ("restoration", "--monolingual", data.monolingual),
    ):
        if name in settings.tasks and instance_set is None:
            raise UserError(f"training.tasks contains {name!r}, which needs {option} FOLDER")
        if name not in settings.tasks and instance_set is not None:
            raise UserError(f"{option}: training.tasks does not contain {name!r}: add it, or remove {option}")
    boundaries = boundary_tokens(symbols, vocabulary, pipeline)
    tasks = []
    for name in settings.tasks:
        if name == "documents":
            tasks.append(Task(name, data.train, data.dev, boundaries))
        elif name == "restoration":
            assert data.monolingual is not None
            noise = Noise(settings.restoration, RestorationSymbols.of(vocabulary), seed)
            side = data.monolingual_side
            # Development documents with this side as source and target, without trees.
            tokens, offsets = getattr(data.dev, f"{side}_tokens"), getattr(data.dev, f"{side}_offsets")
            dev = replace(
                data.dev, src_tokens=tokens, src_offsets=offsets, tgt_tokens=tokens, tgt_offsets=offsets, trees=None
            )
            dev = noise.apply(dev, np.arange(len(dev)), epoch=DEV_NOISE_EPOCH)
            lang = getattr(pipeline, f"{side}_lang")
            restored = boundary_tokens(symbols, vocabulary, pipeline, both=lang)
            tasks.append(Task(name, data.monolingual, dev, restored, noise=noise))
        else:
            train = as_sentences(data.train) if name == "sentences" else data.pairs
            assert train is not None
            tasks.append(Task(name, train, as_sentences(data.dev), boundaries, "none"))
    return tasks
