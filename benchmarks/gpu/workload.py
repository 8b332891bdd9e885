"""Random documents with trees, as study files, and models for them, without corpora or network."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
import torch

from docmt.decoding.translation import Source
from docmt.gpu_locks import VISIBLE
from docmt.instances.storage import InstanceSet, InstanceTrees, load_instances, save_instances
from docmt.models.attention.kernels import Kernel
from docmt.models.batch import Batch, DeviceBatch, collate, instance_trees
from docmt.models.model_file import TrainedModel, load_model
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.models.systems.transformer import Transformer
from docmt.ranges import offsets_of
from docmt.text.pipeline import TextPipeline
from docmt.text.settings import TextSettings
from docmt.text.truecaser import Truecaser
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS, SPECIALS, Vocabulary
from docmt.training.launching import PROGRAM
from docmt.training.run import train
from docmt.training.settings import RunSettings, TrainingFiles, TrainingOptions, TrainingSettings

# Head width 16, the minimum for all kernels. No dropout, since its random numbers depend on the device.
TINY = {"encoder_layers": 2, "decoder_layers": 2, "width": 32, "heads": 2, "feed_forward_width": 48, "dropout": 0.0}
Recipe = dict[str, Any]
RECIPE: Recipe = {
    "learning_rate": 3e-3,
    "warmup_steps": 10,
    "max_batch_tokens": 100,
    "max_steps": 6,
    "patience": None,
    "validate_every_steps": 4,
    "log_every_steps": 2,
    "precision": "float32",
}
QUIET: Recipe = {"precision": "auto", "compile": "off", "validate_every_steps": 100}
"""Changes to `RECIPE`: half precision if the device has it, and updates without interruptions."""
SECONDS = 240  # time limit for a training on several devices
TIMES = {"seconds", "tokens_per_second"}
History = dict[str, list[float]]
"""Columns by name, without empty cells."""


def model_settings(preset: str, size: str | None = None, **changes: Any) -> ModelSettings:
    """Return settings for an architecture in a preset size, or tiny with one upper layer per stack."""
    values = dict(ARCHITECTURES[preset])
    if size is None:
        for name in ("encoder_attention", "decoder_attention", "cross_attention"):
            values[name] = values[name] | {"upper_layers": 1}
    # The workload's vocabulary does not contain language tags, the marks for size `mbart`.
    return ModelSettings.load((SIZES[size] if size else TINY) | values | {"marks": None} | changes, where="model")


def random_model(settings: ModelSettings, n_symbols: int, *, seed: int = 0) -> Transformer:
    """Return a model in evaluation mode with far from uniform attention and without zero matrices."""
    torch.manual_seed(seed)
    model = build_transformer(settings, n_symbols).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                if not parameter.any():
                    torch.nn.init.xavier_uniform_(parameter)
                parameter.mul_(2.0)
    return model


def random_instances(counts: list[int], *, shortest: int, longest: int, n_symbols: int) -> InstanceSet:
    """Return an instance with random words per number of sentences. Sentences with at least two words have two EDUs."""
    generator = np.random.default_rng(0)
    n_sentences, sides = sum(counts), {}
    for side in ("src", "tgt"):
        offsets = offsets_of(generator.integers(shortest + 2, longest + 3, n_sentences))
        tokens = generator.integers(N_SPECIALS, n_symbols, offsets[-1]).astype(np.int32)
        tokens[offsets[:-1]], tokens[offsets[1:] - 1] = BOS, EOS
        sides |= {f"{side}_tokens": tokens, f"{side}_offsets": offsets}
    lengths, starts = np.diff(sides["src_offsets"]), sides["src_offsets"][:-1]
    middles = (starts + lengths // 2)[lengths >= 4]
    edu_counts = 1 + (lengths >= 4)
    instances = offsets_of(counts)
    trees = InstanceTrees(
        edu_offsets=np.sort(np.concatenate((sides["src_offsets"], middles))),
        sentence_edus=offsets_of(edu_counts),
        edu_heads=_heads(np.diff(offsets_of(edu_counts)[instances])),
        sentence_heads=_heads(np.array(counts)),
    )
    manifest = {"counts": {"documents_read": len(counts)}, "document_ids": [f"d{n}" for n in range(len(counts))]}
    documents = np.arange(len(counts), dtype=np.int32)
    return InstanceSet(**sides, instances=instances, documents=documents, manifest=manifest, trees=trees)


def _heads(counts: np.ndarray) -> np.ndarray:
    """Return the heads of all units. An instance's units form a binary tree."""
    first = np.repeat(np.cumsum(counts) - counts, counts)
    position = np.arange(counts.sum()) - first
    return np.where(position > 0, first + (position - 1) // 2, -1)


def read_history(path: Path) -> History:
    """Read a training's history file."""
    history = pd.read_csv(path)
    return {str(name): history[name].dropna().tolist() for name in history}


def kernel_of(model: Transformer, dtype: torch.dtype) -> Kernel:
    """Return the attention kernel of a training whose matrix products have a dtype."""
    with torch.autocast(model.embedding.weight.device.type, dtype, enabled=dtype != torch.float32):
        return model.kernel()


class Workload:
    """Folder with random instances for training and validation, a vocabulary and a text pipeline.

    The first words in the vocabulary are letters, because the pipeline does not change these.
    """

    def __init__(self, folder: Path, counts: list[int], *, shortest: int, longest: int, n_symbols: int) -> None:
        self.folder = folder
        truecasers = {lang: Truecaser(None) for lang in ("en", "de")}
        settings = TextSettings(truecase=False)
        pipeline = TextPipeline(settings, languages=("en", "de"), truecasers=truecasers, codes="#version: 0.2\n")
        pipeline.save(folder / "pipeline.json")
        words = [*ascii_lowercase, *(f"w{n}" for n in range(n_symbols))][: n_symbols - N_SPECIALS]
        Vocabulary.from_symbols([*SPECIALS, *words]).save(folder / "vocabulary.txt")
        built = random_instances(counts, shortest=shortest, longest=longest, n_symbols=n_symbols)
        save_instances(folder / "instances", built)

    @property
    def instances(self) -> InstanceSet:
        return load_instances(self.folder / "instances")

    def files(self, folder: Path) -> TrainingFiles:
        """Return a training's input files, and its output files in a folder."""
        instances = self.folder / "instances"
        inputs = {"vocabulary": self.folder / "vocabulary.txt", "pipeline": self.folder / "pipeline.json"}
        outputs = {"checkpoints": "checkpoints", "history": "history.csv", "out": "model.pt"}
        files: dict[str, Any] = inputs | {key: folder / name for key, name in outputs.items()}
        return TrainingFiles(train=instances, dev=instances, **files)

    def train(
        self,
        folder: Path,
        model: ModelSettings,
        device: torch.device,
        *,
        micro_batch_tokens: int | None = None,
        **recipe: Any,
    ) -> tuple[TrainedModel, History]:
        """Train in this process. Returns the model and the history without times."""
        files = self.files(folder)
        settings = RunSettings(model=model, training=TrainingSettings.load(RECIPE | recipe, where="training"))
        accelerator = "cpu" if device.type == "cpu" else "auto"
        run = {"accelerator": accelerator, "micro_batch_tokens": micro_batch_tokens}
        train(settings, files, options=TrainingOptions(), seed=1, **run)
        history = {name: column for name, column in read_history(files.history).items() if name not in TIMES}
        return load_model(files.out), history

    def train_on(self, names: Sequence[str], model: ModelSettings, *, is_cuda: bool, **recipe: Any) -> History:
        """Train with the command, one process per device. GPUs are named as in `CUDA_VISIBLE_DEVICES`."""
        folder = self.folder / f"on-{len(names)}"
        settings = {"model": model.model_dump(), "training": RECIPE | recipe}
        options = {name: file for name, file in vars(self.files(folder)).items() if file is not None}
        options |= {"settings": json.dumps(settings), "devices": len(names), "accelerator": "gpu" if is_cuda else "cpu"}
        command = [*PROGRAM, "train", *(str(part) for name, value in options.items() for part in (f"--{name}", value))]
        environment = os.environ | ({VISIBLE: ",".join(names)} if is_cuda else {})
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=SECONDS,
        )
        if done.returncode:
            message = f"docmt train --devices {len(names)} ended with {done.returncode}: {done.stderr[-500:]}"
            raise RuntimeError(message)
        return read_history(folder / "history.csv")

    def trained(self, settings: ModelSettings) -> TrainedModel:
        """Return a random model with vocabulary and pipeline, as loaded from a model file."""
        vocabulary = Vocabulary.load(self.folder / "vocabulary.txt")
        pipeline = TextPipeline.load(self.folder / "pipeline.json")
        return TrainedModel(random_model(settings, len(vocabulary)), vocabulary, pipeline, {"max_tokens": 512}, {})

    def host_batch(self, settings: ModelSettings, *, n: int | None = None) -> Batch:
        """Return the first n instances as a batch."""
        return collate(self.instances, range(n or len(self.instances)), settings)

    def batch(self, model: Transformer, dtype: torch.dtype, *, n: int | None = None) -> DeviceBatch:
        """Return the first n instances as a batch for matrix products in a dtype, on the model's device."""
        device = model.embedding.weight.device
        batch = self.host_batch(model.settings, n=n).prepare(kernel_of(model, dtype))
        return batch if device.type == "cpu" else batch.pin_memory().to(device)

    def sources(self, settings: ModelSettings) -> list[Source]:
        """Return the instances' source sides."""
        instances = self.instances
        return [
            Source(instances.sentences(k, "src"), instance_trees(instances, k) if settings.needs_trees else None)
            for k in range(len(instances))
        ]
