"""Measure CPU time for preparing a batch on one core, for all tasks and both attention kernels.

Usage: `python benchmarks/preparation.py`, or `python benchmarks/preparation.py --filter talks/train en de`

Instances are random, with 27 tokens per sentence on average and 20 sentences per document. As in training, they are
read from memory maps. Times are medians over batches.

With `--filter`, the script measures the speed of the default rules of `corpora.filters` on a text instead, in one and
in two processes. Language identification is off. CPU time includes all processes and their start.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import get_args

import numpy as np

from docmt.corpora.filtering import DocumentFilter
from docmt.corpora.settings import FilterSettings
from docmt.instances.packing import as_sentences
from docmt.instances.restoration import Noise, RestorationSymbols
from docmt.instances.settings import RestorationSettings
from docmt.instances.storage import InstanceSet, load_instances, save_instances
from docmt.models.attention.kernels import Kernel
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.ranges import offsets_of
from docmt.text.vocabulary import BOS, EOS
from docmt.training.settings import TrainingSettings
from docmt.training.tasks import Task
from docmt.training.updates import UpdateIndex, UpdateReader

N_SYMBOLS = 8000
FIRST_WORD = 20
SENTENCES_PER_DOCUMENT = 20


def random_instances(folder: Path, n_documents: int) -> InstanceSet:
    """Write random documents and open them."""
    generator = np.random.default_rng(0)
    n = n_documents * SENTENCES_PER_DOCUMENT

    def side() -> tuple[np.ndarray, np.ndarray]:
        lengths = 2 + np.clip(generator.lognormal(3.2, 0.6, n), 1, 200).astype(np.int64)
        offsets = offsets_of(lengths)
        tokens = generator.integers(FIRST_WORD, N_SYMBOLS, offsets[-1]).astype(np.int32)
        tokens[offsets[:-1]], tokens[offsets[1:] - 1] = BOS, EOS
        return tokens, offsets

    instances = np.arange(0, n + 1, SENTENCES_PER_DOCUMENT)
    documents = np.arange(n_documents, dtype=np.int32)
    save_instances(folder, InstanceSet(*side(), *side(), instances, documents, {"counts": {}, "document_ids": []}))
    return load_instances(folder)


def measure(task: Task, architecture: str, max_tokens: int, kernel: Kernel, n_batches: int) -> float:
    """CPU milliseconds per batch."""
    model = ModelSettings.load(SIZES["small"] | ARCHITECTURES[architecture], where="benchmark")
    settings = TrainingSettings(max_batch_tokens=max_tokens, word_dropout=0.1)
    reader = UpdateReader([task], model, settings, seed=1, kernel=kernel)
    times = []
    for position in range(min(n_batches, reader.n_updates(0, 0))):
        started = time.thread_time()
        reader.read(UpdateIndex(step=1, task=0, epoch=0, position=position, first_epoch=0))
        times.append(time.thread_time() - started)
    return 1000 * statistics.median(times)


def measure_filter(prefix: Path, languages: list[str], jobs: int) -> tuple[float, float]:
    """Pairs per second, and CPU seconds per 100,000 pairs."""
    documents = DocumentFilter(FilterSettings(), languages, jobs=jobs)
    started, cpu_started = time.perf_counter(), sum(os.times()[:4])
    for _ in documents.read(prefix, str(prefix)):
        pass
    n_pairs = documents.counts["sentences_read"]
    return n_pairs / (time.perf_counter() - started), 1e5 * (sum(os.times()[:4]) - cpu_started) / n_pairs


def main() -> None:
    """Parse the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", nargs=3, metavar=("PREFIX", "SOURCE", "TARGET"))
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--batches", type=int, default=60)
    options = parser.parse_args()
    if options.filter:
        prefix, *languages = options.filter
        for jobs in (1, 2):
            rate, seconds = measure_filter(Path(prefix), languages, jobs)
            print(f"filter, {jobs} processes: {rate:8,.0f} pairs/s, {seconds:5.2f} CPU seconds per 100,000 pairs")
        return
    with tempfile.TemporaryDirectory() as folder:
        documents = random_instances(Path(folder) / "instances", options.documents)
        sentences = as_sentences(documents)
        noise = Noise(RestorationSettings(), RestorationSymbols(5, 6, FIRST_WORD, N_SYMBOLS), seed=1)
        cases = (
            (Task("documents", documents, documents), "g_transformer", 4096),
            (Task("sentences", sentences, sentences, context="none"), "sentence_transformer", 4096),
            (Task("pairs", sentences, sentences, context="none"), "global_context", 8192),
            (Task("restoration", documents, documents, noise=noise), "global_context", 8192),
        )
        for kernel in get_args(Kernel):
            for task, architecture, max_tokens in cases:
                milliseconds = measure(task, architecture, max_tokens, kernel, options.batches)
                print(f"{kernel:8} {task.name:12} {architecture:22} {max_tokens:6} tokens {milliseconds:6.2f} ms")


if __name__ == "__main__":
    main()
