"""Numerics shared by all models: dropout, mixed precision, and vocabulary scores in chunks."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

STEPS = 2**16
"""On a CPU, dropout probabilities are multiples of 1 / STEPS."""


def dropout(rows: Tensor, probability: float, is_training: bool) -> Tensor:
    """Set entries to 0 with a probability and scale the others, so that the mean stays the same."""
    if not is_training or probability == 0:
        return rows
    if rows.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(rows, probability)
    # 16 random bits per entry. Never 0 or all values, so that a small probability still drops some.
    n_dropped = min(max(round(probability * STEPS), 1), STEPS - 1)
    # One 64-bit random number serves four entries.
    numbers = torch.empty(-(-rows.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    # As int16 the numbers are −STEPS/2 … STEPS/2 − 1, so the threshold moves down by half of the range.
    is_kept = numbers[: rows.numel()].view(rows.shape) >= n_dropped - STEPS // 2
    return rows * is_kept.to(rows.dtype).mul_(STEPS / (STEPS - n_dropped))


def product_dtype(rows: Tensor) -> torch.dtype:
    """Return the dtype for products of these rows with weights: autocast's dtype if autocast is on."""
    device = rows.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return rows.dtype


def call_layer(layer: nn.Module, hidden_ND: Tensor, *arguments: Any) -> Tensor:
    """Return `layer(hidden_ND, *arguments)`, equal bit by bit, but with far fewer conversions under autocast.

    Layer norms keep float32 weights, because they compute in float32. In compiled code, weights are converted before,
    see `convert`.
    """
    dtype = product_dtype(hidden_ND)
    if torch.compiler.is_compiling() or next(layer.parameters()).dtype == dtype:
        return layer(hidden_ND, *arguments)
    # Layer norms are found by their name: the attribute must be called `norm`, or end in it.
    named = [(name, p) for name, p in layer.named_parameters() if not name.endswith(("norm.weight", "norm.bias"))]
    # One conversion of all weights joined, where autocast would convert each weight by itself.
    flat = torch.cat([parameter.flatten() for _, parameter in named]).to(dtype)
    pieces = flat.split([parameter.numel() for _, parameter in named])
    weights = {name: piece.view(p.shape) for (name, p), piece in zip(named, pieces, strict=True)}
    return functional_call(layer, weights, (hidden_ND, *arguments), tie_weights=False)


@torch.library.custom_op("docmt::convert", mutates_args=())
def convert(tensors: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Return copies in another dtype. A GPU needs few launches for all, and few for all gradients."""
    copies = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(copies, tensors)  # pyright: ignore[reportPrivateImportUsage]
    return copies


def _keep_dtype(ctx: Any, inputs: tuple[list[Tensor], torch.dtype], output: list[Tensor]) -> None:
    ctx.dtype = inputs[0][0].dtype
    ctx.set_materialize_grads(False)


def _convert_gradients(ctx: Any, gradients: list[Tensor | None]) -> tuple[list[Tensor | None], None]:
    # Weights that a batch does not use have no gradient.
    converted = iter(convert([part.contiguous() for part in gradients if part is not None], ctx.dtype))
    return [None if part is None else next(converted) for part in gradients], None


convert.register_fake(lambda tensors, dtype: [torch.empty_like(tensor, dtype=dtype) for tensor in tensors])
convert.register_autograd(_convert_gradients, setup_context=_keep_dtype)


CHUNK_SCORES = {"cpu": 2**21, "cuda": 2**26}
"""Maximum scores per chunk. On a CPU they stay in the cache. On a GPU fewer, larger chunks need fewer launches."""


def chunks(rows: Tensor, n_symbols: int) -> tuple[Tensor, ...]:
    """Split rows into views with at most `CHUNK_SCORES` scores."""
    return rows.split(max(1, CHUNK_SCORES["cuda" if rows.is_cuda else "cpu"] // n_symbols))


def symbol_scores(hidden_ND: Tensor, table_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    """Return the scores for all symbols, [N, V], in float32 or a wider input dtype."""
    scores_NV = hidden_ND @ table_VD.T
    scores_NV = scores_NV.to(torch.promote_types(scores_NV.dtype, torch.float32))
    if bias_V is None:
        return scores_NV
    return scores_NV + bias_V
