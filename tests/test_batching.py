"""Batches within a token budget."""

from docmt.batching import fill_batches


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
