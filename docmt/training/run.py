"""A training from files to a model file."""

import contextlib
import logging
from pathlib import Path
from typing import Literal

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
from docmt.training.tasks import TaskData, build_tasks
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
    sentences_folder: Path | None = None,
    monolingual_folder: Path | None = None,
    monolingual_lang: str | None = None,
    accelerator: str = "auto",
    devices: int = 1,
    nodes: int = 1,
) -> None:
    """Train a model and write it with its history. Of several processes each calls this; the first one writes.

    The tasks `pairs` and `restoration` read `sentences_folder` and `monolingual_folder`, whose documents are in the
    source language unless `monolingual_lang` says otherwise. A training of these alone takes from `train_folder` the
    segmentation only.

    Checkpoints lie in a folder of their own for each combination of settings, data and seed, so that a changed setting
    never resumes from the wrong weights. `max_steps` does not count: raising it goes on.

    Raises:
        UserError: a file does not fit, another trainer works on the same checkpoints, or training diverged.
    """
    if seed < 0:
        raise UserError(f"seed {seed}: must not be negative")
    vocabulary = Vocabulary.load(vocabulary_file)
    pipeline = TextPipeline.load(pipeline_file)
    folders = (train_folder, dev_folder, sentences_folder, monolingual_folder)
    sets = [None if folder is None else load_instances(folder) for folder in folders]
    train_set, dev_set, pairs, monolingual = sets
    for folder, instance_set in zip(folders, sets, strict=True):
        if folder is None:
            continue
        if instance_set.manifest.get("vocabulary_sha256") not in (None, sha256_file(vocabulary_file)):
            raise UserError(
                f"{vocabulary_file}: not the vocabulary that {folder} was built with, or damaged: build both again"
            )
        if max(instance_set.src_tokens.max(), instance_set.tgt_tokens.max()) >= len(vocabulary):
            raise UserError(
                f"{folder}: has tokens beyond the {len(vocabulary)} of {vocabulary_file}: build it with that one"
            )
        is_parallel = folder in (train_folder, dev_folder)
        if settings.model.needs_trees and is_parallel and instance_set.trees is None:
            raise UserError(f"{folder}: has no trees, but the model has RST attention: build the instances with trees")
    data = TaskData(train_set, dev_set, pairs, monolingual, _side(monolingual_lang, pipeline))
    tasks = build_tasks(settings.training, data, vocabulary, pipeline, seed=seed)
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
    if pairs is not None:
        identity["pairs"] = pairs.manifest["sha256"]
    if monolingual is not None:
        identity["monolingual"] = [data.monolingual_side, monolingual.manifest["sha256"]]
    fabric = make_fabric(
        settings.training.precision,
        accelerator,
        width=settings.model.width,
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
            tasks=tasks,
            settings=settings.training,
            seed=seed,
            folder=folder,
            fabric=fabric,
            n_specials=vocabulary.n_specials,
        )
        model = trainer.run()
    if not fabric.is_global_zero:
        return
    provenance = describe(
        settings=settings.model_dump(),
        seed=seed,
        data={key: identity[key] for key in ("train", "dev", "pairs", "monolingual") if key in identity},
        passes=trainer.passes(),
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


def _side(lang: str | None, pipeline: TextPipeline) -> Literal["src", "tgt"]:
    """The side of parallel text in a language; None means the source language."""
    if lang in (None, pipeline.src_lang):
        return "src"
    if lang != pipeline.tgt_lang:
        raise UserError(f"--monolingual-lang {lang}: neither {pipeline.src_lang} nor {pipeline.tgt_lang}")
    return "tgt"
