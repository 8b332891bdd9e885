"""Checkpoints written in the background, from a copy of the state."""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

log = logging.getLogger(__name__)


def snapshot(state: Any) -> Any:
    """Copy dicts, lists and tensors, these to the CPU: what training changes later leaves the copy alone."""
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return type(state)({key: snapshot(value) for key, value in state.items()})
    if isinstance(state, list):
        return [snapshot(value) for value in state]
    return state


class BackgroundWriter:
    """Runs one job at a time in a thread, in the order given.

    What a job raises is raised by the next call of any method, once.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self._job: Future[Any] | None = None

    def submit(self, job: Callable[..., Any], *arguments: Any) -> None:
        """Wait for the job before, so that no more than one copy of the state is in memory, and start this one."""
        self.wait()
        self._job = self._pool.submit(job, *arguments)

    def check(self) -> None:
        """Raise what a job that has ended raised."""
        if self._job is not None and self._job.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the job has ended."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def close(self) -> None:
        """Wait until the job has ended, and end the thread. A failure is logged: another error may be on its way."""
        self._pool.shutdown()
        try:
            self.wait()
        except Exception as error:
            log.error("%s", error)
