"""Batches by token budget, and shards for parallel jobs, for all models in docmt."""

from collections.abc import Callable, Iterable, Iterator, Sequence
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


def take_shard(items: Iterable[T], lengths: Sequence[int], *, shard: int, n_shards: int) -> Iterator[T]:
    """Yield the items in one of `n_shards` consecutive shards with similar total lengths, numbered from 1.

    The shards in order contain all items. A shard can be empty.
    """
    done, total = 0, sum(lengths)
    for item, length in zip(items, lengths, strict=True):
        # The shard with the middle of the item.
        shard_of_item = 1 + (2 * done + length) * n_shards // (2 * total)
        done += length
        if shard_of_item == shard:
            yield item
