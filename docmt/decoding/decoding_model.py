"""A model for decoding, whose linear maps are replaced by faster products, once for all batches.

Shape letters: N packed tokens, M packed keys, R rows, D width, H heads, K head width.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from docmt.decoding.matmuls import FloatMatmul, Int8Matmul, MakeMatmul
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.attention.multi_head import Attention, Gate, MultiHeadAttention, parts
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16
from docmt.models.layers import DecoderLayer
from docmt.models.precisions import cpu_has_bfloat16, fastest_precision
from docmt.models.systems.transformer import Transformer

FEW_WEIGHTS = 2_000_000
"""Products with fewer weights are a small part of a search step in any precision."""
MEASURED_WEIGHTS = 2**22
"""Weights from the decoder, and from the output layer, that are multiplied to find the fastest precision."""
MEASURED_ROWS = 20
"""Hypotheses for four documents."""


class FusedProjections:
    """The input maps for the parts in an attention, as one product if all parts read the same queries.

    Query weights are scaled by 1/√K. There are 3 outputs (queries, keys and values) or 1 (queries).
    """

    def __init__(self, attention: Attention, n_outputs: int, make: MakeMatmul) -> None:
        members = parts(attention)
        heads = members[0].heads
        inner = members[0].out.in_features
        weights = []
        biases = []
        for part in members:
            # The rows of queries come first, then keys and values, which are not used with 1 output.
            weights.append(part.in_weight[: n_outputs * inner].detach().clone())
            biases.append(part.in_bias[: n_outputs * inner].detach().clone())
            for rows in (weights[-1], biases[-1]):
                # Scaled once here instead of in every step.
                rows[:inner] *= (inner // heads) ** -0.5
        self.numbers = {part.pattern: number for number, part in enumerate(members)}
        self.is_shared = attention.shares_queries
        n_parts = 1  # per product
        if self.is_shared:
            n_parts = len(members)
            weights = [torch.cat(weights)]
            biases = [torch.cat(biases)]
        self.products = list(map(make, weights, biases))
        self.shape = (-1, n_parts, n_outputs, heads, inner // heads)
        self.outputs: tuple[Tensor, ...] = ()

    def project(self, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        """Return a part's projections, [R, outputs, H, K].

        Parts come in order. Parts with a shared product get the same queries.
        """
        number = self.numbers[part.pattern]
        if self.is_shared and number:  # computed together with the first part
            return self.outputs[number]
        self.outputs = self.products[number](query_RD).view(self.shape).unbind(1)
        return self.outputs[0]


def project_with_products(part: MultiHeadAttention, make: MakeMatmul) -> None:
    """Let an attention project whole batches with products, made when first used."""

    @functools.cache
    def input_product() -> FloatMatmul | Int8Matmul:
        return make(part.in_weight, part.in_bias)

    @functools.cache
    def memory_product() -> FloatMatmul | Int8Matmul:
        (_, weight), (_, bias) = part._in_parts()
        return make(weight, bias)

    def project(query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        if memory_MD is not None:
            return MultiHeadAttention.project(part, query_ND, memory_MD)
        query_NHK, key_NHK, value_NHK = input_product()(query_ND).unflatten(1, (3, part.heads, -1)).unbind(1)
        return query_NHK, key_NHK, value_NHK

    def project_memory(memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        key_MHK, value_MHK = memory_product()(memory_MD).unflatten(1, (2, part.heads, -1)).unbind(1)
        return key_MHK, value_MHK

    part.project = project
    part.project_memory = project_memory


class DecodingModel:
    """A Transformer in evaluation mode with fast products, for beam search.

    Args:
        model: on its device, in its dtype. Later changes to its parameters do not reach the products.
        make: constructor for all products.

    Attributes:
        transformer: the model with the same parameters. Its linear maps call products.
        projections: products of self-attention and cross-attention by decoder layer.
        output: product of the output layer.
        compiled_steps: compiled code by the decoder layers of a pass, for `DecoderStep`.
    """

    def __init__(self, model: Transformer, make: MakeMatmul = FloatMatmul) -> None:
        # New modules around the same parameters.
        self.transformer = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()}).eval()
        self.settings = model.settings
        self.projections: dict[DecoderLayer, tuple[FusedProjections, FusedProjections]] = {}
        for module in self.transformer.modules():
            if isinstance(module, nn.Linear):
                product: Any = make(module.weight, module.bias)
                if isinstance(module, Gate):
                    module.weigh = product
                else:
                    module.forward = product
            elif isinstance(module, MultiHeadAttention):
                project_with_products(module, make)
            elif isinstance(module, DecoderLayer):
                self.projections[module] = (
                    FusedProjections(module.self_attention, 3, make),
                    FusedProjections(module.cross_attention, 1, make),
                )
        self.output = make(model.embedding.weight, model.output_bias)
        self.compiled_steps: dict[tuple[DecoderLayer, ...], Any] = {}


def prepare_model(model: Transformer, settings: DecodingSettings, device: str) -> Transformer:
    """Return a copy of the model for inference on a device, in the precision of the settings.

    Raises UserError if device, settings and model do not fit together.
    """
    if settings.precision == "int8" and device != "cpu":
        raise UserError("decoding.precision: int8 works only on a CPU: use auto on a GPU, or --device cpu")
    if settings.context == "none" and model.settings.context is None:
        raise UserError(
            "decoding.context: none skips the context module, but this model has none: remove the key, or use a "
            "model with one, for example global_context"
        )
    if settings.context == "joined" and not model.settings.sees_single_sentences:
        raise UserError(
            "decoding.context: joined translates an instance as one sentence, but this model reads documents: remove "
            "the key, or use a sentence model"
        )
    has_bfloat16 = device == "cuda" and torch.cuda.get_device_capability() >= CAPABILITY_WITH_BFLOAT16
    if device == "cuda":
        # In the whole process: cuDNN plans attention anew for each number of keys, in 0.2 to 0.9 seconds.
        torch.backends.cuda.enable_cudnn_sdp(False)
    elif settings.precision == "float16":
        raise UserError("decoding.precision: float16 works only on a GPU: use auto")
    model = copy.deepcopy(model).to(device).eval()
    if settings.precision == "float16":
        return model.half()
    is_half = settings.precision == "bfloat16" or (settings.precision == "auto" and has_bfloat16)
    if is_half:
        return model.bfloat16()
    return model


def prepare_search(model: Transformer, settings: DecodingSettings, device: str) -> DecodingModel:
    """Return a copy of the model for beam search, with matrix products in the precision of the settings."""
    make = Int8Matmul if settings.precision == "int8" else FloatMatmul
    return DecodingModel(prepare_model(model, settings, device), make)


@torch.inference_mode()
def precision_for(model: Transformer) -> str:
    """Return the fastest precision for a search with a model on this CPU, by measuring some of its products."""
    maps = [layer.weight for layer in model.decoder.modules() if isinstance(layer, nn.Linear)]
    if sum(weight.numel() for weight in (*maps, model.embedding.weight)) < FEW_WEIGHTS:
        return "float32"
    n_maps = max(1, MEASURED_WEIGHTS // maps[0].numel())
    weights = [*maps[:n_maps], model.embedding.weight[: MEASURED_WEIGHTS // model.settings.width]]

    def step(make: MakeMatmul, dtype: torch.dtype) -> Callable[[], list[Tensor]]:
        pairs = [(make(w.to(dtype), None), torch.ones(MEASURED_ROWS, w.shape[1], dtype=dtype)) for w in weights]
        return lambda: [product(rows) for product, rows in pairs]

    steps = {"float32": step(FloatMatmul, torch.float32), "int8": step(Int8Matmul, torch.float32)}
    if cpu_has_bfloat16():
        steps["bfloat16"] = step(FloatMatmul, torch.bfloat16)
    return fastest_precision(steps)
