"""Checkpoints that survive a kill at any moment.

A checkpoint `step-N.pt` counts only with its checksum beside it, which is written last. The two newest are kept, and
the best weights that either of them refers to (`best-N.pt`).
"""

import io
import logging
import re
from pathlib import Path
from typing import Any

import torch

from docmt.files import atomic_path, atomic_writer, sha256_file

log = logging.getLogger(__name__)

N_KEPT = 2


class CheckpointFolder:
    """The checkpoints of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after update `step`; `state["best_step"]` says which best weights belong to it."""
        self._write(f"step-{step:09d}", state)
        self._prune()

    def save_best(self, step: int, weights: dict[str, Any]) -> None:
        """Write the weights after update `step` as the best so far."""
        self._write(f"best-{step:09d}", weights)

    def load_newest(self, *, max_step: int | None = None) -> dict[str, Any] | None:
        """The newest valid checkpoint not past `max_step`; damaged ones are named in the log and passed over."""
        for step in reversed(self._steps("step")):
            if max_step is not None and step > max_step:
                continue
            state = self._read(f"step-{step:09d}")
            if state is None:
                continue
            if state["best_step"] is None or self._is_valid(f"best-{state['best_step']:09d}"):
                return state
            log.warning("%s: its best weights are missing or damaged, passed over", self._path(f"step-{step:09d}"))
        return None

    def load_best(self, step: int) -> dict[str, Any]:
        """The best weights of update `step`."""
        weights = self._read(f"best-{step:09d}")
        if weights is None:
            raise RuntimeError(f"{self._path(f'best-{step:09d}')} vanished during training")
        return weights

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.pt"

    def _write(self, name: str, content: dict[str, Any]) -> None:
        path = self._path(name)
        with atomic_path(path) as temporary:
            torch.save(content, temporary)
            checksum = sha256_file(temporary)
        with atomic_writer(path.with_suffix(".sha256")) as file:
            file.write(checksum + "\n")

    def _is_valid(self, name: str) -> bool:
        path = self._path(name)
        try:
            return path.with_suffix(".sha256").read_text().strip() == sha256_file(path)
        except OSError:
            return False

    def _read(self, name: str) -> dict[str, Any] | None:
        if not self._is_valid(name):
            log.warning("%s is damaged or unfinished, passed over", self._path(name))
            return None
        return torch.load(io.BytesIO(self._path(name).read_bytes()), map_location="cpu", weights_only=True)

    def _steps(self, kind: str) -> list[int]:
        names = (re.fullmatch(rf"{kind}-(\d+)\.pt", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def _prune(self) -> None:
        kept = self._steps("step")[-N_KEPT:]
        for step in self._steps("step")[:-N_KEPT]:
            self._remove(f"step-{step:09d}")
        # Best weights newer than the second newest checkpoint may belong to it; older ones only when it says so.
        states = [torch.load(self._path(f"step-{s:09d}"), weights_only=True, mmap=True) for s in kept]
        needed = {state["best_step"] for state in states}
        for step in self._steps("best"):
            if step not in needed and step < kept[-1]:
                self._remove(f"best-{step:09d}")

    def _remove(self, name: str) -> None:
        self._path(name).with_suffix(".sha256").unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)
