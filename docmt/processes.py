"""Work on many items in several processes, in order, without holding all items in memory.

`concurrent.futures` starts the processes, but its own `map` reads all items at once before Python 3.14; joblib would be
one more dependency, and its processes outlive the call.
"""

import ctypes
import gc
import itertools
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from docmt.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

# One that is worked on, one that waits, and one that is done and waits for those before it.
CHUNKS_PER_PROCESS = 3
PR_SET_PDEATHSIG = 1  # option of `prctl`: the signal that a process gets when its parent ends

_function: Callable[[Any], Any]  # of this process


def map_chunks(
    function: Callable[[list[Item]], Result], items: Iterable[Item], *, size: int, jobs: int
) -> Iterator[Result]:
    """Apply a function to consecutive chunks of `size` items; yields the results in order.

    Items are read as they are needed: memory does not grow with their number. With one job, or a single chunk, no
    process is started; with more, function, items and results must be picklable. The results do not depend on the
    number of jobs.
    """
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: must be at least 1")
    source = iter(items)
    chunks = iter(lambda: list(itertools.islice(source, size)), [])
    # Two chunks tell whether processes are worth their start.
    head = list(itertools.islice(chunks, 2))
    chunks = itertools.chain(head, chunks)
    if jobs == 1 or len(head) < 2:
        return map(function, chunks)
    del head
    return _map_in_processes(function, chunks, jobs)


def _map_in_processes(
    function: Callable[[list[Item]], Result], chunks: Iterable[list[Item]], jobs: int
) -> Iterator[Result]:
    pool = ProcessPoolExecutor(
        jobs,
        # A forked process could inherit a lock that a thread of torch or of a progress bar holds.
        mp_context=multiprocessing.get_context("spawn"),
        # Once per process: a function may be bound to megabytes of a model, which every chunk would carry along.
        initializer=_set_up,
        initargs=(function, gc.get_threshold()),
    )
    try:
        pending: deque[Future[Result]] = deque()
        for chunk in chunks:
            pending.append(pool.submit(_apply, chunk))
            if len(pending) == CHUNKS_PER_PROCESS * jobs:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)  # what waits is not worked on after an error or a signal


def _set_up(function: Callable[[Any], Any], gc_threshold: tuple[int, int, int]) -> None:
    global _function
    _function = function
    end_with_parent()  # it would wait for chunks for ever
    gc.set_threshold(*gc_threshold)  # by default, searches for garbage take 8 % of the time of a parser


def end_with_parent() -> None:
    """Have Linux kill this process when its parent ends, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _apply(chunk: list[Any]) -> Any:
    return _function(chunk)
