"""Products with weights as decoding on a CPU computes them.

A step of beam search multiplies few rows with every weight of the decoder, so its time is that of reading the weights.
Each function here makes a module for rows [R, in] → [R, out] from a weight [out, in] and a bias [out] or None. The
weights are read once, when the module is made: later changes do not reach it.

The choices rest on measurements, docs/experiments/performance.md.
"""

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.nn.quantized import dynamic

MakeProduct = Callable[[Tensor, Tensor | None], nn.Module]
"""Makes the product of a weight and a bias."""

FEW_ROWS = 6
"""Up to so many rows, but for one, a CPU reads the weights of a wide product faster as the left operand."""


class FloatProduct(nn.Module):
    """The product in the dtype of the weight, equal to `F.linear` up to rounding."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.is_wide = weight.device.type == "cpu" and weight.dtype == torch.float32 and len(weight) > weight.shape[1]

    def forward(self, rows_RI: Tensor) -> Tensor:
        """[R, in] → [R, out]."""
        if self.is_wide and 1 < len(rows_RI) <= FEW_ROWS:
            if self.bias is None:
                return torch.mm(self.weight, rows_RI.t()).t().contiguous()
            return torch.addmm(self.bias[:, None], self.weight, rows_RI.t()).t().contiguous()
        return F.linear(rows_RI, self.weight, self.bias)


class VocabularyProduct(FloatProduct):
    """The product of an output layer: on a CPU, more than a few rows are multiplied with a transposed copy."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self.transposed = self.weight.t().contiguous() if self.is_wide else self.weight.t()

    def forward(self, rows_RI: Tensor) -> Tensor:
        """[R, in] → [R, out]."""
        if self.is_wide and 1 < len(rows_RI) <= FEW_ROWS:
            return super().forward(rows_RI)
        product_RO = torch.mm(rows_RI, self.transposed)
        return product_RO if self.bias is None else product_RO + self.bias


def int8_product(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """The product of weights rounded to 8 bits, with a scale per output, and rows rounded to 7 bits as they come.

    All rows of one call share a scale, so a row's result depends a little on the others. CPU only.
    """
    weight = weight.detach().float()
    scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny)
    zeros = torch.zeros(len(weight), dtype=torch.int64)
    with warnings.catch_warnings():
        # This part of torch moves to another package in a later version; the versions that docmt allows have it.
        warnings.simplefilter("ignore")
        product = dynamic.Linear(weight.shape[1], len(weight), bias_=bias is not None)
        quantized = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        product.set_weight_bias(quantized, None if bias is None else bias.detach().float())
    return product
