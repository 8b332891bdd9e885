"""A training from files to a model file."""

import contextlib
import logging
from pathlib import Path

import torch

from docmt.errors import UserError
from docmt.files import sha256_file
from docmt.instances.storage import load_instances
from docmt.models.initialise import copy_weights
from docmt.models.model_file import TrainedModel, load_content, save_model
from docmt.models.settings import ModelSettings
from docmt.models.transformer import Transformer
from docmt.provenance import describe, fingerprint
from docmt.settings import Settings
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import Vocabulary
from docmt.training.devices import make_fabric
from docmt.training.lock import FolderLock
from docmt.training.progress import write_history
from docmt.training.settings import TrainingSettings
from docmt.training.trainer import Trainer

log = logging.getLogger(__name__)


class RunSettings(Settings):
    """What `docmt train` needs to know."""

    model: ModelSettings
    """Size and attention."""
    training: TrainingSettings
    """Recipe."""


def train(
    settings: RunSettings,
    *,
    train_folder: Path,
    dev_folder: Path,
    vocabulary_file: Path,
    pipeline_file: Path,
    init: Path | None,
    seed: int,
    checkpoints: Path,
    history: Path,
    out: Path,
    accelerator: str = "auto",
    devices: int = 1,
    nodes: int = 1,
) -> None:
    """Train a model and write it with its history. Of several processes each calls this; the first one writes.

    Checkpoints lie in a folder of their own for each combination of settings, data and seed, so that a changed setting
    never resumes from the wrong weights. `max_steps` does not count: raising it goes on.

    Raises:
        UserError: a file does not fit, another trainer works on the same checkpoints, or training diverged.
    """
    if seed < 0:
        raise UserError(f"seed {seed}: must not be negative")
    vocabulary = Vocabulary.load(vocabulary_file)
    pipeline = TextPipeline.load(pipeline_file)
    train_set, dev_set = load_instances(train_folder), load_instances(dev_folder)
    for folder, instance_set in ((train_folder, train_set), (dev_folder, dev_set)):
        if instance_set.manifest.get("vocabulary_sha256") not in (None, sha256_file(vocabulary_file)):
            raise UserError(
                f"{vocabulary_file}: not the vocabulary that {folder} was built with, or damaged: build both again"
            )
        if max(instance_set.src_tokens.max(), instance_set.tgt_tokens.max()) >= len(vocabulary):
            raise UserError(
                f"{folder}: has tokens beyond the {len(vocabulary)} of {vocabulary_file}: build it with that one"
            )
        if settings.model.needs_trees and instance_set.trees is None:
            raise UserError(f"{folder}: has no trees, but the model has RST attention: build the instances with trees")
    torch.manual_seed(seed)
    model = Transformer(settings.model, len(vocabulary))
    pretrained: set[str] = set()
    if init is not None:
        content = load_content(init)
        if content["vocabulary"] != list(vocabulary.symbols):
            raise UserError(f"{init}: has another vocabulary than {vocabulary_file}: train both on the same text")
        pretrained = copy_weights(model, content["weights"])
        log.info("%d of %d parameters come from %s", len(pretrained), len(list(model.parameters())), init)
    identity = {
        "model": settings.model.model_dump(),
        "training": settings.training.model_dump(exclude={"max_steps"}),
        "train": train_set.manifest["sha256"],
        "dev": dev_set.manifest["sha256"],
        "vocabulary": sha256_file(vocabulary_file),
        "init": sha256_file(init) if init else None,
        "seed": seed,
    }
    fabric = make_fabric(
        settings.training.precision,
        accelerator,
        devices=devices,
        nodes=nodes,
        may_skip_parameters=settings.model.context is not None,
    )
    folder = checkpoints / fingerprint(identity)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    kind = f"{fabric.world_size} × {fabric.device.type}"  # read for the table of costs
    log.info("%.2fM parameters, %s, %s", n_parameters / 1e6, kind, fabric._precision.precision)
    with FolderLock(folder, devices=fabric.world_size) if fabric.is_global_zero else contextlib.nullcontext():
        trainer = Trainer(
            model,
            pretrained,
            train=train_set,
            dev=dev_set,
            settings=settings.training,
            seed=seed,
            folder=folder,
            fabric=fabric,
        )
        model = trainer.run()
    if not fabric.is_global_zero:
        return
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        data={"train": identity["train"], "dev": identity["dev"]},
        init=identity["init"],
        n_parameters=n_parameters,
        best_step=trainer.state.best_step,
        steps=trainer.state.step,
        seconds=round(trainer.state.seconds, 1),
        device=str(fabric.device),
        n_devices=fabric.world_size,
    )
    segmentation = train_set.manifest.get("provenance", {}).get("settings", {})
    save_model(out, TrainedModel(model, vocabulary, pipeline, segmentation, provenance))
    write_history(history, trainer.state)
