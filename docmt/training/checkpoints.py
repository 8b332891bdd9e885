"""Checkpoints that survive a kill at any moment.

A checkpoint `step-N.pt` is valid only with `step-N.json`, written after it. This file contains the checksum and the
updates with the best weights (`best-N.pt`), both for this training and for a longer one. The two newest checkpoints of
an unfinished training are kept, with their best weights.
"""

import hashlib
import io
import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from docmt.checksums import sha256_file
from docmt.errors import UserError, is_out_of_memory
from docmt.files import UNFINISHED, atomic_path, write_json
from docmt.training.progress import TrainingState
from docmt.training.settings import N_CHECKPOINTS

log = logging.getLogger(__name__)


class CheckpointFolder:
    """Checkpoints of one training.

    `layout` is the layout of its weights and optimizer (`layout_of`). A checkpoint with another layout is treated as
    damaged. None: any content.
    """

    def __init__(self, folder: Path, layout: dict[str, Any] | None = None) -> None:
        self.folder, self.layout = Path(folder), layout
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after update `step`. `state["best_steps"]` names the corresponding best weights."""
        self._write(f"step-{step:09d}", state, best_steps=state["best_steps"])
        self.prune(step)

    def save_best(self, step: int, weights: dict[str, Any]) -> None:
        self._write(f"best-{step:09d}", weights)

    def load_newest(self, *, max_step: int | None = None) -> dict[str, Any] | None:
        """Load the newest valid checkpoint up to `max_step`. Damaged ones are logged and skipped.

        Best weights are part of a checkpoint. If all valid checkpoints have lost theirs, the newest one is returned
        with the best weights that are left.
        """
        newest = None
        for step in reversed(self._steps("step")):
            if max_step is not None and step > max_step:
                continue
            name = f"step-{step:09d}"
            state = self._read(name)
            if state is None:
                log.warning("%s: skipped, because it is damaged or incomplete", self._path(name))
                continue
            lost = [best for best in {*state["best_steps"]} - {None} if self._read(f"best-{best:09d}") is None]
            if lost == [step]:
                self.save_best(step, model_weights(state))
                log.warning("%s: restored from %s", self._path(f"best-{step:09d}"), self._path(name))
            elif lost:
                log.warning("%s: skipped, because its best weights are missing or damaged", self._path(name))
                newest = newest or state
                continue
            return state
        return newest and self._with_remaining_best(newest)

    def _with_remaining_best(self, content: dict[str, Any]) -> dict[str, Any]:
        """Return a checkpoint with the best weights that are left. Without any, the training validates again."""
        state = content["state"]
        losses = {row["step"]: row["dev_loss"] for row in state["history"] if "dev_loss" in row}
        left = [step for step in losses if self._read(f"best-{step:09d}") is not None]
        best = min(left, key=losses.__getitem__, default=None)
        values: dict[str, Any] = {"best_step": best, "best_loss": None if best is None else losses[best]}
        if best is None:
            values |= {"validations_without_gain": 0, "validated_step": -1}
        for validated in filter(None, (state, state["before_end"])):
            validated |= values
        remedy = "the next validation"
        if best is not None:
            remedy = f"update {best}"
        log.warning(
            "%s: all checkpoints have lost their best weights: resuming after update %d, with the best weights of %s",
            self.folder,
            state["step"],
            remedy,
        )
        return content | {"best_steps": [best, best]}

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
            note = json.loads(_read_bytes(self._path(name).with_suffix(".json")))
        except (ValueError, RecursionError):
            return {}
        if isinstance(note, dict):
            return note
        return {}

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return the content, or None if it is missing, damaged or from another training."""
        checksum = self._note(name).get("sha256")
        data = _read_bytes(self._path(name))
        if hashlib.sha256(data).hexdigest() != checksum:
            return None
        try:
            # `weights_only` refuses pickled code.
            content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
            if self._fits(name, content):
                return content
            return None
        except Exception as error:  # a file with another content can raise anything
            if is_out_of_memory(error):
                raise UserError(f"{self._path(name)}: cannot be read (out of memory): run again with more") from None
            return None

    def _fits(self, name: str, content: Any) -> bool:
        """True if the content is from this training."""
        kind, _, step = name.partition("-")
        if self.layout is None:
            return isinstance(content, dict)
        if kind == "best":
            return _shapes_of(content) == model_weights(self.layout)
        is_of_step = TrainingState.from_dict(content["state"]).step == int(step)
        return is_of_step and isinstance(content["best_steps"], list) and layout_of(content) == self.layout

    def _steps(self, kind: str) -> list[int]:
        names = (re.fullmatch(rf"{kind}-(\d+)\.pt", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def prune(self, step: int, n_kept: int = N_CHECKPOINTS) -> None:
        """Delete old checkpoints.

        Kept are the newest ones up to `step`, later ones from a longer training, and their best weights.
        """
        steps = self._steps("step")
        n_past = sum(number <= step for number in steps)
        old = steps[: max(0, n_past - n_kept)]
        for number in old:
            self._remove(f"step-{number:09d}")
        remaining = steps[len(old) :]
        needed = {best for number in remaining for best in self._note(f"step-{number:09d}").get("best_steps", [])}
        for number in self._steps("best"):
            # The checkpoint after the best weights at `step` is on disk, unless it was deleted itself.
            if number not in needed and number <= step:
                self._remove(f"best-{number:09d}")

    def _remove(self, name: str) -> None:
        # The note first: a kill in between leaves a checkpoint that is not valid, never a note without one.
        self._path(name).with_suffix(".json").unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)


def _read_bytes(path: Path) -> bytes:
    """Return the content of a file, empty if it is missing. Raises UserError if reading fails.

    After an error of a disk or network, a checkpoint can be intact. Without it, a training would start over.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}): run the same command again, or remove it if it is damaged"
        ) from None


def remove_unfinished(folder: Path) -> None:
    """Remove checkpoints and notes that a killed training was writing. The caller must hold the lock of the folder."""
    for path in folder.iterdir():
        if path.is_dir() and UNFINISHED.fullmatch(path.name) and path.name.startswith((".step-", ".best-")):
            shutil.rmtree(path)


def layout_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shapes of a checkpoint's weights, and the sizes of its parameter groups."""
    groups = content["optimizer"]["param_groups"]
    return {"weights": _shapes_of(content["weights"]), "groups": [len(group["params"]) for group in groups]}


def _shapes_of(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in weights.items()}


def model_weights(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's weights in a checkpoint."""
    prefix = "model."
    return {name.removeprefix(prefix): value for name, value in content["weights"].items() if name.startswith(prefix)}


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
