"""Published models in the format of transformers: their parameter names and their computation, as tables.

A family (`model_type` in config.json) is a row in `FAMILIES`. All families have the same parameter names.
"""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmt.checksums import check_planned
from docmt.errors import UserError, first_line
from docmt.files import read_json
from docmt.models.presets import ARCHITECTURES, MARIAN, MBART
from docmt.models.settings import ModelSettings
from docmt.text.published_text import read_optional

if TYPE_CHECKING:
    from torch import Tensor  # the configuration reads settings here, and must not wait for torch

LAYER = {
    "self_attention": "self_attn",
    "self_sublayer.norm": "self_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "cross_sublayer.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_sublayer.norm": "final_layer_norm",
}
"""Module names in a layer: docmt → transformers."""
SIDES = {"encoder": "src_inputs", "decoder": "tgt_inputs"}
EMBEDDING, BIAS = "model.shared.weight", "final_logits_bias"
"""Published parameters with one row per symbol: the embedding table and the bias of the softmax."""
TIED = (
    EMBEDDING,
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
"""Names of the embedding table. Files can contain any of them, because all are one table."""
ACTIVATIONS = {"swish": "swish", "silu": "swish", "gelu": "gelu", "relu": "relu"}
"""Activation names: transformers → docmt."""
SAME = ("encoder_layers", "decoder_layers", "width", "heads", "feed_forward_width", "form", "marks")
"""Settings that must be equal in the published model."""
LEARNED_SHIFT = 2
"""Rows in a table of learned positions before the first position."""
NEVER = -100.0
"""Bias for symbols that the published model lacks. (−∞ would make label smoothing infinite.)"""


@dataclass(frozen=True)
class PublishedFamily:
    """Facts about a model family that its config.json does not contain.

    Attributes:
        form: keys of `FormSettings`. The activation and the number of learned positions come from config.json.
        marks: keys of `MarkSettings`.
        required: the only values that docmt supports for keys in config.json.
        has_learned_positions: true if the model has a position table.
        start: config.json key for the only supported `decoder_start_token_id`, or None.
        text: keys of `TextSettings`.
    """

    form: dict[str, Any]
    marks: dict[str, list[str]]
    required: dict[str, Any] = field(default_factory=dict)
    has_learned_positions: bool = False
    start: str | None = None
    text: dict[str, Any] = field(default_factory=dict)


M2M_MARKS = {"src_before": ["{src}"], "src_after": ["</s>"], "tgt_before": ["</s>", "{tgt}"]}
FAMILIES: dict[str, PublishedFamily] = {
    "marian": PublishedFamily(
        **MARIAN,
        required={
            "share_encoder_decoder_embeddings": True,
            "normalize_before": False,
            "add_final_layer_norm": False,
            "normalize_embedding": False,
            "static_position_embeddings": True,
        },
        start="pad_token_id",
        text={"normalize": True},
    ),
    "mbart": PublishedFamily(**MBART, has_learned_positions=True),
    "mbart50": PublishedFamily(MBART["form"], M2M_MARKS, has_learned_positions=True),
    "m2m_100": PublishedFamily(
        {"norm": "pre", "final_norm": True, "output_bias": True, "position_offset": 2},
        M2M_MARKS,
        required={"pad_token_id": 1},  # positions are counted from it
        start="eos_token_id",
    ),
}
"""Families by `model_type` in config.json."""


def find_family(folder: Path) -> PublishedFamily:
    """Return the family for the model in a folder. Raises UserError if docmt does not support its computation."""
    where, config = str(folder / "config.json"), read_json(folder / "config.json")
    name = config.get("model_type")
    tokenizer = read_optional(folder / "tokenizer_config.json")
    # mBART and mBART50 share a `model_type`. They differ in their tokenizers, and usually in the first decoder input.
    if name == "mbart":
        classes = [values.get("tokenizer_class") for values in (config, tokenizer)]
        is_50 = any(str(kind).startswith("MBart50") for kind in classes)
        if is_50 or config.get("decoder_start_token_id") == config.get("eos_token_id", 2):
            name = "mbart50"
    if name not in FAMILIES:
        raise UserError(f"{where}: model_type {name!r} is not supported; known: {', '.join(FAMILIES)}")
    family = FAMILIES[name]
    if tokenizer.get("legacy_behaviour"):  # NLLB
        family = replace(family, marks=M2M_MARKS | {"src_before": [], "src_after": ["</s>", "{src}"]})
    # The format takes a missing `scale_embedding` for false, but in M2M100.
    values = {"scale_embedding": name == "m2m_100"} | config
    required = {"scale_embedding": True, "tie_word_embeddings": True} | family.required
    if family.start in values:
        required["decoder_start_token_id"] = values[family.start]
    for key, value in required.items():
        if values.get(key, value) != value:
            raise UserError(f"{where}: {key} is {values[key]!r}, but docmt supports only {value!r}")
    for key in ("attention_heads", "ffn_dim"):
        if config[f"encoder_{key}"] != config[f"decoder_{key}"]:
            raise UserError(f"{where}: {key} differ between encoder and decoder, which docmt does not support")
    return family


def read_settings(folder: Path) -> ModelSettings:
    """Read the settings of a published model, as a sentence model."""
    where, config = str(folder / "config.json"), read_json(folder / "config.json")
    try:
        family, name = find_family(folder), config["activation_function"]
        if name not in ACTIVATIONS:
            raise UserError(f"{where}: activation_function {name!r} is not supported; known: {', '.join(ACTIVATIONS)}")
        # null would mean sinusoids here
        positions = {}
        if family.has_learned_positions:
            positions = {"learned_positions": config["max_position_embeddings"] or 0}
        values = {
            "encoder_layers": config["encoder_layers"],
            "decoder_layers": config["decoder_layers"],
            "width": config["d_model"],
            "heads": config["encoder_attention_heads"],
            "feed_forward_width": config["encoder_ffn_dim"],
            "dropout": float(config.get("dropout", 0.1)),
            "form": family.form | positions | {"activation": ACTIVATIONS[name]},
            "marks": family.marks,
        }
    except KeyError as error:
        raise UserError(f"{where}: has no {error.args[0]!r}: not the description of a translation model") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise UserError(f"{where}: not the description of a translation model ({error})") from None
    sentences = {
        key: value | {"upper_layers": 0} if isinstance(value, dict) else value
        for key, value in ARCHITECTURES["sentence_transformer"].items()
    }
    return ModelSettings.load(sentences | values, where=where)


def parameter_names(settings: ModelSettings) -> Iterator[tuple[str, list[str]]]:
    """Yield docmt's parameters, except parameters per symbol, with the published parameters to concatenate."""
    for side, inputs in SIDES.items():
        for number in range(getattr(settings, f"{side}_layers")):
            for module, published in LAYER.items():
                if side == "decoder" or not module.startswith("cross"):
                    yield from _module_names(f"{side}.{number}.{module}", f"model.{side}.layers.{number}.{published}")
        if settings.form.embedding_norm:
            yield from _module_names(f"{inputs}.norm", f"model.{side}.layernorm_embedding")
        if settings.form.final_norm:
            yield from _module_names(f"{side}_norm", f"model.{side}.layer_norm")
        if settings.form.learned_positions:
            yield f"{inputs}.positions.weight", [f"model.{side}.embed_positions.weight"]


def _module_names(module: str, published: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the weight and bias names for a module, or for the parts of an attention."""
    if not module.endswith("attention"):
        yield from ((f"{module}.{kind}", [f"{published}.{kind}"]) for kind in ("weight", "bias"))
        return
    yield from _module_names(f"{module}.out", f"{published}.out_proj")
    for kind in ("weight", "bias"):
        yield f"{module}.in_{kind}", [f"{published}.{part}_proj.{kind}" for part in "qkv"]


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files in a folder. Raises UserError if there are none."""
    shards = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    if not shards:
        raise UserError(f"{folder}: has neither model.safetensors nor pytorch_model.bin")
    return shards


def read_weights(folder: Path) -> dict[str, Any]:
    """Read all tensors in a folder, by their published names. Other entries in the files are included."""
    import torch

    weights: dict[str, Any] = {}
    for path in weight_files(folder):
        check_planned(path)
        try:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file  # pyright: ignore[reportMissingImports]

                tensors = load_file(path)
            else:
                damaged = None
                if zipfile.is_zipfile(path):
                    damaged = zipfile.ZipFile(path).testzip()
                if damaged is not None:
                    raise ValueError(f"the checksum of {damaged} in it differs")  # which torch ignores
                tensors = torch.load(path, map_location="cpu", weights_only=True)
        except Exception as error:  # both libraries raise many kinds of errors for damaged files
            raise UserError(f"{path}: cannot be read ({' '.join(str(error).split())[:120]})") from None
        twice = weights.keys() & tensors.keys()
        if twice:
            raise UserError(f"{path}: {min(twice)} is also in another weight file of this folder: keep one model")
        weights |= tensors
    return weights


def convert_weights(published: dict[str, Any], settings: ModelSettings, rows: list[int]) -> "dict[str, Tensor]":
    """Return the weights for docmt's sentence model.

    `rows` are row numbers in the published tables by symbol id, −1 if the published model lacks the symbol.
    """
    import torch

    from docmt.models.model_file import is_plain

    def take(name: str) -> "Tensor":
        tensor = published[name]
        if not is_plain(tensor) or not tensor.float().isfinite().all():
            raise UserError(
                f"{name} in the published weights contains NaN or infinite values: download the files again"
            )
        return tensor.float()

    try:
        index = torch.tensor(rows)
        is_new = index < 0
        weights = {name: torch.cat([take(part) for part in parts]) for name, parts in parameter_names(settings)}
        table = take(next((name for name in TIED if name in published), EMBEDDING))
        bias = take(BIAS).flatten() if BIAS in published else torch.zeros(len(table))
        weights["embedding.weight"] = table[index.clamp(min=0)].masked_fill(is_new[:, None], 0)
        weights["output_bias"] = bias[index.clamp(min=0)].masked_fill(is_new, NEVER)
    except KeyError as error:
        raise UserError(f"the published weights contain no {error.args[0]}: config.json does not match") from None
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        problem = "the published weights do not fit the vocabulary or config.json"
        raise UserError(f"{problem} ({first_line(error)})") from None
    for name in weights:
        if name.endswith("positions.weight"):
            # Fairseq numbers positions from the id of padding + 1, so the first rows of its table are never read.
            weights[name] = weights[name][LEARNED_SHIFT:]
    return weights
