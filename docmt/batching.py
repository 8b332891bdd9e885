"""Batches by token budget, for all models in docmt."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def fill_batches(
    items: Iterable[T], budget: int, *, cost: Callable[[T], int], padded: bool = False
) -> Iterator[list[T]]:
    """Split items into consecutive batches within a budget. A larger item forms its own batch.

    Args:
        items: items in batch order, read lazily.
        budget: maximum total cost of a batch.
        cost: function that returns the cost of an item, for example its token count.
        padded: charge every item the largest cost in its batch, as padding does.
    """
    batch: list[T] = []
    total = largest = 0
    for item in items:
        size = cost(item)
        # Both include this item: if it does not fit, the batch is complete without it.
        total, largest = total + size, max(largest, size)
        if batch and (largest * (len(batch) + 1) if padded else total) > budget:
            yield batch
            batch, total, largest = [], size, size
        batch.append(item)
    if batch:
        yield batch
