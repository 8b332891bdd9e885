"""Batches by a budget of tokens, for every model in docmt."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def fill_batches(
    items: Iterable[T], budget: int, *, cost: Callable[[T], int], padded: bool = False
) -> Iterator[list[T]]:
    """Split items into consecutive batches within a budget; an item that exceeds it forms a batch by itself.

    Args:
        items: in batch order; read lazily.
        budget: maximum total cost of a batch.
        cost: of an item, such as its number of tokens.
        padded: charge every item the largest cost in its batch, as padding does.
    """
    batch: list[T] = []
    total = largest = 0
    for item in items:
        size = cost(item)
        # With this item included: the batch before it is given on if the item does not fit.
        total, largest = total + size, max(largest, size)
        if batch and (largest * (len(batch) + 1) if padded else total) > budget:
            yield batch
            batch, total, largest = [], size, size
        batch.append(item)
    if batch:
        yield batch
