"""Chunks of work in several processes are in order, lazy, and equal to one process."""

import itertools
import os
import subprocess
import sys
import time
from functools import partial

import pytest

from docmt.errors import UserError
from docmt.processes import CHUNKS_PER_PROCESS, LostProcess, map_apart, map_chunks


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
def test_endless_stream_is_read_lazily(jobs):
    read = itertools.count()
    results = map_chunks(total, read, size=10, jobs=jobs)
    assert list(itertools.islice(results, 3)) == [45, 145, 245]
    assert next(read) <= 10 * (3 + CHUNKS_PER_PROCESS * jobs)
    results.close() if jobs > 1 else None


def test_a_single_chunk_starts_no_process():
    assert list(map_chunks(lambda chunk: len(chunk), "abc", size=3, jobs=8)) == [3]  # a lambda cannot be pickled


@pytest.mark.parametrize("jobs", [1, 2])
def test_process_error_reaches_the_caller(jobs):
    with pytest.raises(UserError, match="a bad item"):
        list(map_chunks(total, [1, 2, 3, -1, 5], size=2, jobs=jobs))


def test_jobs_below_one_are_refused_at_once():
    with pytest.raises(UserError, match="--jobs 0: must be at least 1"):
        map_chunks(total, [1], size=1, jobs=0)


def perform():
    """A function of an action and a number. A sleeping process has started another one."""

    def run(item):
        action, number = item
        if action == "die":
            os._exit(number)
        if action == "sleep":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            number.write_text(f"{os.getpid()} {child.pid}")
            time.sleep(600)
        return action, os.getpid()

    return run


def test_dying_process_loses_one_item():
    items = [("add", 1), ("die", 3), ("spend", 2), ("add", 4), ("add", 5)]
    results = dict(map_apart(perform, items, jobs=1, is_spent=lambda result: result[0] == "spend"))
    assert list(results) == items
    assert results["die", 3] == LostProcess(3)
    actions, processes = zip(*(results[item] for item in items if item[0] != "die"), strict=True)
    assert actions == ("add", "spend", "add", "add")
    assert [processes[0] == processes[1], processes[1] == processes[2], processes[2] == processes[3]] == [
        False,
        False,
        True,
    ]


def test_no_item_starts_no_process():
    assert list(map_apart(partial(perform), [], jobs=3)) == []


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_interrupt_ends_all_processes(tmp_path):
    file = tmp_path / "processes"
    results = map_apart(perform, [("sleep", file), ("add", 1)], jobs=2)
    assert next(results)[1][0] == "add"
    while not file.exists() or not file.read_text():
        time.sleep(0.05)
    processes = file.read_text().split()
    assert len(processes) == 2
    assert all(map(is_running, processes))
    results.close()  # what an exception does, too
    deadline = time.monotonic() + 10
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, processes))
