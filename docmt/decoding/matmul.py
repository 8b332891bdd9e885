"""Fast products of few rows with weights, for decoding on a CPU.

A step of beam search multiplies few rows with every weight of the decoder: reading the weights takes nearly all its
time. Each module here maps rows [R, in] → [R, out], given a weight [out, in] and a bias [out] or None; it does not see
later changes of the weight. Measurements: docs/experiments/performance.md.
"""

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from docmt.models.precisions import cpu_has_vnni

# Constructor of a product from a weight and a bias.
MakeMatmul = Callable[[Tensor, Tensor | None], nn.Module]

# For 2 to 6 rows, wide products are faster on a CPU with the weight as left operand.
FEW_ROWS = 6


class FloatMatmul(nn.Module):
    """The product in the dtype of the weight, equal to `F.linear` up to rounding."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight, self.bias = weight.detach(), None if bias is None else bias.detach()
        self.is_wide = weight.device.type == "cpu" and weight.dtype == torch.float32 and len(weight) > weight.shape[1]

    @override
    def forward(self, rows_RI: Tensor) -> Tensor:
        if self.is_wide and 1 < len(rows_RI) <= FEW_ROWS:
            if self.bias is None:
                # Contiguous, like the result of `F.linear`.
                return torch.mm(self.weight, rows_RI.t()).t().contiguous()
            return torch.addmm(self.bias[:, None], self.weight, rows_RI.t()).t().contiguous()
        return F.linear(rows_RI, self.weight, self.bias)


class VocabularyMatmul(FloatMatmul):
    """The product of an output layer: on a CPU, more than a few rows are multiplied with a transposed copy."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__(weight, bias)
        self.transposed = self.weight.t().contiguous() if self.is_wide else self.weight.t()

    @override
    def forward(self, rows_RI: Tensor) -> Tensor:
        if self.is_wide and 1 < len(rows_RI) <= FEW_ROWS:
            return super().forward(rows_RI)
        product_RO = torch.mm(rows_RI, self.transposed)
        return product_RO if self.bias is None else product_RO + self.bias


class Int8Matmul(nn.Module):
    """A product of weights in 8 bits, with a scale per output, and rows rounded as they come; CPU only.

    Rows have 8 bits where the CPU has VNNI, else 7, because sums of two products would overflow 16 bits. All rows of
    one call share a scale, so a row's result depends a little on the others.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        weight = weight.detach().float()
        # Without the smallest positive number, an output whose weights are all zero would divide by zero.
        scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.float32).tiny)
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():
            # torch warns that this will move to another package; all versions that docmt allows have it here.
            warnings.simplefilter("ignore")
            quantized = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        self.packed = torch.ops.quantized.linear_prepack(quantized, None if bias is None else bias.detach().float())
        self.has_7_bits = not cpu_has_vnni()

    @override
    def forward(self, rows_RI: Tensor) -> Tensor:
        return torch.ops.quantized.linear_dynamic(rows_RI, self.packed, self.has_7_bits)
