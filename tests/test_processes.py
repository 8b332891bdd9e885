"""Chunks of work in several processes: in order, lazily, and equal to one process."""

import itertools

import pytest

from docmt.errors import UserError
from docmt.processes import CHUNKS_PER_PROCESS, map_chunks


def total(chunk):
    if -1 in chunk:
        raise UserError("a bad item")
    return sum(chunk)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 25])
def test_processes_give_the_results_of_one_in_order(n):
    expected = [sum(range(n)[start : start + 3]) for start in range(0, n, 3)]
    for jobs in (1, 2):
        assert list(map_chunks(total, iter(range(n)), size=3, jobs=jobs)) == expected


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_endless_stream_is_read_only_as_far_as_needed(jobs):
    read = itertools.count()
    results = map_chunks(total, read, size=10, jobs=jobs)
    assert list(itertools.islice(results, 3)) == [45, 145, 245]
    assert next(read) <= 10 * (3 + CHUNKS_PER_PROCESS * jobs)
    results.close() if jobs > 1 else None


def test_a_single_chunk_starts_no_process():
    assert list(map_chunks(lambda chunk: len(chunk), "abc", size=3, jobs=8)) == [3]  # a lambda cannot be pickled


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_process_is_the_error_of_the_caller(jobs):
    with pytest.raises(UserError, match="a bad item"):
        list(map_chunks(total, [1, 2, 3, -1, 5], size=2, jobs=jobs))


def test_jobs_below_one_are_refused_at_once():
    with pytest.raises(UserError, match="--jobs 0: must be at least 1"):
        map_chunks(total, [1], size=1, jobs=0)
