"""Batches within a token budget."""

import pytest

from docmt.batching import fill_batches, take_shard


def fill(costs, budget, **options):
    return list(fill_batches(costs, budget, cost=lambda cost: cost, **options))


def test_batches_are_consecutive_and_within_the_budget():
    assert fill([3, 4, 2, 6, 1], 7) == [[3, 4], [2], [6, 1]]


def test_item_over_the_budget_forms_a_batch_alone():
    assert fill([1, 9, 1], 5) == [[1], [9], [1]]


def test_padded_batches_count_the_largest_cost():
    assert fill([1, 1, 4, 1], 8, padded=True) == [[1, 1], [4, 1]]
    assert fill([1, 1, 4, 1], 7, padded=False) == [[1, 1, 4, 1]]


def test_nothing_gives_no_batch():
    assert fill([], 5) == []


@pytest.mark.parametrize("n_shards", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("lengths", [[], [4], [1, 30, 1], [5, 1, 9, 2, 7, 4]])
def test_shards_cover_all_items_in_order(lengths, n_shards):
    items = list(enumerate(lengths))
    shards = [list(take_shard(items, lengths, shard=shard, n_shards=n_shards)) for shard in range(1, n_shards + 1)]
    assert [item for shard in shards for item in shard] == items
    largest = max((sum(length for _, length in shard) for shard in shards), default=0)
    assert largest <= sum(lengths) / n_shards + max(lengths, default=0)
