"""Compare decoding with a sentence model on a CPU in docmt and in CTranslate2, interleaved in one process.

Usage: `python benchmarks/against_ctranslate2.py --size small --sentences 150`

Both programs use the same random weights. They write exactly `--words` words per sentence with a beam of 5, so that
they need the same number of steps. CPU seconds are measured, because other work on the machine hardly changes them.
CTranslate2 uses its best batch size. The script needs the package `ctranslate2`.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from docmt.decoding.beam_search import search_sentences
from docmt.decoding.decoding_model import prepare_search
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import run_in_batches
from docmt.models.attention.layout import AttentionLayout
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.models.systems.transformer import Transformer
from docmt.text.vocabulary import EOS, N_SPECIALS, SPECIALS

SENTENCE_TOKENS = 26
"""Mean tokens per sentence, including `<s>` and `</s>`."""
MAX_POSITIONS = 1024
"""Number of positions in the exported model."""
PRECISIONS = ("float32", "bfloat16", "int8")
THEIR_PRECISIONS = {"float32": "float32", "int8": "int8_float32"}


def export(model: Transformer, folder: Path, n_symbols: int) -> list[str]:
    """Write a sentence Transformer as a CTranslate2 model with float32 weights. Returns its vocabulary."""
    from ctranslate2 import specs  # pyright: ignore[reportMissingImports]

    vocabulary = [*SPECIALS, *(f"w{number}" for number in range(N_SPECIALS, n_symbols))]
    settings, table = model.settings, model.embedding.weight.detach().numpy()
    layers = settings.encoder_layers, settings.decoder_layers
    spec: Any = specs.TransformerSpec.from_config(layers, settings.heads, pre_norm=False)
    sides = ((spec.encoder, spec.encoder.embeddings[0], model.src_inputs),)
    sides += ((spec.decoder, spec.decoder.embeddings, model.tgt_inputs),)
    for theirs, embeddings, inputs in sides:
        embeddings.weight = table
        vectors = inputs.table(MAX_POSITIONS, torch.device("cpu"))[settings.form.position_offset :]
        theirs.position_encodings.encodings = vectors.detach().numpy()
    spec.decoder.start_from_zero_embedding = False
    spec.decoder.projection.weight = table
    for theirs, ours in zip(spec.encoder.layer, model.encoder_layers, strict=True):
        fill_attention(theirs.self_attention, ours.self_attention, splits=[3, 1])
        fill_layer(theirs, ours)
    for theirs, ours in zip(spec.decoder.layer, model.decoder_layers, strict=True):
        fill_attention(theirs.self_attention, ours.self_attention, splits=[3, 1])
        fill_attention(theirs.attention, ours.cross_attention, splits=[1, 2, 1])
        fill_norm(theirs.attention.layer_norm, ours.cross_sublayer.norm)
        fill_layer(theirs, ours)
    for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
        register(vocabulary)
    spec.config.bos_token = spec.config.decoder_start_token = "<s>"
    spec.config.unk_token, spec.config.eos_token = "<unk>", vocabulary[EOS]
    spec.config.add_source_bos = spec.config.add_source_eos = False  # sentences here have their marks
    spec.config.layer_norm_epsilon = 1e-5
    spec.validate()
    spec.optimize()
    spec.save(str(folder))
    return vocabulary


def fill_layer(theirs: Any, ours: Any) -> None:
    """Copy the layer norm and the feed-forward layer."""
    fill_norm(theirs.self_attention.layer_norm, ours.self_sublayer.norm)
    fill_norm(theirs.ffn.layer_norm, ours.feed_forward_sublayer.norm)
    inner = ours.feed_forward
    for linear, source in ((theirs.ffn.linear_0, inner.inner), (theirs.ffn.linear_1, inner.outer)):
        linear.weight, linear.bias = source.weight.detach().numpy(), source.bias.detach().numpy()


def fill_norm(theirs: Any, ours: Any) -> None:
    """Copy a layer norm."""
    theirs.gamma, theirs.beta = ours.weight.detach().numpy(), ours.bias.detach().numpy()


def fill_attention(theirs: Any, ours: Any, splits: list[int]) -> None:
    """Linear maps of an attention. A map can combine queries, keys and values."""
    weight = torch.cat((ours.in_weight, ours.out.weight)).detach()
    bias = torch.cat((ours.in_bias, ours.out.bias)).detach()
    rows = [split * ours.out.out_features for split in splits]
    for linear, part, shift in zip(theirs.linear, weight.split(rows), bias.split(rows), strict=True):
        linear.weight, linear.bias = part.numpy().copy(), shift.numpy().copy()


def make_sentences(count: int, n_symbols: int) -> list[np.ndarray]:
    """Random sentences of different lengths, with marks."""
    generator = np.random.default_rng(0)
    lengths = generator.gamma(6, SENTENCE_TOKENS / 6, count).astype(int) + 4
    return [np.concatenate(([1], generator.integers(N_SPECIALS, n_symbols, n - 2), [2])) for n in lengths]


def our_translation(model: Transformer, sentences: list[np.ndarray], settings: DecodingSettings) -> Callable:
    """A call that translates sentences in batches of similar lengths, as `Translator` does. It returns the words."""
    prepared = prepare_search(model, settings, "cpu")
    order = sorted(range(len(sentences)), key=lambda number: -len(sentences[number]))

    def search(numbers: Sequence[int]) -> list[list[int]]:
        lengths = np.array([len(sentences[number]) for number in numbers])
        layout = AttentionLayout.of_source(lengths, np.ones_like(lengths), settings=model.settings)
        tokens = np.concatenate([sentences[number] for number in numbers])
        return [hypothesis.sentences[0] for hypothesis in search_sentences(prepared, tokens, layout, settings)]

    def translate() -> list[list[int]]:
        batches = run_in_batches(order, search, settings.max_batch_tokens, cost=lambda number: len(sentences[number]))
        words = dict(pair for batch in batches for pair in batch)
        return [words[number] for number in range(len(sentences))]

    return translate


def their_translation(folder: Path, vocabulary: list[str], sentences: list[np.ndarray], **options: Any) -> Callable:
    """The same as `our_translation`, with CTranslate2."""
    import ctranslate2  # pyright: ignore[reportMissingImports]

    translator = ctranslate2.Translator(
        str(folder),
        compute_type=options["precision"],
        inter_threads=1,
        intra_threads=options["threads"],
    )
    number_of = {symbol: number for number, symbol in enumerate(vocabulary)}
    tokens = [[vocabulary[number] for number in sentence] for sentence in sentences]

    def translate() -> list[list[int]]:
        results = translator.translate_batch(
            tokens,
            beam_size=5,
            length_penalty=1,
            max_batch_size=options["batch"],
            max_decoding_length=options["words"],
            min_decoding_length=options["words"],
            suppress_sequences=[[symbol] for symbol in SPECIALS if symbol != "</s>"],
        )
        return [[number_of[symbol] for symbol in result.hypotheses[0]] for result in results]

    return translate


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row per program and precision, with medians over repetitions."""
    architecture = SIZES[options.size] | ARCHITECTURES["sentence_transformer"] | {"dropout": 0.0}
    torch.manual_seed(0)
    model = build_transformer(ModelSettings.load(architecture, where="model"), options.symbols).eval()
    sentences = make_sentences(options.sentences, options.symbols)
    # The ratio is 0 but for rounding: only the offset limits.
    limits = DecodingSettings(
        beam_size=5, max_length_ratio=1e-9, max_length_offset=options.words, max_batch_tokens=options.batch_tokens
    )
    calls: dict[tuple[str, str], Callable] = {}
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = export(model, Path(folder), options.symbols)
        for precision in options.precisions:
            settings = limits.model_copy(update={"precision": precision})
            calls["docmt", precision] = our_translation(model, sentences, settings)
            if precision in THEIR_PRECISIONS:
                more = {"threads": options.threads, "batch": options.batch, "words": options.words}
                calls["CTranslate2", precision] = their_translation(
                    Path(folder), vocabulary, sentences, precision=THEIR_PRECISIONS[precision], **more
                )
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    outputs = {}
    for repetition in range(options.repetitions + 1):
        for key, call in calls.items():
            started = clock()
            outputs[key] = call()
            if repetition:
                times[key].append(clock() - started)
    reference = outputs["docmt", options.precisions[0]]
    return [
        {
            "program": program,
            "precision": precision,
            "seconds": statistics.median(times[program, precision]),
            "tokens_per_second": sum(len(words) + 1 for words in output) / statistics.median(times[program, precision]),
            "same_output": sum(ours == theirs for ours, theirs in zip(reference, output, strict=True)),
            "sentences": len(output),
        }
        for (program, precision), output in outputs.items()
    ]


def main() -> None:
    """Print one JSON object per line."""
    parser = argparse.ArgumentParser(description="Decoding of a sentence model with docmt and CTranslate2 on a CPU.")
    parser.add_argument("--size", choices=("small", "base"), default="small")
    parser.add_argument("--sentences", type=int, default=150)
    parser.add_argument("--symbols", type=int, default=8000, help="size of the vocabulary")
    parser.add_argument("--words", type=int, default=25, help="words in each translation")
    parser.add_argument("--batch", type=int, default=32, help="sentences in a batch of CTranslate2")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="source tokens in a batch of docmt")
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=PRECISIONS)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    try:
        import ctranslate2  # pyright: ignore[reportMissingImports]
    except ImportError:
        print("skipped: the package ctranslate2 is not installed (pip install ctranslate2)")
        return
    os.environ["CT2_VERBOSE"] = "0"
    ctranslate2.set_random_seed(0)
    torch.set_num_threads(options.threads)
    for row in measure(options):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
