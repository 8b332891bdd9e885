"""Measure time and memory for importing a model with the size of Opus-MT (random weights) and translating with it.

Usage: `python benchmarks/pretrained.py --folder /tmp/opus-size`

If necessary, the script writes a Marian model with six layers, width 512 and 58,101 symbols, in the format of
transformers. It prints one JSON object. SentencePiece is trained on a few generated sentences. Other symbols are
fillers.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import torch

from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.models.model_file import load_model, save_model
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.models.published.families import SIDES, parameter_names
from docmt.models.published.importing import import_model
from docmt.models.settings import ModelSettings
from docmt.models.systems.context_transformer import build_transformer
from docmt.text.subwords import EVERY, learn_sentencepiece, sentencepiece_models

N_SYMBOLS = 58_101
LINES = [f"the dog number {number} sees house {number * 7 % 31} and wants a child" for number in range(200)]


def write_model(folder: Path) -> None:
    """A model folder in the format of the hub, with random weights."""
    folder.mkdir(parents=True)
    pieces = sentencepiece_models(learn_sentencepiece(LINES, size=100), where="benchmark")
    assert pieces is not None
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(pieces[EVERY].model)
    symbols = ["</s>", "<unk>", *pieces[EVERY].symbols()[3:]]
    symbols += [f"▁filler{number}" for number in range(len(symbols), N_SYMBOLS - 1)]
    ids = {symbol: number for number, symbol in enumerate([*symbols, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "de"}', encoding="utf-8")
    settings = ModelSettings.load(SIZES["opus_mt"] | ARCHITECTURES["sentence_transformer"], where="benchmark")
    values: dict[str, Any] = {"model_type": "marian", "activation_function": settings.form.activation}
    values |= {"d_model": settings.width, "max_position_embeddings": 512, "vocab_size": N_SYMBOLS}
    values |= {"pad_token_id": N_SYMBOLS - 1, "eos_token_id": 0, "decoder_start_token_id": N_SYMBOLS - 1}
    for side in SIDES:
        values |= {f"{side}_layers": getattr(settings, f"{side}_layers"), f"{side}_attention_heads": settings.heads}
        values[f"{side}_ffn_dim"] = settings.feed_forward_width
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")
    ours = build_transformer(settings, N_SYMBOLS).state_dict()
    weights = {"model.shared.weight": ours["embedding.weight"], "final_logits_bias": torch.zeros(1, N_SYMBOLS)}
    for name, theirs in parameter_names(settings):
        weights |= {each: part.clone() for each, part in zip(theirs, ours[name].chunk(len(theirs)), strict=True)}
    torch.save(weights, folder / "pytorch_model.bin")


def measure(folder: Path) -> dict[str, Any]:
    """Seconds per step, and peak memory after the import and at the end."""
    times, facts = [time.perf_counter()], {}
    trained = import_model(folder, languages=("en", "de"))
    times.append(time.perf_counter())
    facts["import_peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    save_model(folder / "model.pt", trained)
    times.append(time.perf_counter())
    trained = load_model(folder / "model.pt")
    times.append(time.perf_counter())
    limits = DecodingSettings(beam_size=4, max_length_ratio=1e-9, max_length_offset=25)
    Translator(trained, limits).translate_documents([LINES[:20]])
    times.append(time.perf_counter())
    names = ("import", "save", "load", "translate_20_sentences_of_25_words")
    seconds = {name: round(end - start, 2) for name, start, end in zip(names, times, times[1:], strict=False)}
    size = (folder / "model.pt").stat().st_size
    parameters = sum(parameter.numel() for parameter in trained.model.parameters())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"parameters": parameters, "seconds": seconds, **facts, "peak_mb": peak, "file_mb": size >> 20}


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description="Import of a model of the size of Opus-MT.")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.folder.exists():
        print(json.dumps(measure(options.folder)))
    else:
        write_model(options.folder)
        print(f"{options.folder} written; run the same command again to measure it without what writing needed")


if __name__ == "__main__":
    main()
