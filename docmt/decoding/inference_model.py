"""A model for decoding, whose linear maps are fused and replaced by faster products, once for all batches.

A beam search step on a CPU multiplies few rows with all decoder weights. Reading the weights takes nearly all its time.
Measurements are in docs/experiments/performance.md.

Shape letters: N packed tokens, M packed keys, R rows, D width, H heads, K head width, V vocabulary.
"""

import copy
import warnings
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.attention.multi_head import Attention, Gate, MultiHeadAttention, parts
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16
from docmt.models.layers import DecoderLayer
from docmt.models.precisions import cpu_has_bfloat16, cpu_has_vnni, fastest_precision
from docmt.models.systems.context_transformer import ContextTransformer
from docmt.models.systems.transformer import Transformer

FEW_WEIGHTS = 2_000_000
"""Products with fewer weights are a small part of a search step in any precision."""
MEASURED_WEIGHTS = 2**22
"""Weights from the decoder, and from the output layer, that are multiplied to find the fastest precision."""
MEASURED_ROWS = 20
"""Hypotheses for four documents."""

# Constructor of a product: rows [R, in] → [R, out], by a weight [out, in] and a bias [out] or None. A product does not
# see later changes of the weight, and it is no `nn.Module`, whose call takes as long as a small product.
MakeMatmul = Callable[[Tensor, Tensor | None], "FloatMatmul | Int8Matmul"]


class FloatMatmul:
    """A product in the dtype of the weight, equal to `F.linear` up to rounding."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.in_features = weight.shape
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.is_packed = weight.is_cpu and weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()
        if self.is_packed:
            # In the order in which oneDNN reads it, as inductor does with constant weights.
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight)
            self.linear = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, rows_RI: Tensor) -> Tensor:
        if self.is_packed:
            return self.linear(rows_RI, self.weight, self.bias, "none", [], "")  # no function of the result
        return F.linear(rows_RI, self.weight, self.bias)


class Int8Matmul:
    """A product with 8-bit weights, a scale per output, and rows that are rounded in every call. CPU only.

    Rows have 8 bits on CPUs with VNNI, otherwise 7, because sums of two products would overflow 16 bits. All rows in
    one call share a scale, so a row's result depends a little on the others.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.in_features = weight.shape
        weight = weight.detach().float()
        # Without the smallest positive number, an output whose weights are all zero would divide by zero.
        scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny)
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():
            # torch warns that this will move to another package. All versions that docmt allows have it here.
            warnings.simplefilter("ignore")
            quantized = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(quantized, None if bias is None else bias.detach().float())
        self.has_7_bits = not cpu_has_vnni()
        # Bypasses torch's check for traced arguments, a third of the time of a small product.
        self.linear = torch.ops.quantized.linear_dynamic.default._op

    def __call__(self, rows_RI: Tensor) -> Tensor:
        return self.linear(rows_RI, self.packed, self.has_7_bits)


