"""Checkpoints that survive a kill at any moment.

A checkpoint `step-N.pt` is valid only with `step-N.json`, which is written after it and contains its checksum and the
update of the corresponding best weights (`best-N.pt`). The two newest are kept, with their best weights.
"""

import io
import logging
import re
from pathlib import Path
from typing import Any

import torch

from docmt.errors import UserError
from docmt.files import atomic_path, read_json, sha256_file, write_json

log = logging.getLogger(__name__)

N_KEPT = 2


class CheckpointFolder:
    """The checkpoints of one training."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Write the state after update `step`; `state["best_step"]` names the corresponding best weights."""
        self._write(f"step-{step:09d}", state, best_step=state["best_step"])
        self._prune(step)

    def save_best(self, step: int, weights: dict[str, Any]) -> None:
        """Write the weights after update `step`, the best so far."""
        self._write(f"best-{step:09d}", weights)

    def load_newest(self, *, max_step: int | None = None) -> dict[str, Any] | None:
        """Load the newest valid checkpoint up to `max_step`; damaged ones are logged and skipped."""
        for step in reversed(self._steps("step")):
            if max_step is not None and step > max_step:
                continue
            name = f"step-{step:09d}"
            state = self._read(name)
            if state is None:
                continue
            if state["best_step"] is None or self._is_valid(f"best-{state['best_step']:09d}"):
                return state
            log.warning("%s: skipped, since its best weights are missing or damaged", self._path(name))
        return None

    def load(self, step: int) -> dict[str, Any]:
        """Load the checkpoint of update `step`, which another process has found to be valid.

        Raises UserError if it cannot be read here.
        """
        state = self._read(f"step-{step:09d}")
        if state is None:
            raise UserError(
                f"{self._path(f'step-{step:09d}')}: this process cannot read it: checkpoints must be on a file system "
                "that all nodes share"
            )
        return state

    def load_best(self, step: int) -> dict[str, Any]:
        """Load the best weights, of update `step`.

        Raises UserError if they have been damaged or removed.
        """
        weights = self._read(f"best-{step:09d}")
        if weights is None:
            raise UserError(
                f"{self._path(f'best-{step:09d}')}: these best weights have been damaged or removed: run the same "
                "command again; it resumes from the newest valid checkpoint"
            )
        return weights

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.pt"

    def _write(self, name: str, content: dict[str, Any], **facts: Any) -> None:
        path = self._path(name)
        with atomic_path(path, checksum=False) as temporary:
            torch.save(content, temporary)
            checksum = sha256_file(temporary)
        try:
            write_json(path.with_suffix(".json"), {"sha256": checksum, **facts}, checksum=False)
        except UserError:
            path.unlink()  # it is not valid alone, and would only fill a full disk
            raise

    def _note(self, name: str) -> dict[str, Any]:
        """Read the JSON file of a checkpoint; empty if there is none."""
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
            log.warning("%s: skipped, damaged or unfinished", self._path(name))
            return None
        return torch.load(io.BytesIO(self._path(name).read_bytes()), map_location="cpu", weights_only=True)

    def _steps(self, kind: str) -> list[int]:
        names = (re.fullmatch(rf"{kind}-(\d+)\.pt", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in names if match)

    def _prune(self, step: int) -> None:
        """Keep the two newest checkpoints up to `step`, later ones of a longer training, and all their best weights."""
        steps = self._steps("step")
        past = [number for number in steps if number <= step]
        for number in past[:-N_KEPT]:
            self._remove(f"step-{number:09d}")
        kept = [number for number in steps if number not in past[:-N_KEPT]]
        needed = {self._note(f"step-{number:09d}").get("best_step") for number in kept}
        for number in self._steps("best"):
            if number not in needed and number < step:
                self._remove(f"best-{number:09d}")

    def _remove(self, name: str) -> None:
        self._path(name).with_suffix(".json").unlink(missing_ok=True)
        self._path(name).unlink(missing_ok=True)
