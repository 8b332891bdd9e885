"""Trainings on several devices of this machine, as users start them, against one device."""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import torch

from docmt.bench.rows import Check
from docmt.bench.speed import LONGEST, SENTENCES, SHORTEST, vocabulary_size
from docmt.gpu_locks import VISIBLE, claim_more
from docmt.models.settings import ModelSettings
from docmt.scenarios.comparisons import COUNTS, N_SYMBOLS
from docmt.scenarios.outcomes import Outcome, judge, relative_difference
from docmt.scenarios.workload import QUIET, RECIPE, History, Recipe, Workload, model_settings, read_history

SECONDS = 240
UPDATES = 12


class SeveralDevices:
    """Checks of `docmt train --devices` with all devices; `names` are their names in `CUDA_VISIBLE_DEVICES`."""

    def __init__(self, device: torch.device, names: list[str], *, size: str, tokens: int) -> None:
        self.names, self.n, self.is_cuda = names, len(names), device.type == "cuda"
        self.size, self.tokens = size, tokens

    def checks(self) -> dict[str, Check]:
        """None with one device."""
        found = {"several/equality": self.equality, "several/scaling": self.scaling} if self.n > 1 else {}
        return {name: partial(self._alone, check) for name, check in found.items()}

    def _alone(self, check: Check) -> Outcome:
        if self.is_cuda and not claim_more(self.names):
            return Outcome("other jobs of docmt use a GPU", "not run")
        return check()

    def equality(self) -> Outcome:
        """The history of a training on all devices is that on one (on GPUs, gradients are exchanged by NCCL)."""
        with tempfile.TemporaryDirectory() as name:
            workload = Workload(Path(name), COUNTS * self.n, shortest=0, longest=8, n_symbols=N_SYMBOLS)
            recipe = {"max_batch_tokens": 60, "accumulation_steps": self.n}
            one, all_ = (self._train(workload, model_settings("g_transformer"), n, recipe) for n in (1, self.n))
        columns = ("train_loss", "gradient_norm", "dev_loss")
        numbers = {column: relative_difference(all_[column], one[column]) for column in columns}
        return judge(numbers, dict.fromkeys(columns, 1e-3), note=f"{self.n} devices against 1")

    def scaling(self) -> Outcome:
        """Updates that are n times as large on n devices, uncompiled."""
        with tempfile.TemporaryDirectory() as name:
            counts = [SENTENCES] * (2 * self.n * max(1, self.tokens // 512))
            sizes = {"shortest": SHORTEST, "longest": LONGEST, "n_symbols": vocabulary_size(self.size)}
            workload, model = Workload(Path(name), counts, **sizes), model_settings("g_transformer", self.size)
            recipe = QUIET | {"max_steps": UPDATES, "log_every_steps": UPDATES // 2}
            recipe["max_batch_tokens"] = max(1024, self.tokens // 4)
            histories = [self._train(workload, model, n, recipe | {"accumulation_steps": 4 * n}) for n in (1, self.n)]
        rates = [history["tokens_per_second"][-1] for history in histories]
        numbers = {"tokens_per_second": rates[1], "scaling": rates[1] / rates[0]}
        return Outcome(f"{self.n} devices: {rates[1]:,.0f} tokens/s, {rates[1] / rates[0]:.2f} × one", numbers=numbers)

    def _train(self, workload: Workload, model: ModelSettings, n: int, recipe: Recipe) -> History:
        folder = workload.folder / f"on-{n}"
        settings = {"model": model.model_dump(), "training": RECIPE | recipe}
        options = {name: file for name, file in vars(workload.files(folder)).items() if file is not None}
        options |= {"settings": json.dumps(settings), "devices": n}
        options |= {"accelerator": "gpu" if self.is_cuda else "cpu"}
        command = [sys.executable, "-P", "-m", "docmt", "train"]  # -P: not from the current folder
        command += [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        environment = os.environ | ({VISIBLE: ",".join(self.names[:n])} if self.is_cuda else {})
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(f"docmt train --devices {n} ended with {done.returncode}: {done.stderr[-500:]}")
        return read_history(folder / "history.csv")
