"""A model as decoding uses it: linear maps put together and made into products (products.py), once for all batches.

Shape letters: N packed tokens, M packed keys, R rows, D width, H heads, K head width, V vocabulary.
"""

import copy
from functools import cached_property
from typing import Self

import torch
from torch import Tensor, nn

from docmt.decoding.products import FloatProduct, MakeProduct, VocabularyProduct
from docmt.models.layers import Attention, DecoderLayer, Gate, MultiHeadAttention, parts
from docmt.models.transformer import Transformer


class Projections:
    """The linear maps of the parts of an attention, one product for all where all read the same queries.

    Queries are scaled beforehand by 1/√K. There are 3 outputs for queries, keys and values, 1 for queries alone.
    """

    def __init__(self, attention: Attention, n_outputs: int, make: MakeProduct) -> None:
        members = parts(attention)
        heads, inner = members[0].heads, members[0].out.in_features
        scale = (inner // heads) ** -0.5
        weights = [_scale_query(part.in_weight[: n_outputs * inner], inner, scale) for part in members]
        biases = [_scale_query(part.in_bias[: n_outputs * inner], inner, scale) for part in members]
        self.numbers = {part.pattern: number for number, part in enumerate(members)}
        self.is_shared = attention.shares_queries
        if self.is_shared:
            weights, biases = [torch.cat(weights)], [torch.cat(biases)]
        self.products = [make(weight, bias) for weight, bias in zip(weights, biases, strict=True)]
        self.shape = (-1, n_outputs, heads, inner // heads)
        self.outputs: tuple[Tensor, ...] = ()

    def project(self, part: MultiHeadAttention, query_RD: Tensor) -> Tensor:
        """[R, outputs, H, K] of a part. Parts come in order; shared ones all with the same queries."""
        number = self.numbers[part.pattern]
        if not self.is_shared:
            return self._multiply(number, query_RD)[:, 0]
        if number == 0:
            self.outputs = self._multiply(0, query_RD).unbind(1)
        return self.outputs[number]

    def _multiply(self, number: int, query_RD: Tensor) -> Tensor:
        """[R, parts in this product, outputs, H, K]."""
        return self.products[number](query_RD).unflatten(1, self.shape)


def _scale_query(parameter: Tensor, inner: int, scale: float) -> Tensor:
    """A copy whose query part is scaled."""
    scaled = parameter.detach().clone()
    scaled[:inner] *= scale
    return scaled


class PreparedAttention(MultiHeadAttention):
    """A multi-head attention whose maps are products, each made when it is first used."""

    def __init__(self, part: MultiHeadAttention, make: MakeProduct) -> None:
        nn.Module.__init__(self)
        self.heads, self.pattern, self.make = part.heads, part.pattern, make
        self.in_weight, self.memory_weight, self.in_bias = part.in_weight, part.memory_weight, part.in_bias
        self.distances = part.distances
        # It stands for a linear map: it is called, and knows its width.
        self.out = make(part.out.weight, part.out.bias)  # pyright: ignore[reportAttributeAccessIssue]

    def project(self, query_ND: Tensor, memory_MD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """See `MultiHeadAttention.project`."""
        if memory_MD is not None:
            return super().project(query_ND, memory_MD)
        query_NHK, key_NHK, value_NHK = self._whole(query_ND).unflatten(1, (3, self.heads, -1)).unbind(1)
        return query_NHK, key_NHK, value_NHK

    def project_memory(self, memory_MD: Tensor) -> tuple[Tensor, Tensor]:
        """See `MultiHeadAttention.project_memory`."""
        key_MHK, value_MHK = self._memory(memory_MD).unflatten(1, (2, self.heads, -1)).unbind(1)
        return key_MHK, value_MHK

    @cached_property
    def _whole(self) -> nn.Module:
        return self.make(self.in_weight, self.in_bias)

    @cached_property
    def _memory(self) -> nn.Module:
        (_, weight), (_, bias) = self._in_parts()
        return self.make(weight, bias)


class PreparedGate(Gate):
    """A gate whose map is a product."""

    def __init__(self, gate: Gate, make: MakeProduct) -> None:
        nn.Module.__init__(self)
        self.product = make(gate.weight, gate.bias)

    def weigh(self, both_NE: Tensor) -> Tensor:
        """See `Gate.weigh`."""
        return self.product(both_NE)


class PreparedTransformer(Transformer):
    """A Transformer in evaluation mode whose linear maps are products; embeddings and layer norms are the model's own.

    Args:
        model: on its device, in its dtype. Later changes to its parameters do not reach the products.
        make: makes each product with a weight but the output layer's.
        make_output: makes that of the output layer.
    """

    def __init__(
        self, model: Transformer, make: MakeProduct = FloatProduct, make_output: MakeProduct = VocabularyProduct
    ) -> None:
        nn.Module.__init__(self)
        # New modules, but the same parameters; so no weights are drawn that would be replaced at once.
        self.__dict__.update(vars(copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})))
        self.eval()
        self.projections = {
            layer: (Projections(layer.self_attention, 3, make), Projections(layer.cross_attention, 1, make))
            for layer in self.modules()
            if isinstance(layer, DecoderLayer)
        }
        self.output = make_output(self.embedding.weight, self.output_bias)
        _replace_maps(self, make)

    @classmethod
    def of(cls, model: Transformer) -> Self:
        """The model itself if it is prepared, else prepared with products in its dtype."""
        return model if isinstance(model, cls) else cls(model)

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """See `Transformer.logits`."""
        return self.output(hidden_ND)


def _replace_maps(module: nn.Module, make: MakeProduct) -> None:
    """Put products in the place of all linear maps below a module."""
    for name, child in module.named_children():
        if isinstance(child, MultiHeadAttention):
            setattr(module, name, PreparedAttention(child, make))
        elif isinstance(child, Gate):
            setattr(module, name, PreparedGate(child, make))
        elif isinstance(child, nn.Linear):
            setattr(module, name, make(child.weight, child.bias))
        else:
            _replace_maps(child, make)
