"""A CUDA graph's semantics on a CPU: operators are recorded once, and then repeated on the same tensors."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "repeat_interleave.Tensor")
"""Operators with results that the CPU reads, or with device-dependent sizes. CUDA graphs cannot contain them."""


def storages(nest: Any) -> Iterator[int]:
    for leaf in tree_leaves(nest):
        if isinstance(leaf, Tensor):
            yield leaf.untyped_storage()._cdata


class Recorded(TorchDispatchMode):
    """All operators that are called inside the block, below autograd, with their arguments and results."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple, dict, Any]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = function(*args, **(kwargs or {}))
        assert not any(name in str(function) for name in WAITING), f"{function} waits for the device"
        self.calls.append((function, args, kwargs or {}, results))
        return results

    @torch.no_grad()
    def repeat(self) -> None:
        """Compute all operators again, from the current content of their argument tensors."""
        for function, args, kwargs, results in self.calls:
            inputs = {*storages((args, kwargs))}
            if function._schema.is_mutable:
                function(*args, **kwargs)
            elif not {*storages(results)} <= inputs:  # otherwise views, which see the change
                pairs = zip(tree_leaves(results), tree_leaves(function(*args, **kwargs)), strict=True)
                for old, new in pairs:
                    if isinstance(old, Tensor):
                        assert old.shape == new.shape, f"{function}: the shape of its result depends on its input"
                        old.copy_(new)


class OperatorRecorder:
    """Replaces `graphs.CudaRecorder`. `n_repeated` counts repetitions of all recordings."""

    n_repeated = 0

    def run(self, function: Callable[[], Any]) -> Any:
        return function()

    def record(self, function: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
        recorded = Recorded()
        with recorded:
            results = function()
        is_computed = True  # unlike a CUDA graph, which computes nothing while it is recorded

        def repeat() -> None:
            nonlocal is_computed
            if not is_computed:
                recorded.repeat()
                OperatorRecorder.n_repeated += 1
            is_computed = False

        return results, repeat
