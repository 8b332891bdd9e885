"""Attention entropies, the diagnosis of G-Transformer §3.2."""

from collections.abc import Callable
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import nn

from docmt.models.layers import Groupings, MultiHeadAttention
from docmt.models.ragged import attention_entropy
from docmt.models.transformer import Transformer

KINDS = ("cross", "encoder", "decoder")


class EntropyMeter:
    """Measures every attention of a model while it is used, as a context manager that can be entered repeatedly.

    The entropy in bits of each query's weights, averaged over heads first as the paper's code does, then over queries,
    then over the attention modules of a kind (a fused attention counts as two; RST attention over what it sees).
    """

    def __init__(self, model: Transformer) -> None:
        attentions = {name: m for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
        self.modules = list(attentions.values())
        self.kinds = ["cross" if "cross_attention" in name else name.split(".")[0] for name in attentions]
        self.sums = [[0.0, 0.0] for _ in attentions]

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
    def _measure(totals: list[float], module: nn.Module, arguments: tuple[Any, Any, Groupings]) -> None:
        query_ND, memory_MD, groupings = arguments
        query_NHK, key_MHK, _ = module.project(query_ND, memory_MD)
        entropy_N = attention_entropy(query_NHK, key_MHK, groupings(module.pattern))
        totals[0] += float(entropy_N.sum())
        totals[1] += len(entropy_N)

    def add_up(self, add_up: Callable[..., list[float]]) -> None:
        """Take in what other processes measured; `add_up` sums each of its arguments over all of them."""
        flat = add_up(*(value for totals in self.sums for value in totals))
        self.sums = [flat[i : i + 2] for i in range(0, len(flat), 2)]

    def entropies(self) -> dict[str, float]:
        """Bits, for `cross`, `encoder` and `decoder`."""
        measured = list(zip(self.kinds, self.sums, strict=True))
        return {kind: fmean(total / count for k, (total, count) in measured if k == kind) for kind in KINDS}