class FusedProjections:
    """The linear maps for the parts in an attention, as one product if all parts read the same queries.

    Query weights are scaled by 1/√K. There are 3 outputs (queries, keys and values) or 1 (queries).
    """

    def __init__(self, attention: Attention, n_outputs: int, make: MakeMatmul) -> None:
        members = parts(attention)
        heads, inner = members[0].heads, members[0].out.in_features
        scale = (inner // heads) ** -0.5

        def scaled(parameter: Tensor) -> Tensor:
            # The rows of queries come first, then keys and values, which are not used with 1 output.
            copied = parameter[: n_outputs * inner].detach().clone()
            # Scaled once here instead of in every step.
            copied[:inner] *= scale
            return copied

        weights = [scaled(part.in_weight) for part in members]
        biases = [scaled(part.in_bias) for part in members]
        self.numbers = {part.pattern: number for number, part in enumerate(members)}
        self.is_shared = attention.shares_queries
        if self.is_shared:
            weights, biases = [torch.cat(weights)], [torch.cat(biases)]
        self.products = [make(weight, bias) for weight, bias in zip(weights, biases, strict=True)]
        self.shape = (-1, len(members) if self.is_shared else 1, n_outputs, heads, inner // heads)
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


class InferenceAttention(MultiHeadAttention):
    """Multi-head attention with fast products, made when first used."""

    def __init__(self, part: MultiHeadAttention, make: MakeMatmul) -> None:
        nn.Module.__init__(self)
        self.heads, self.pattern, self.make = part.heads, part.pattern, make
        self.in_weight, self.memory_weight, self.in_bias = part.in_weight, part.memory_weight, part.in_bias
        self.distances = part.distances
        # It replaces `nn.Linear`: callers use only the call and `in_features`.
        self.out = make(part.out.weight, part.out.bias)  # pyright: ignore[reportAttributeAccessIssue]

    @override
    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        if memory_MD is not None:
            return super().project(query_ND, memory_MD)
        query_NHK, key_NHK, value_NHK = self._in_product(query_ND).unflatten(1, (3, self.heads, -1)).unbind(1)
        return query_NHK, key_NHK, value_NHK

    @override
    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        key_MHK, value_MHK = self._memory_product(memory_MD).unflatten(1, (2, self.heads, -1)).unbind(1)
        return key_MHK, value_MHK

    @cached_property
    def _in_product(self) -> Callable[[Tensor], Tensor]:
        return self.make(self.in_weight, self.in_bias)

    @cached_property
    def _memory_product(self) -> Callable[[Tensor], Tensor]:
        (_, weight), (_, bias) = self._in_parts()
        return self.make(weight, bias)


class InferenceGate(Gate):
    """A gate with a fast product."""

    def __init__(self, gate: Gate, make: MakeMatmul) -> None:
        nn.Module.__init__(self)
        self.product = make(gate.weight, gate.bias)

    @override
    def weigh(self, both_NE: Tensor) -> Tensor:
        return self.product(both_NE)


class InferenceTransformer(ContextTransformer):
    """A Transformer, with or without a context module, in evaluation mode and with fast products.

    Embeddings and layer norms are shared with the original model.

    Args:
        model: on its device, in its dtype. Later changes to its parameters do not reach the products.
        make: constructor for all products.
    """

    def __init__(self, model: Transformer, make: MakeMatmul = FloatMatmul) -> None:
        nn.Module.__init__(self)
        # New modules around the same parameters. The constructor would draw weights only to replace them.
        self.__dict__.update(vars(copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})))
        self.eval()
        self.projections = {
            layer: (FusedProjections(layer.self_attention, 3, make), FusedProjections(layer.cross_attention, 1, make))
            for layer in self.modules()
            if isinstance(layer, DecoderLayer)
        }
        # Of the decoder layers of a pass, by `DecoderStep`.
        self.compiled_steps: dict[tuple[DecoderLayer, ...], Any] = {}
        self.output = make(self.embedding.weight, self.output_bias)
        _replace_maps(self, make)

    @classmethod
    def of(cls, model: Transformer) -> Self:
        """Return the model itself if it has fast products, otherwise a copy with fast products, in its dtype."""
        return model if isinstance(model, cls) else cls(model)

    @override
    def logits(self, hidden_ND: Tensor) -> Tensor:
        return self.output(hidden_ND)


def _replace_maps(module: nn.Module, make: MakeMatmul) -> None:
    """Replace linear maps in a module by fast products, and layer norms by functions, which are cheaper to call."""
    for name, child in list(module.named_children()):
        if isinstance(child, MultiHeadAttention):
            setattr(module, name, InferenceAttention(child, make))
        elif isinstance(child, Gate):
            setattr(module, name, InferenceGate(child, make))
        elif isinstance(child, nn.Linear | nn.LayerNorm) and not isinstance(module, nn.Sequential | nn.ModuleList):
            delattr(module, name)  # its replacement is no module, so a list of modules would lose it
            if isinstance(child, nn.Linear):
                setattr(module, name, make(child.weight, child.bias))
            else:
                values = {"weight": child.weight, "bias": child.bias, "eps": child.eps}
                setattr(module, name, partial(torch.layer_norm, normalized_shape=child.normalized_shape, **values))
        else:
            _replace_maps(child, make)


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
    return model.bfloat16() if is_half else model


def prepare_search(model: Transformer, settings: DecodingSettings, device: str) -> InferenceTransformer:
    """Return a copy of the model for beam search, with matrix products in the precision of the settings."""
    prepared = prepare_model(model, settings, device)
    if settings.precision == "int8":
        return InferenceTransformer(prepared, Int8Matmul)
    return InferenceTransformer(prepared)


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
