"""Parallel processing of many items in order, in constant memory.

`concurrent.futures` starts the processes, but before Python 3.14, its `map` reads all items at once. joblib would be
one more dependency, and its processes outlive the call. If one of its processes dies, it gives up all items.
"""

import contextlib
import ctypes
import gc
import itertools
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from docmt.errors import UserError

Item = TypeVar("Item")
Result = TypeVar("Result")

# One in progress, one waiting, and one finished that waits for earlier chunks.
CHUNKS_PER_PROCESS = 3
SECONDS_TO_END = 10.0  # time for processes that have nothing left to do
PR_SET_PDEATHSIG = 1  # option of `prctl`: signal when the parent ends

_function: Callable[[Any], Any]  # the function that this process applies


def end_with_parent() -> None:
    """Let Linux kill this process when its parent ends, even by SIGKILL."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        parent = multiprocessing.parent_process()
        if parent is not None and os.getppid() != parent.pid:  # it ended while this process started
            os.kill(os.getpid(), signal.SIGKILL)


def map_chunks(
    function: Callable[[list[Item]], Result], items: Iterable[Item], *, size: int, jobs: int
) -> Iterator[Result]:
    """Apply a function to consecutive chunks of `size` items and yield the results in order.

    Items are read lazily, in constant memory. With one job or a single chunk, no process is started. Otherwise,
    function, items and results must be picklable. The results do not depend on `jobs`.
    """
    if jobs < 1:
        raise UserError(f"--jobs {jobs}: must be at least 1")
    source = iter(items)
    chunks = iter(lambda: list(itertools.islice(source, size)), [])
    # A single chunk is not worth the start of processes.
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
        pool.shutdown(cancel_futures=True)  # after an error or a signal, waiting chunks are dropped


def _set_up(function: Callable[[Any], Any], gc_threshold: tuple[int, int, int]) -> None:
    global _function
    _function = function
    end_with_parent()  # otherwise, it would wait for chunks for ever
    gc.set_threshold(*gc_threshold)  # by default, searches for garbage take 8 % of the time of a parser


def _apply(chunk: list[Any]) -> Any:
    return _function(chunk)


@dataclass(frozen=True)
class LostProcess:
    """A process that died. `exit_code`: as in `multiprocessing`."""

    exit_code: int | None


def map_apart(
    start: Callable[[], Callable[[Item], Result]],
    items: Iterable[Item],
    *,
    jobs: int,
    is_spent: Callable[[Result], bool] = lambda _: False,
) -> Iterator[tuple[Item, Result | LostProcess]]:
    """Yield items with their results in order of completion. A process that dies is replaced.

    The picklable function `start` is called once per process and returns the function to apply. A process whose result
    `is_spent` is replaced. After an error or a signal, all processes are killed with their children.
    """
    context = multiprocessing.get_context("spawn")  # a forked process could not use CUDA
    waiting = iter(items)
    idle: list[tuple[Connection, Any]] = []
    busy: dict[Connection, tuple[Any, Item]] = {}
    try:
        while True:
            for item in itertools.islice(waiting, jobs - len(busy)):
                if not idle:
                    pipe, end = context.Pipe()
                    process = context.Process(target=_serve, args=(end, start))
                    process.start()
                    end.close()  # so that the pipe ends when the process dies
                    idle.append((pipe, process))
                pipe, process = idle.pop()
                busy[pipe] = process, item
                with contextlib.suppress(BrokenPipeError):  # it has died, which is handled below
                    pipe.send(item)
            if not busy:
                return
            ready = wait(list(busy))
            for pipe in [pipe for pipe in busy if pipe in ready]:
                process, item = busy[pipe]
                try:
                    result = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    result = LostProcess(process.exitcode)
                del busy[pipe]
                if isinstance(result, LostProcess) or is_spent(result):
                    _kill(process)
                else:
                    idle.append((pipe, process))
                yield item, result
    finally:
        for pipe, _ in idle:
            pipe.close()
        for process, _ in busy.values():
            _kill(process)
        for _, process in idle:
            process.join(SECONDS_TO_END)
            if process.exitcode is None:
                _kill(process)


def _kill(process: Any) -> None:
    """Kill a process of `map_apart` with its children."""
    with contextlib.suppress(ProcessLookupError):  # it has ended, or has not become a group yet
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def _serve(pipe: Connection, start: Callable[[], Callable[[Any], Any]]) -> None:
    """Receive items through a pipe and send their results, until the pipe ends."""
    os.setsid()  # a new process group: it can be killed with its children, and ignores the signals of the terminal
    end_with_parent()
    function = start()
    with contextlib.suppress(EOFError):
        while True:
            pipe.send(function(pipe.recv()))
