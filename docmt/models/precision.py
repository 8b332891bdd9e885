"""Mixed precision: the weights of a layer are converted together, once, instead of one by one where they are used."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call


def product_dtype(rows: Tensor) -> torch.dtype:
    """The type in which these rows are multiplied with weights: that of autocast, if it is on, or their own."""
    device = rows.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else rows.dtype


def call_layer(layer: nn.Module, hidden_ND: Tensor, *arguments: Any) -> Tensor:
    """`layer(hidden_ND, *arguments)`, equal bit by bit; under autocast it takes far fewer conversions.

    Layer norms keep their weights: they compute in float32.
    """
    dtype = product_dtype(hidden_ND)
    if torch.compiler.is_compiling() or next(layer.parameters()).dtype == dtype:  # a compiler joins conversions itself
        return layer(hidden_ND, *arguments)
    named = [(name, p) for name, p in layer.named_parameters() if not name.endswith(("norm.weight", "norm.bias"))]
    flat = torch.cat([parameter.flatten() for _, parameter in named]).to(dtype)
    pieces = flat.split([parameter.numel() for _, parameter in named])
    weights = {name: piece.view(p.shape) for (name, p), piece in zip(named, pieces, strict=True)}
    return functional_call(layer, weights, (hidden_ND, *arguments), tie_weights=False)
