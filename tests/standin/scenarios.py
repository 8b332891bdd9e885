"""Operations on the device, with counts: micro-batches, training updates, search steps."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import torch
from core_fixtures import (
    N_SYMBOLS,
    Study,
    document_trees,
    make_batch,
    make_model,
    model_settings,
    random_documents,
    run_training,
)
from torch.optim.optimizer import register_optimizer_step_post_hook

import standin.kernels
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Source, Translator
from docmt.instances.storage import load_instances
from docmt.models.attention.kernels import kernel_for
from docmt.models.batch import DeviceBatch, instance_trees
from docmt.models.model_file import TrainedModel
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.training import compiling
from docmt.training.loss import LossModule
from standin.counting import Counts, counting

BASE = {"encoder_layers": 6, "decoder_layers": 6, "upper_layers": 2}
"""Layers for the base size. The number of launches depends on them, and not on the width."""
HALF = {"width": 16, "heads": 2}  # heads of 8, the narrowest that flash attention takes
QUIET = {"precision": "auto", "log_every_steps": 4, "validate_every_steps": 100}
"""A half-precision training without other work between updates."""
KERNELS = standin.kernels.LIBRARY
compiling.find_spec = lambda _: None  # Triton, where tests have installed it, makes no code for this device


def make_inputs(settings: ModelSettings, *, device: str, dtype: torch.dtype) -> DeviceBatch:
    """A batch of random documents as a training prepares it, with trees if the model reads them."""
    documents = random_documents([3, 1, 5], longest=9)
    trees = document_trees(documents) if settings.needs_trees else None
    batch = make_batch(settings, documents, trees).prepare(
        kernel_for(torch.device(device), dtype, settings.width // settings.heads)
    )
    return batch.pin_memory().to(device)


def micro_batch(architecture: str, **size: int) -> Counts:
    """Forward and backward pass of a batch in mixed precision, the first in an update."""
    settings = model_settings(architecture, **(BASE | HALF | {"dropout": 0.1} | size))
    module = LossModule(build_transformer(settings, N_SYMBOLS), 0.1).to("cuda").train()

    def run() -> None:
        with torch.autocast("cuda", torch.bfloat16):
            loss = module(make_inputs(settings, device="cuda", dtype=torch.bfloat16))
        loss.backward()

    run()  # tables and the like are made once
    module.zero_grad()
    with counting() as counts:
        run()
    return counts


def updates(study: Study, folder: Path, architecture: str, **options) -> list[Counts]:
    """Train with the real trainer and the options of `core_fixtures.run_training`. Returns counts between updates."""
    differences: list[Counts] = []
    before = [Counts()]
    with counting() as counts:

        def note(*_: object) -> None:
            differences.append(counts - before[0])
            before[0] = counts.copy()

        hook = register_optimizer_step_post_hook(note)
        try:
            options |= {"accelerator": "gpu", "checkpoint_every_steps": None}
            run_training(study, folder, architecture=architecture, **options)
        finally:
            hook.remove()
    return differences[1:]


@dataclass
class Decoding:
    """Counts and hypothesis scores of a search."""

    counts: Counts
    n_steps: int
    n_searches: int
    scores: list[float]


def decode(trained: TrainedModel, study: Study, settings: DecodingSettings, *, device: str) -> Decoding:
    """Translate the instances of the tiny corpus."""
    needs_trees = trained.model.settings.needs_trees
    instances = load_instances(study.instances("trees" if needs_trees else "documents"))
    sources = [
        Source(instances.sentences(n, "src"), instance_trees(instances, n) if needs_trees else None)
        for n in range(len(instances))
    ]
    translator = Translator(trained, settings, device=device)
    called: Counter[str] = Counter()

    def count(name: str):
        method = getattr(IncrementalDecoder, name)

        def counted(self, *arguments, **options):
            called[name] += 1
            return method(self, *arguments, **options)

        return mock.patch.object(IncrementalDecoder, name, counted)

    with count("step"), count("__init__"), counting() as counts:
        hypotheses = dict(translator.translate_sources(sources))
    scores = [hypotheses[n].score for n in range(len(sources))]
    return Decoding(counts, called["step"], called["__init__"], scores)


def random_trained(study: Study, architecture: str, **size: int) -> TrainedModel:
    """Content of a model file with random weights."""
    vocabulary = study.vocabulary
    model = make_model(architecture, n_symbols=len(vocabulary), **size)
    return TrainedModel(model, vocabulary, study.pipeline, {"max_tokens": 512}, {})
