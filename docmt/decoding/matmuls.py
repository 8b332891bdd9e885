"""Products of a few rows with constant weights, in float32, half precision or int8.

A beam search step on a CPU multiplies few rows with all decoder weights. Reading the weights takes nearly all its time.
Measurements are in docs/experiments/performance.md.

Shape letters: R rows, I inputs.
"""

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from docmt.models.precisions import cpu_has_vnni

# Constructor of a product: rows [R, in] → [R, out], by a weight [out, in] and a bias [out] or None. A product does not
# see later changes of the weight, and it is no `nn.Module`, whose call takes as long as a small product.
MakeMatmul = Callable[[Tensor, Tensor | None], "FloatMatmul | Int8Matmul"]


class FloatMatmul:
    """A product in the dtype of the weight, equal to `F.linear` up to rounding."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.in_features = weight.shape
        self.weight = weight.detach()
        self.bias = bias
        if bias is not None:
            self.bias = bias.detach()
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
        if bias is not None:
            bias = bias.detach().float()
        self.packed = torch.ops.quantized.linear_prepack(quantized, bias)
        self.has_7_bits = not cpu_has_vnni()
        # Bypasses torch's check for traced arguments, a third of the time of a small product.
        self.linear = torch.ops.quantized.linear_dynamic.default._op

    def __call__(self, rows_RI: Tensor) -> Tensor:
        return self.linear(rows_RI, self.packed, self.has_7_bits)
