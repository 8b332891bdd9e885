"""Attention entropies, as in the analysis in G-Transformer, §3.2."""

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import torch

from docmt.models.attention.kernels import PaddedIndexes, attention_entropy
from docmt.models.attention.multi_head import Groupings, MultiHeadAttention
from docmt.models.attention.patterns import SLOTS
from docmt.models.systems.transformer import Transformer


class EntropyMeter:
    """A reusable context manager that measures all attentions while a model runs, on batches for the kernel `padded`.

    The entropy of attention weights, in bits, is averaged over heads first as in the paper's code, then over queries,
    then over attention modules by kind, and by kind and pattern. A fused attention counts as two. The entropy of RST
    attention is over visible tokens. The difference from uniform attention makes patterns comparable that see different
    numbers of tokens.
    """

    def __init__(self, model: Transformer) -> None:
        attentions = {name: m for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
        self.modules = list(attentions.values())
        # `decoder.layers.0.cross_attention` is of kind `cross`.
        kinds = (name.replace("decoder", "cross") if "cross_attention" in name else name for name in attentions)
        self.kinds = [name.split(".")[0] for name in kinds]
        self.sums = [[0.0, 0.0, 0.0] for _ in attentions]  # entropy, entropy of uniform attention, queries

    def __enter__(self) -> "EntropyMeter":
        self.handles = [
            module.register_forward_pre_hook(partial(self._measure, totals))
            for module, totals in zip(self.modules, self.sums, strict=True)
        ]
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self.handles:
            handle.remove()

    @staticmethod
    @torch.no_grad()
    def _measure(totals: list[float], module: MultiHeadAttention, arguments: tuple[Any, Any, Groupings]) -> None:
        query_ND, memory_MD, groupings = arguments
        indexes = groupings(module.pattern)
        assert isinstance(indexes, PaddedIndexes), "measured batches are prepared for this kernel"
        query_NHK, key_MHK, _, adjust = module.projections(query_ND, memory_MD, indexes)
        entropy_N = attention_entropy(query_NHK, key_MHK, indexes, adjust)
        # Queries of zero attend evenly to all that they see.
        even_N = attention_entropy(torch.zeros_like(query_NHK), key_MHK, indexes, adjust)
        for i, value in enumerate((float(entropy_N.sum()), float(even_N.sum()), len(entropy_N))):
            totals[i] += value

    def all_reduce(self, all_reduce: Callable[..., list[float]]) -> None:
        """Sum the measurements over all processes. `all_reduce` sums its arguments over all processes."""
        # One exchange for all sums instead of one for each attention.
        flat = all_reduce(*(value for totals in self.sums for value in totals))
        self.sums = [flat[i : i + 3] for i in range(0, len(flat), 3)]

    def entropies(self) -> dict[str, float]:
        """Return history columns, in bits, for `cross`, `encoder` and `decoder`, and for their patterns.

        For example, `entropy_cross`, `entropy_cross_global`, and `below_uniform_cross`, the difference to uniform
        attention.
        """
        columns: dict[str, list[float]] = {f"entropy_{kind}": [] for kind in SLOTS}
        for kind, module, (total, even, count) in zip(self.kinds, self.modules, self.sums, strict=True):
            if kind in SLOTS:
                for name in (kind, f"{kind}_{module.pattern}"):
                    columns.setdefault(f"entropy_{name}", []).append(total / count)
                    columns.setdefault(f"below_uniform_{name}", []).append((even - total) / count)
        return {name: fmean(values) for name, values in columns.items()}
