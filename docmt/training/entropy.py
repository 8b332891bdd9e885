"""Attention entropies, the diagnosis of G-Transformer §3.2."""

from collections import defaultdict
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
        self.model = model
        self.sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def __enter__(self) -> "EntropyMeter":
        self.handles = []
        for name, module in self.model.named_modules():
            if isinstance(module, MultiHeadAttention):
                kind = "cross" if "cross_attention" in name else name.split(".")[0]
                hook = partial(self._measure, self.sums[kind][name])
                self.handles.append(module.register_forward_pre_hook(hook))
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

    def entropies(self) -> dict[str, float]:
        """Bits, for `cross`, `encoder` and `decoder`."""
        return {kind: fmean(total / count for total, count in self.sums[kind].values()) for kind in KINDS}
