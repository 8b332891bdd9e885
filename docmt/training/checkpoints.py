"""Checkpoints that survive a kill at any moment.

A checkpoint `step-N.pt` is valid only with `step-N.json`, written after it. This file contains the checksum and the
updates with the best weights (`best-N.pt`), both for this training and for a longer one. The two newest checkpoints are
kept, with their best weights.
"""

import io
import logging
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from docmt.errors import UserError
from docmt.files import atomic_path, read_json, sha256_file, write_json

log = logging.getLogger(__name__)

N_KEPT = 2


class CheckpointFolder:
    """Checkpoints of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after update `step`. `state["best_steps"]` names the corresponding best weights."""
        self._write(f"step-{step:09d}", state, best_steps=state["best_steps"])
        self._prune(step)

    def save_best(self, step: int, weights: dict[str, Any]) -> None:
        self._write(f"best-{step:09d}", weights)

    def load_newest(self, *, max_step: int | None = None) -> dict[str, Any] | None:
        """Load the newest valid checkpoint up to `max_step`. Damaged ones are logged and skipped."""
        for step in reversed(self._steps("step")):
            if max_step is not None and step > max_step:
                continue
            name = f"step-{step:09d}"
            state = self._read(name)
            if state is None:
                continue
            # Its best weights are part of a checkpoint: without them, a resumed training could not write its model.
            if all(best is None or self._is_valid(f"best-{best:09d}") for best in {*state["best_steps"]}):
                return state
            log.warning("%s: skipped, because its best weights are missing or damaged", self._path(name))
        return None

    def load(self, step: int) -> dict[str, Any]:
        """Load a checkpoint that another process has found to be valid."""
        message = "cannot be read by this process: checkpoints must be on a shared file system"
        return self._load(f"step-{step:09d}", message)

    def load_best(self, step: int) -> dict[str, Any]:
        message = "the best weights are damaged or missing: run the same command again to resume from the "
        return self._load(f"best-{step:09d}", f"{message}newest valid checkpoint")

    def _load(self, name: str, message: str) -> dict[str, Any]:
        content = self._read(name)
        if content is None:
            raise UserError(f"{self._path(name)}: {message}")
        return content

    def save_hint(self, name: str, devices: str, value: int | str) -> None:
        """Save a value for later sessions on the same kind of devices, such as `micro_batch_tokens` on `2 × cuda`."""
        path = self._path(name).with_suffix(".json")
        write_json(path, {**self._note(name), devices: value}, checksum=False)

    def load_hint(self, name: str, devices: str) -> Any:
        """Return the value saved for these devices, or None."""
        return self._note(name).get(devices)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.pt"

    def _write(self, name: str, content: dict[str, Any], **note: Any) -> None:
        path = self._path(name)
        with atomic_path(path, checksum=False) as temporary:
            torch.save(content, temporary)
            checksum = sha256_file(temporary)
        try:
            # After the checkpoint: a kill in between leaves one without a note, which is not used.
            write_json(path.with_suffix(".json"), {"sha256": checksum, **note}, checksum=False)
        except UserError:
            path.unlink()  # invalid without its note, it would only fill a full disk
            raise

    def _note(self, name: str) -> dict[str, Any]:
        try:
            note = read_json(self._path(name).with_suffix(".json"))
        except UserError:
            return {}
        return note if isinstance(note, dict) else {}

    def _is_valid(self, name: str) -> bool:
        try:
            return self._note(name).get("sha256") == sha256_file(self._path(name))
        except OSError:
            return False

    def _read(self, name: str) -> dict[str, Any] | None:
        if not self._is_valid(name):
            log.warning("%s: skipped, because it is damaged or incomplete", self._path(name))
            return None
        # `weights_only` refuses pickled code.
        return torch.load(io.BytesIO(self._path(name).read_bytes()), map_location="cpu", weights_only=True)

    def _steps(self, kind: str) -> list[int]:
        names = (re.fullmatch(rf"{kind}-(\d+)\.pt", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def _prune(self, step: int) -> None:
        """Delete old checkpoints.

        Kept are the two newest ones up to `step`, later ones from a longer training, and their best weights.
        """
        steps = self._steps("step")
        past = [number for number in steps if number <= step]
        for number in past[:-N_KEPT]:
            self._remove(f"step-{number:09d}")
        kept = [number for number in steps if number not in past[:-N_KEPT]]
        needed = {best for number in kept for best in self._note(f"step-{number:09d}").get("best_steps", [])}
        for number in self._steps("best"):
            if number not in needed and number < step:
                self._remove(f"best-{number:09d}")

    def _remove(self, name: str) -> None:
        # The note first: a kill in between leaves a checkpoint that is not valid, never a note without one.
        self._path(name).with_suffix(".json").unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)


def snapshot(state: Any) -> Any:
    """Copy nested dicts, lists and tensors, with tensors on the CPU, so that later updates do not change the copy."""
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return type(state)({key: snapshot(value) for key, value in state.items()})
    if isinstance(state, list):
        return [snapshot(value) for value in state]
    return state


class BackgroundWriter:
    """Runs one job at a time in a thread, in order. The next method call raises a job's error, once."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoints")
        self._job: Future[Any] | None = None

    def submit(self, job: Callable[..., Any], *arguments: Any) -> None:
        self.wait()  # at most one copy of the state is in memory
        self._job = self._pool.submit(job, *arguments)

    def check(self) -> None:
        """Raise the error of a completed job."""
        if self._job is not None and self._job.done():
            self.wait()

    def wait(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def close(self) -> None:
        self._pool.shutdown()
        try:
            self.wait()
        except Exception as error:  # only logged: another error may be on its way
            log.error("%s", error)
