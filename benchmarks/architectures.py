"""Measure updates and decoded words per second for all architectures, in turn, in one process.

Usage: `python benchmarks/architectures.py --threads 1`

The models are tiny and have random weights, so their translations end at the length limit. Nothing is frozen. There are
no trees, so in RST attention, all tokens are related.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from speed import make_batch, make_document, median_times

from docmt.decoding.beam_search import BeamHypothesis
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import search_best
from docmt.models.attention.kernels import kernel_for
from docmt.models.attention.layout import AttentionLayout
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.training.loss import LossModule

N_SYMBOLS = 8000
N_DOCUMENTS, DOCUMENT_TOKENS = 4, 512
KERNEL = kernel_for(torch.device("cpu"), torch.float32, 64)
DEFAULTS = [name for name in ARCHITECTURES if not name.startswith("g_transformer_")]


def training_step(settings: ModelSettings) -> Callable[[], None]:
    """An update of a new model."""
    torch.manual_seed(0)
    module = LossModule(build_transformer(settings, N_SYMBOLS), 0.1).train()
    optimizer = torch.optim.Adam(module.parameters(), fused=True)
    batch = make_batch(DOCUMENT_TOKENS, N_DOCUMENTS, settings, seed=0).prepare(KERNEL)

    def step() -> None:
        module(batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def decoding(settings: ModelSettings, documents: list[list[np.ndarray]]) -> Callable[[], list[BeamHypothesis]]:
    """Decoding of documents with a new model."""
    torch.manual_seed(0)
    model = DecodingModel(build_transformer(settings, N_SYMBOLS).eval())
    sentences = [sentence for document in documents for sentence in document]
    lengths, counts = np.array([len(s) for s in sentences]), np.array([len(d) for d in documents])
    layout = AttentionLayout.of_source(lengths, counts, settings=settings)
    return partial(search_best, model, np.concatenate(sentences), layout, DecodingSettings(beam_size=5))


def main() -> None:
    """Print a row per architecture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", default=DEFAULTS, help="by default, all but ablations")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generator = np.random.default_rng(0)
    documents = [make_document(DOCUMENT_TOKENS, generator) for _ in range(N_DOCUMENTS)]
    settings = {
        name: ModelSettings.load(SIZES["tiny"] | {"dropout": 0.0} | ARCHITECTURES[name], where=name)
        for name in options.architectures
    }
    steps = {name: training_step(values) for name, values in settings.items()}
    searches = {name: decoding(values, documents) for name, values in settings.items()}
    updates = median_times(steps, options.repetitions)
    translations = median_times(searches, max(1, options.repetitions // 2), warm_ups=0)
    print("| architecture | updates per second | words per second, decoding |\n|---|---|---|")
    for name in settings:
        n_words = sum(len(sentence) for hypothesis in searches[name]() for sentence in hypothesis.sentences)
        rates = 1 / statistics.median(updates[name]), n_words / statistics.median(translations[name])
        print(f"| `{name}` | {rates[0]:.2f} | {rates[1]:,.0f} |")


if __name__ == "__main__":
    main()
