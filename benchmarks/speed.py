"""Compare training and decoding speed with a dense-mask computation of the same model, interleaved in one process.

Usage: `python benchmarks/speed.py --out results/benchmarks/speed.json`

For all sizes, precisions and instance lengths, the computations alternate between a training step (forward, backward,
Adam) and beam-5 decoding of some documents. Rows contain medians over repetitions. The script also measures the
machine's matrix-product rate, so that you can compare speeds with it.
"""

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from dense import DenseDecoder
from flops import training_flops
from gpu.dense import dense_loss

from docmt.decoding.beam_search import search_instances
from docmt.decoding.decoding_model import DecodingModel
from docmt.decoding.settings import DecodingSettings
from docmt.instances.packing import PackedSentences
from docmt.models.attention.layout import AttentionLayout
from docmt.models.batch import Batch, pack
from docmt.models.presets import ARCHITECTURES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.training.loss import LossModule

SIZES = {
    "4+4 of 256": {"encoder_layers": 4, "decoder_layers": 4, "width": 256, "heads": 4, "feed_forward_width": 1024},
    "6+6 of 512": {"encoder_layers": 6, "decoder_layers": 6, "width": 512, "heads": 8, "feed_forward_width": 2048},
}
N_SYMBOLS = 8000
SENTENCE_TOKENS = 26
"""Mean tokens per sentence, including `<s>` and `</s>`. The papers' 512-token instances have 10 to 18 sentences."""


