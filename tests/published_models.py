"""Folders of published models in the real format: tiny, random, with SentencePiece trained on generated text."""

import json

import numpy as np
import torch
from core_fixtures import DOCUMENTS
from core_fixtures import translate as translate_words

from docmt.models.published.importing import import_model
from docmt.text.subwords import EVERY, learn_sentencepiece, sentencepiece_models

LINES = [line for document in DOCUMENTS for line in document]
LINES += [translate_words(line) for line in LINES]
WIDTH, HEADS, INNER, LAYERS = 16, 2, 24, 2
LANGUAGES = ("en_XX", "de_DE", "fr_XX")
POSITIONS = 40

CONFIGS = {
    "marian": {"activation_function": "swish", "static_position_embeddings": True},
    "mbart": {"activation_function": "gelu", "decoder_start_token_id": None},
    "mbart50": {"model_type": "mbart", "activation_function": "gelu", "decoder_start_token_id": 2},
    "m2m_100": {"activation_function": "relu", "decoder_start_token_id": 2},
}
COMMON = {
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "dropout": 0.0,
    "scale_embedding": True,
    "max_position_embeddings": POSITIONS,
    "tie_word_embeddings": True,
}


def spm_model():
    """A SentencePiece model of the tiny corpus, as file content."""
    return sentencepiece_models(learn_sentencepiece(LINES, size=60), where="test")[EVERY]


def symbols_of(family, pieces):
    """All symbols in the order of the rows."""
    if family == "marian":
        return ["</s>", "<unk>", *pieces[3:], "<pad>"]
    if family == "m2m_100":
        return ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], "__en__", "__de__", "__fr__"]
    return ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], *LANGUAGES, "<mask>"]


def write_text(folder, family):
    """Write the text side and config.json. Returns the symbols and the config."""
    folder.mkdir(exist_ok=True)
    pieces = spm_model()
    symbols = symbols_of(family, pieces.symbols())
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    if family == "marian":
        for name in ("source.spm", "target.spm"):
            (folder / name).write_bytes(pieces.model)
        write(folder / "vocab.json", ids)
        write(folder / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de", "separate_vocabs": False})
        special = {"pad_token_id": ids["<pad>"], "decoder_start_token_id": ids["<pad>"], "eos_token_id": 0}
    else:
        (folder / "sentencepiece.bpe.model").write_bytes(pieces.model)
        special = {"pad_token_id": 1, "eos_token_id": 2, "bos_token_id": 0}
        languages = [symbol for symbol in symbols if symbol.startswith("__") or symbol in LANGUAGES]
        write(folder / "special_tokens_map.json", {"additional_special_tokens": languages})
        if family == "m2m_100":
            write(folder / "vocab.json", {symbol: n for symbol, n in ids.items() if symbol not in languages})
    config = COMMON | {"model_type": family, "vocab_size": len(symbols)} | special | CONFIGS[family]
    write(folder / "config.json", config)
    return symbols, config


def write(path, values):
    path.write_text(json.dumps(values), encoding="utf-8")


def write_weights(folder, family, n_symbols, seed=0):
    """Random weights with the names of transformers, as `pytorch_model.bin`."""
    random = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=random) * (0.35 if len(shape) > 1 else 0.1)

    weights = {"model.shared.weight": draw(n_symbols, WIDTH), "final_logits_bias": torch.zeros(1, n_symbols)}
    if family == "marian":
        weights["model.shared.weight"][-1] = 0
        weights["final_logits_bias"] = draw(1, n_symbols)
    for side in ("encoder", "decoder"):
        norms = ["self_attn_layer_norm", "final_layer_norm"] + ["encoder_attn_layer_norm"] * (side == "decoder")
        maps = {"fc1": (INNER, WIDTH), "fc2": (WIDTH, INNER)}
        for attention in ["self_attn"] + ["encoder_attn"] * (side == "decoder"):
            maps |= {f"{attention}.{part}_proj": (WIDTH, WIDTH) for part in ("q", "k", "v", "out")}
        for number in range(LAYERS):
            prefix = f"model.{side}.layers.{number}"
            for name, shape in maps.items():
                weights |= {f"{prefix}.{name}.weight": draw(*shape), f"{prefix}.{name}.bias": draw(shape[0])}
            for name in norms:
                weights |= norm(f"{prefix}.{name}", draw)
        if family.startswith("mbart"):
            weights |= norm(f"model.{side}.layernorm_embedding", draw)
            weights[f"model.{side}.embed_positions.weight"] = draw(POSITIONS + 2, WIDTH)
        if family != "marian":
            weights |= norm(f"model.{side}.layer_norm", draw)
    torch.save(weights, folder / "pytorch_model.bin")
    return weights


