"""A model for decoding: its linear maps are fused and replaced by faster products (`matmul`), once for all batches.

Shape letters: N packed tokens, M packed keys, R rows, D width, H heads, K head width, V vocabulary.
"""

import copy
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from typing_extensions import override

from docmt.decoding.matmul import FloatMatmul, MakeMatmul
from docmt.models.attention.multi_head import Attention, Gate, MultiHeadAttention, parts
from docmt.models.layers import DecoderLayer
from docmt.models.systems.context_transformer import ContextTransformer
from docmt.models.systems.transformer import Transformer


class FusedProjections:
    """The linear maps of the parts of an attention, one product for all parts if they read the same queries.

    The weights of queries are scaled by 1/√K. With 3 outputs: queries, keys and values; with 1: queries alone.
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
        """[R, outputs, H, K] of a part. Parts come in order; shared ones all with the same queries."""
        number = self.numbers[part.pattern]
        if self.is_shared and number:  # computed together with the first part
            return self.outputs[number]
        self.outputs = self.products[number](query_RD).view(self.shape).unbind(1)
        return self.outputs[0]


class InferenceAttention(MultiHeadAttention):
    """A multi-head attention with fast products, each made when it is first used."""

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
    """A Transformer, with a context module or without, in evaluation mode and with fast products.

    Embeddings and layer norms are the model's own.

    Args:
        model: on its device, in its dtype. Later changes to its parameters do not reach the products.
        make: constructor of all products.
    """

    def __init__(self, model: Transformer, make: MakeMatmul = FloatMatmul) -> None:
        nn.Module.__init__(self)
        # New modules around the same parameters; the constructor would draw weights only to replace them.
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
        """The model itself if it has fast products, else a copy that has them, in its dtype."""
        return model if isinstance(model, cls) else cls(model)

    @override
    def logits(self, hidden_ND: Tensor) -> Tensor:
        return self.output(hidden_ND)


def _replace_maps(module: nn.Module, make: MakeMatmul) -> None:
    """Replace linear maps below a module by fast products, and layer norms by their function: its call is cheaper."""
    for name, child in list(module.named_children()):
        if isinstance(child, MultiHeadAttention):
            setattr(module, name, InferenceAttention(child, make))
        elif isinstance(child, Gate):
            setattr(module, name, InferenceGate(child, make))
        elif isinstance(child, nn.Linear | nn.LayerNorm) and not isinstance(module, nn.Sequential | nn.ModuleList):
            delattr(module, name)  # what replaces it is no module, so it would be lost to a list of modules
            if isinstance(child, nn.Linear):
                setattr(module, name, make(child.weight, child.bias))
            else:
                values = {"weight": child.weight, "bias": child.bias, "eps": child.eps}
                setattr(module, name, partial(torch.layer_norm, normalized_shape=child.normalized_shape, **values))
        else:
            _replace_maps(child, make)