def make_document(n_tokens: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Random sentences of different lengths that fill an instance."""
    sentences = []
    left = n_tokens
    while left > 0:
        length = min(int(generator.gamma(6, SENTENCE_TOKENS / 6)) + 4, left)
        length = left if left - length < 4 else length
        words = generator.integers(6, N_SYMBOLS, length - 2)
        sentences.append(np.concatenate(([1], words, [2])))
        left -= length
    return sentences


def make_batch(n_tokens: int, n_instances: int, settings: ModelSettings, seed: int) -> Batch:
    """Instances with the same sentence lengths on both sides."""
    generator = np.random.default_rng(seed)
    documents = [make_document(n_tokens, generator) for _ in range(n_instances)]
    sentences = [sentence for document in documents for sentence in document]
    tokens, lengths = np.concatenate(sentences), np.array([len(sentence) for sentence in sentences])
    sentences = PackedSentences(tokens, lengths, tokens, lengths, np.array([len(d) for d in documents]))
    return pack(sentences, settings=settings)


def median_times(
    functions: Mapping[str, Callable[[], object]], repetitions: int, *, warm_ups: int = 1
) -> dict[str, list[float]]:
    """CPU seconds per call of the functions, over all threads.

    The functions take turns after some warm-up calls. On a busy machine, CPU time is more reliable than wall-clock
    time.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for repetition in range(warm_ups + repetitions):
        for name, function in functions.items():
            started = time.process_time()
            function()
            if repetition >= warm_ups:
                times[name].append(time.process_time() - started)
    return times


def matmul_rate(dtype: torch.dtype) -> float:
    """FLOP per CPU second in a large matrix product."""
    a, b = torch.randn(2048, 2048, dtype=dtype), torch.randn(2048, 2048, dtype=dtype)
    torch.mm(a, b)
    started = time.process_time()
    for _ in range(3):
        torch.mm(a, b)
    return 3 * 2 * 2048**3 / (time.process_time() - started)


def bench_training(
    size: str, dtype: str, n_tokens: int, *, repetitions: int, architecture: str, with_dense: bool = True
) -> dict:
    """Milliseconds per training step for all computations (or only the ragged one), with rates and speed-ups."""
    settings = ModelSettings.load(SIZES[size] | {"dropout": 0.1} | ARCHITECTURES[architecture], where="model")
    torch.manual_seed(0)
    model = build_transformer(settings, N_SYMBOLS)
    n_instances = max(1, 4096 // n_tokens)
    batch = make_batch(n_tokens, n_instances, settings, seed=n_tokens)
    module = LossModule(model, 0.1)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step(loss: Callable[[], torch.Tensor]) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
            value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()

    functions = {"ragged": lambda: step(lambda: module(batch.prepare("padded")))}
    if with_dense:
        functions["dense"] = lambda: step(lambda: dense_loss(model, batch, 0.1))
        functions["published"] = lambda: step(lambda: dense_loss(model, batch, 0.1, with_entropies=True))
    rate = matmul_rate(getattr(torch, dtype))
    times = median_times(functions, repetitions)
    seconds = statistics.median(times["ragged"])
    row = {
        "what": "training",
        "size": size,
        "dtype": dtype,
        "tokens": n_tokens,
        "instances": n_instances,
        "ragged_ms": 1e3 * seconds,
        "tokens_per_second": 2 * n_tokens * n_instances / seconds,
        "share_of_matmul_rate": training_flops(model, batch) / seconds / rate,
        "matmul_gflops": rate / 1e9,
    }
    if with_dense:
        for name in ("dense", "published"):
            ratios = [a / b for a, b in zip(times[name], times["ragged"], strict=True)]
            row |= {f"{name}_ms": 1e3 * statistics.median(times[name]), f"{name}_speed_up": statistics.median(ratios)}
    return row


def bench_decoding(size: str, dtype: str, n_tokens: int, n_documents: int, *, repetitions: int) -> dict:
    """Seconds for beam-5 decoding of a batch of documents with all computations.

    The weights are random, so hypotheses end sentences at the limit, 1.0 × source length in all computations.
    """
    settings = ModelSettings.load(SIZES[size] | {"dropout": 0.0} | ARCHITECTURES["g_transformer"], where="model")
    torch.manual_seed(0)
    model = build_transformer(settings, N_SYMBOLS).eval().to(getattr(torch, dtype))
    documents = [make_document(n_tokens, np.random.default_rng(n_tokens + number)) for number in range(n_documents)]
    sentences = [sentence for document in documents for sentence in document]
    tokens, lengths = np.concatenate(sentences), np.array([len(sentence) for sentence in sentences])
    counts = np.array([len(document) for document in documents])
    decoding = DecodingSettings(max_length_ratio=1.0, max_length_offset=1)
    prepared = DecodingModel(model)
    outputs: dict[str, list[list[list[int]]]] = {}

    def ragged() -> None:
        layout = AttentionLayout.of_source(lengths, counts, settings=settings)
        outputs["ragged"] = [result[0].sentences for result in search_instances(prepared, tokens, layout, decoding)]

    def dense() -> None:
        outputs["dense"] = DenseDecoder(model, 5).run(tokens, lengths, counts, lengths - 2 + 1)

    def published() -> None:
        DenseDecoder(model, 5, with_entropies=True).run(tokens, lengths, counts, lengths - 2 + 1)

    functions = {"dense": dense, "ragged": ragged, "published": published}
    # Minutes of decoding need no warm-up.
    times = median_times(functions, repetitions, warm_ups=int(n_documents == 1))
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {
        f"{name}_speed_up": statistics.median(a / b for a, b in zip(times[name], times["ragged"], strict=True))
        for name in ("dense", "published")
    }
    return {
        "what": "decoding",
        "size": size,
        "dtype": dtype,
        "tokens": n_tokens,
        "documents": n_documents,
        "dense_s": medians["dense"],
        "published_s": medians["published"],
        "ragged_s": medians["ragged"],
        **ratios,
        "tokens_per_second": sum(len(s) + 1 for result in outputs["ragged"] for s in result) / medians["ragged"],
        "same_output": sum(one == other for one, other in zip(outputs["dense"], outputs["ragged"], strict=True)),
    }


def bench_memory(n_tokens: int) -> list[dict]:
    """Peak memory of a process with three training steps on an instance, for dense, ragged, and no steps."""
    rows = []
    for kind in ("dense", "ragged", "none"):
        command = [sys.executable, __file__, "--memory-of", kind, "--tokens", str(n_tokens)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append({"what": "memory", "kind": kind, "tokens": n_tokens, "peak_mib": int(output) / 1024})
    return rows


def _use_memory(kind: str, n_tokens: int) -> None:
    settings = ModelSettings.load(SIZES["4+4 of 256"] | ARCHITECTURES["g_transformer"], where="model")
    model = build_transformer(settings, N_SYMBOLS)
    batch = make_batch(n_tokens, 1, settings, seed=1)
    losses = {"dense": partial(dense_loss, model), "ragged": lambda b, e: LossModule(model, e)(b.prepare("padded"))}
    for _ in range(3 if kind != "none" else 0):
        losses[kind](batch, 0.1).backward()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def parse_options() -> argparse.Namespace:
    """Command-line options."""
    parser = argparse.ArgumentParser(description="Training and decoding speed against the dense-mask computation.")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--tokens", nargs="+", type=int, default=[512, 1024, 2048, 4096])
    parser.add_argument("--decoding-tokens", nargs="+", type=int, default=[512, 1024])
    parser.add_argument("--documents", nargs="+", type=int, default=[1], help="in a batch of decoding")
    parser.add_argument("--what", nargs="+", default=["training", "decoding", "flat", "memory"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--memory-of", choices=("dense", "ragged", "none"), help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Iterator[dict]:
    """Run the requested benchmarks, with a row per benchmark."""
    n = options.repetitions
    for size, dtype, tokens in itertools.product(options.sizes, options.dtypes, options.tokens):
        if "training" in options.what:
            yield bench_training(size, dtype, tokens, repetitions=n, architecture="g_transformer")
        if "decoding" in options.what and tokens in options.decoding_tokens:
            for documents in options.documents:
                yield bench_decoding(size, dtype, tokens, documents, repetitions=max(1, n // 2))
    if "flat" in options.what:
        size, architecture = "4+4 of 256", "g_transformer_only_group"
        for tokens in options.tokens:
            row = bench_training(size, "float32", tokens, repetitions=n, architecture=architecture, with_dense=False)
            yield row | {"what": "group only"}
    if "memory" in options.what:
        yield from bench_memory(4096)


def main() -> None:
    """Print a JSON object per line, and write all objects to a file after every line."""
    options = parse_options()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        _use_memory(options.memory_of, options.tokens[0])
        return
    rows: list[dict] = []
    for row in measure(options):
        rows.append(row)
        print(json.dumps(row), flush=True)
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