def write_model(folder, family):
    """Write a whole folder. Returns its symbols and weights."""
    symbols, _ = write_text(folder, family)
    return symbols, write_weights(folder, family, len(symbols))


def make_published(folder, family, *, languages=("en", "de"), **options):
    """Write a whole folder, and import it."""
    write_model(folder, family)
    return import_model(folder, languages=languages, **options)


def norm(name, draw):
    return {f"{name}.weight": 1 + draw(WIDTH), f"{name}.bias": draw(WIDTH)}


class Reference:
    """Plain formulas of the published models, for one sentence at a time."""

    def __init__(self, family, weights):
        self.family, self.weights = family, weights
        self.is_pre = family != "marian"

    def linear(self, name, rows):
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, rows):
        centered = rows - rows.mean(1, keepdim=True)
        scaled = centered / (centered.pow(2).mean(1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, name, queries, keys, is_causal):
        parts = [
            self.linear(f"{name}.{part}_proj", rows) for part, rows in zip("qkv", (queries, keys, keys), strict=True)
        ]
        outputs = []
        for q, k, v in zip(*(part.chunk(HEADS, 1) for part in parts), strict=True):
            scores = q @ k.T / np.sqrt(WIDTH / HEADS)
            if is_causal:
                scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
            outputs.append(scores.softmax(1) @ v)
        return self.linear(f"{name}.out_proj", torch.cat(outputs, 1))

    def feed_forward(self, name, rows):
        inner = self.linear(f"{name}.fc1", rows)
        if self.family == "marian":
            inner = inner * torch.sigmoid(inner)
        elif self.family == "m2m_100":
            inner = inner.clamp(min=0)
        else:
            inner = inner * 0.5 * (1 + torch.erf(inner / np.sqrt(2)))
        return self.linear(f"{name}.fc2", inner)

    def around(self, name, rows, module):
        if self.is_pre:
            return rows + module(self.norm(name, rows))
        return self.norm(name, rows + module(rows))

    def positions(self, side, n):
        if self.family.startswith("mbart"):
            return self.weights[f"model.{side}.embed_positions.weight"][2 : n + 2]
        half = WIDTH // 2
        numbers = torch.arange(n) + (2 if self.family == "m2m_100" else 0)
        angles = numbers[:, None] * 10000.0 ** (-torch.arange(half) / (half - 1))
        return torch.cat((angles.sin(), angles.cos()), 1)

    def stack(self, side, ids, memory=None):
        rows = self.weights["model.shared.weight"][ids] * np.sqrt(WIDTH) + self.positions(side, len(ids))
        if self.family.startswith("mbart"):
            rows = self.norm(f"model.{side}.layernorm_embedding", rows)
        for number in range(LAYERS):
            layer = f"model.{side}.layers.{number}"

            def to_itself(x, layer=layer):
                return self.attention(f"{layer}.self_attn", x, x, side == "decoder")

            rows = self.around(f"{layer}.self_attn_layer_norm", rows, to_itself)
            if memory is not None:

                def to_source(x, layer=layer):
                    return self.attention(f"{layer}.encoder_attn", x, memory, False)

                rows = self.around(f"{layer}.encoder_attn_layer_norm", rows, to_source)
            rows = self.around(f"{layer}.final_layer_norm", rows, lambda x, layer=layer: self.feed_forward(layer, x))
        return self.norm(f"model.{side}.layer_norm", rows) if self.is_pre else rows

    def logits(self, src, tgt):
        states = self.stack("decoder", tgt, self.stack("encoder", src))
        return states @ self.weights["model.shared.weight"].T + self.weights["final_logits_bias"]

    def greedy(self, src, start, end, banned, limit):
        ids = list(start)
        while ids[-1] != end or len(ids) == len(start):
            scores = self.logits(src, ids)[-1].clone()
            scores[banned] = -torch.inf
            if len(ids) == len(start):
                scores[end] = -torch.inf
            if len(ids) - len(start) == limit:
                break
            ids.append(int(scores.argmax()))
        return [number for number in ids[len(start) :] if number != end]
