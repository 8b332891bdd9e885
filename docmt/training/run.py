"""Training from files to a model file: data, tasks, initial weights, devices, then `trainer`."""

import contextlib
import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch

from docmt.checksums import sha256_file
from docmt.errors import UserError
from docmt.instances.storage import InstanceSet, load_instances, read_manifest
from docmt.models.initialization import copy_weights, freeze, zero_init_outputs
from docmt.models.model_file import TrainedModel, boundary_tokens, load_content, save_model, weights_digest
from docmt.models.published.families import NEVER
from docmt.models.published.importing import published_weights
from docmt.models.systems.context_transformer import build_transformer
from docmt.models.systems.transformer import Transformer
from docmt.provenance import describe, fingerprint, write_job_facts
from docmt.text.pipeline import TextPipeline
from docmt.text.vocabulary import EOD, Vocabulary
from docmt.training.checkpoints import remove_unfinished
from docmt.training.devices import make_fabric
from docmt.training.lock import FolderLock
from docmt.training.loggers import make_loggers
from docmt.training.progress import write_history
from docmt.training.settings import (
    FROZEN_SENTENCES,
    RunSettings,
    TrainingFiles,
    TrainingOptions,
    TrainingSettings,
)
from docmt.training.tasks import TaskData, build_tasks
from docmt.training.trainer import Trainer

log = logging.getLogger(__name__)


def train(
    settings: RunSettings,
    files: TrainingFiles,
    *,
    options: TrainingOptions,
    seed: int,
    accelerator: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    micro_batch_tokens: int | None = None,
    model_fingerprint: str | None = None,
) -> None:
    """Train a model and write it with its history. All processes call this, and the first one writes.

    `micro_batch_tokens` is the maximum number of tokens that a device computes at once. None: see `MicroBatchSize`.
    `model_fingerprint` is recorded in the model.
    """
    if seed < 0:
        raise UserError(f"seed {seed}: must not be negative")
    if micro_batch_tokens is not None and micro_batch_tokens < 1:
        raise UserError(f"--micro-batch-tokens {micro_batch_tokens}: must be at least 1, or 0 to choose")
    vocabulary, pipeline = Vocabulary.load(files.vocabulary), TextPipeline.load(files.pipeline)
    data = _load_data(files, vocabulary, pipeline, needs_trees=settings.model.needs_trees)
    tasks = build_tasks(settings.training, data, vocabulary, pipeline, seed=seed, symbols=settings.model.marks)
    torch.manual_seed(seed)
    model = build_transformer(settings.model, len(vocabulary), vocabulary.n_specials)
    start = _load_init(files, model, vocabulary, pipeline)
    pretrained = _initialize(model, settings.training, start, files.init)
    reads_sentences = settings.model.context is not None and any(task.context == "none" for task in tasks)
    if settings.training.freeze != "none" and reads_sentences:
        raise UserError(FROZEN_SENTENCES)
    # Of the weights, not of the file, whose provenance changes with every new docmt.
    checksums = _checksums(data, files.vocabulary) | {"init": weights_digest(start) if start else None}
    folder = files.checkpoints / _fingerprint_of_checkpoints(settings, seed, checksums)
    precision, width = settings.training.precision, settings.model.width
    fabric = make_fabric(precision, accelerator, width=width, devices=devices, nodes=nodes, checkpoints=folder)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    kind, used = f"{fabric.world_size} × {fabric.device.type}", fabric.strategy.precision.precision
    log.info("%.2fM parameters, %s, %s", n_parameters / 1e6, kind, used)
    with FolderLock(folder) if fabric.is_global_zero else contextlib.nullcontext():
        if fabric.is_global_zero:
            remove_unfinished(folder)
        loggers = options.loggers if options.loggers and fabric.is_global_zero else ()
        run = "/".join(files.out.absolute().parts[-4:-1])  # such as `runs/rst_mix/seed1`
        trainer = Trainer(
            model,
            pretrained,
            tasks=tasks,
            settings=settings.training,
            seed=seed,
            folder=folder,
            fabric=fabric,
            micro_batch_tokens=micro_batch_tokens,
            options=options,
            loggers=make_loggers(loggers, files.out.parent / "loggers", run=run),
        )
        model = trainer.run()
    # Processor time of all training processes and their children.
    own_seconds = torch.tensor(sum(os.times()[:4]), dtype=torch.float64, device=fabric.device)
    cpu_seconds = float(cast(torch.Tensor, fabric.all_reduce(own_seconds, reduce_op="sum")))
    if not fabric.is_global_zero:
        return
    state = trainer.state
    facts = {"seed": seed, **checksums, "passes": trainer.passes(), "n_parameters": n_parameters, "precision": used}
    instance_settings = data.train.manifest.get("provenance", {}).get("settings", {})
    recorded = {}
    if model_fingerprint:
        recorded = {"fingerprint": model_fingerprint}
    provenance = describe(settings=settings.model_dump(), **facts, best_step=state.best_step, steps=state.step)
    save_model(files.out, TrainedModel(model, vocabulary, pipeline, instance_settings, provenance | recorded))
    write_history(files.history, state)
    sessions = [{**asdict(part), "seconds": round(part.seconds, 3)} for part in state.sessions]
    job = {"device": fabric.device.type, "n_devices": fabric.world_size, "n_nodes": nodes, "sessions": sessions}
    job["graphs"] = "auto" if trainer.graphs is not None else "off"  # as used: not everywhere possible
    job["micro_batch_tokens"] = trainer.reader.micro_batch_tokens or settings.training.max_batch_tokens
    write_job_facts(files.out, **job, checkpoints=folder.name, cpu_seconds=round(cpu_seconds, 1))
    trainer.checkpoints.prune(state.step, options.keep_checkpoints)  # at last, so that a killed job can resume


