"""Measure CPU time of a training update outside of its CUDA graph, and shapes of updates. Needs no GPU.

    python benchmarks/graphs.py --architectures g_transformer rst_mix --max-batch-tokens 4096

Updates go through `Trainer` with `graphs: auto`, but a graph computes nothing. The calling thread's times are measured:
receiving an update from a loader, and then seeding, one copy into the buffer, and starting the graph. Instances are
random, with 17 sentences and about 512 tokens.
"""

import argparse
import io
import pickle
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from unittest import mock

import numpy as np
import torch

from docmt.instances.storage import InstanceSet, InstanceTrees
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems import transformer
from docmt.models.systems.context_transformer import build_transformer
from docmt.ranges import offsets_of
from docmt.text.vocabulary import BOS, EOS, N_SPECIALS
from docmt.training import graphs, trainer
from docmt.training.devices import make_fabric
from docmt.training.progress import Session
from docmt.training.settings import TrainingOptions, TrainingSettings
from docmt.training.tasks import Task
from docmt.training.trainer import Trainer
from docmt.training.updates import UpdateIndex

N_INSTANCES, N_SENTENCES, SHORTEST, LONGEST = 800, 17, 8, 48
N_SYMBOLS = 1000


class NoRecorder:
    """Replaces `graphs.CudaRecorder`."""

    def run(self, function: Callable) -> tuple[None, graphs.Results]:
        return None, (torch.zeros(()), torch.zeros(()))

    def record(self, function: Callable) -> tuple[tuple[None, graphs.Results], Callable[[], None]]:
        return self.run(function), lambda: None


def random_instances() -> InstanceSet:
    """Return instances with one EDU per sentence, whose heads are the previous sentences."""
    generator = np.random.default_rng(0)
    n, sides = N_INSTANCES * N_SENTENCES, {}
    for side in ("src", "tgt"):
        offsets = offsets_of(generator.integers(SHORTEST + 2, LONGEST + 3, n))
        tokens = generator.integers(N_SPECIALS, N_SYMBOLS, offsets[-1]).astype(np.int32)
        tokens[offsets[:-1]], tokens[offsets[1:] - 1] = BOS, EOS
        sides |= {f"{side}_tokens": tokens, f"{side}_offsets": offsets}
    numbers = np.arange(n)
    heads = np.where(numbers % N_SENTENCES == 0, -1, numbers - 1)
    trees = InstanceTrees(
        edu_offsets=sides["src_offsets"], sentence_edus=np.arange(n + 1), edu_heads=heads, sentence_heads=heads
    )
    instances, documents = offsets_of(np.full(N_INSTANCES, N_SENTENCES)), np.arange(N_INSTANCES, dtype=np.int32)
    return InstanceSet(**sides, instances=instances, documents=documents, manifest={}, trees=trees)


def measure(architecture: str, size: str, max_batch_tokens: int) -> None:
    """Print the times and shapes of one pass over the instances."""
    settings = ModelSettings.load(SIZES[size] | ARCHITECTURES[architecture] | {"marks": None}, where="model")
    recipe = TrainingSettings.load({"max_batch_tokens": max_batch_tokens, "max_steps": 1000}, where="training")
    instances = random_instances()
    with tempfile.TemporaryDirectory() as folder:
        training = Trainer(
            build_transformer(settings, N_SYMBOLS),
            set(),
            tasks=[Task("documents", instances, instances)],
            settings=recipe,
            seed=1,
            folder=Path(folder),
            fabric=make_fabric("float32", "cpu", width=settings.width),
            options=TrainingOptions(graphs="auto"),
        )
    training.state.sessions.append(Session(0))
    reader, keys, times = training.reader, Counter(), []
    n_tokens = n_filled = 0
    for position in range(reader.n_updates(0, 0) - 1):  # the last update is smaller
        update = reader.read(UpdateIndex(position + 1, 0, 0, position, 0))
        sent = io.BytesIO()
        ForkingPickler(sent, pickle.HIGHEST_PROTOCOL).dump(update)
        started = time.thread_time()
        received = pickle.loads(sent.getvalue())
        middle = time.thread_time()
        training._step(received)
        ended = time.thread_time()
        (batch,) = (part.batch for part in update.micro_batches)
        keys[batch.key] += 1
        _, filled = batch.views(batch.buffer, settings)
        n_tokens, n_filled = n_tokens + update.n_tokens, n_filled + len(filled.src_tokens_S) + len(filled.tgt_inputs_N)
        if keys[batch.key] > 2:
            times.append((middle - started, ended - middle))
    receive, step = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    quickest = 1e3 * min(map(sum, times))  # less disturbed by other processes
    counts = sorted(keys.values(), reverse=True)
    print(
        f"{architecture}, {max_batch_tokens} tokens: {receive:.2f} ms to receive and {step:.2f} ms to start an update "
        f"({quickest:.2f} ms for the quickest), "
        f"{len(counts)} shapes in {sum(counts)} updates ({counts[:6]}), {100 * (n_filled / n_tokens - 1):.1f} % filler"
    )


def main() -> None:
    """Read the command line and measure every architecture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", nargs="+", choices=ARCHITECTURES, default=["g_transformer", "rst_mix"])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--max-batch-tokens", type=int, default=4096)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with (
        mock.patch.object(graphs, "CudaRecorder", NoRecorder),
        mock.patch.object(transformer, "kernel_for", return_value="varlen"),
        mock.patch.object(trainer, "compiled_loss", return_value=None),
    ):
        for architecture in arguments.architectures:
            measure(architecture, arguments.size, arguments.max_batch_tokens)


if __name__ == "__main__":
    main()
