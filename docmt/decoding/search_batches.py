"""Batches of a search, as large as the device takes.

The result of a search does not depend on its batch, so the size of batches is no part of a result's settings.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import torch

from docmt.batching import fill_batches
from docmt.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

# Source tokens that a GPU searches side by side, padding included: the time of a step hardly depends on them.
GPU_BATCH_TOKENS = 98_304

logger = logging.getLogger(__name__)


def batch_budget(max_batch_tokens: int, device: str) -> int:
    """Source tokens of a batch on a device: on a GPU at least `GPU_BATCH_TOKENS`, memory permitting."""
    return max(max_batch_tokens, GPU_BATCH_TOKENS) if device == "cuda" else max_batch_tokens


def run_in_batches(
    items: Sequence[Item], run: Callable[[list[Item]], Sequence[Result]], budget: int, *, cost: Callable[[Item], int]
) -> Iterator[list[tuple[Item, Result]]]:
    """Run a function on batches of items and yield, for each batch, its items with their results.

    When a batch does not fit into the memory of a GPU, it is tried again in halves, and so are all that follow.

    Args:
        items: from the most to the least costly.
        run: gives a result for every item of a batch.
        budget: largest cost of a batch, whose items are padded to the largest.
        cost: cost of an item.
    """
    done = 0
    while done < len(items):
        batch = next(fill_batches(islice(items, done, None), budget, cost=cost, padded=True))
        try:
            results = run(batch)
        except torch.OutOfMemoryError:
            results = None
        if results is None:
            # Outside of the handler, because the error holds on to the tensors of the search.
            torch.cuda.empty_cache()
            if len(batch) == 1:
                raise UserError(
                    f"an instance of {cost(batch[0])} source tokens does not fit into the memory of the GPU: lower "
                    "max_tokens of its instances or beam_size, or use --device cpu"
                )
            budget = cost(batch[0]) * len(batch) // 2
            logger.warning("out of memory with %d instances: continuing with %d tokens a batch", len(batch), budget)
            continue
        done += len(batch)
        yield list(zip(batch, results, strict=True))