def _fingerprint_of_checkpoints(settings: RunSettings, seed: int, checksums: dict[str, Any]) -> str:
    """Return a hash of everything that changes a training, except `max_steps`, because raising it continues one."""
    return fingerprint(
        {
            "model": settings.model.model_dump(),
            "training": settings.training.model_dump(exclude={"max_steps"}),
            "seed": seed,
            **checksums,
        }
    )


def _load_data(files: TrainingFiles, vocabulary: Vocabulary, pipeline: TextPipeline, *, needs_trees: bool) -> TaskData:
    """Load all instances, and check that they match the vocabulary and the model."""
    checksum = sha256_file(files.vocabulary)

    def load(folder: Path) -> InstanceSet:
        if read_manifest(folder).get("vocabulary_sha256") not in (None, checksum):
            raise UserError(f"{files.vocabulary}: damaged, or not the vocabulary of {folder}: build both again")
        return load_instances(folder, n_symbols=len(vocabulary))

    lang, langs = files.monolingual_lang, (pipeline.src_lang, pipeline.tgt_lang)
    if lang is not None and files.monolingual is None:
        raise UserError(f"--monolingual-lang {lang}: add --monolingual FOLDER")
    if lang not in (None, *langs):
        raise UserError(f"--monolingual-lang {lang}: must be {pipeline.src_lang} or {pipeline.tgt_lang}")
    data = TaskData(
        load(files.train),
        load(files.dev),
        load(files.pairs) if files.pairs else None,
        load(files.monolingual) if files.monolingual else None,
        "src" if lang in (None, pipeline.src_lang) else "tgt",
    )
    if data.dev.masked is not None and data.dev.masked.any():
        raise UserError(f"{files.dev}: has masked sentences, but a validation counts all: filter only training data")
    for folder, instance_set in ((files.train, data.train), (files.dev, data.dev)):
        if needs_trees and instance_set.trees is None:
            raise UserError(f"{folder}: has no trees, but the model has RST attention: build the instances with trees")
    return data


def _load_init(
    files: TrainingFiles, model: Transformer, vocabulary: Vocabulary, pipeline: TextPipeline
) -> dict[str, torch.Tensor]:
    """Return the weights of the model file or published model that a training starts from. Empty without one."""
    init = files.init
    if init is None:
        return {}
    if init.is_dir():
        weights = published_weights(init, model.settings, vocabulary, (pipeline.src_lang, pipeline.tgt_lang))
    else:
        content = load_content(init, fingerprint=files.init_fingerprint)
        if content["vocabulary"] != list(vocabulary.symbols):
            raise UserError(f"{init}: its vocabulary differs from the instances: train both on the same text")
        weights = content["weights"]
    if model.settings.target_stream == "free" and "output_bias" in weights:
        # It predicts where sentences begin and the document ends, which a published model never does.
        marks = boundary_tokens(model.settings.marks, vocabulary, pipeline)
        breaks = torch.tensor([marks.tgt_before[0], EOD])
        bias = weights["output_bias"].clone()
        bias[breaks] = bias[breaks].masked_fill(bias[breaks] == NEVER, 0)
        weights = weights | {"output_bias": bias}
    return weights


def _initialize(
    model: Transformer, settings: TrainingSettings, start: dict[str, torch.Tensor], init: Path | None
) -> set[str]:
    """Copy parameters from another model, if one is given. Returns their names."""
    copied: set[str] = set()
    if init is not None:
        copied = copy_weights(model, start)
        if settings.init_new_parameters == "zero":
            zero_init_outputs(model)
        log.info("%d of %d parameters come from %s", len(copied), len(list(model.parameters())), init)
    if settings.freeze == "pretrained":
        freeze(model, copied)
    return copied


def _checksums(data: TaskData, vocabulary: Path) -> dict[str, Any]:
    """Return the SHA-256 of the vocabulary and all instances."""
    checksums: dict[str, Any] = {"train": data.train.manifest["sha256"], "dev": data.dev.manifest["sha256"]}
    if data.pairs is not None:
        checksums["pairs"] = data.pairs.manifest["sha256"]
    if data.monolingual is not None:
        checksums["monolingual"] = [data.monolingual_side, data.monolingual.manifest["sha256"]]
    return checksums | {"vocabulary": sha256_file(vocabulary)}
