"""Correctness of a device: tiny models of all architectures give the results of the CPU in float32."""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from lightning_fabric import Fabric
from torch.optim.optimizer import register_optimizer_step_post_hook

from docmt.bench.rows import NOT_COMPILED, Outcome, judge, relative_difference
from docmt.bench.workload import QUIET, Workload, model_settings, random_model
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.models.attention.kernels import kernel_for
from docmt.training.compiling import compiled_loss
from docmt.training.loss import LossModule
from docmt.training.memory import largest_that_fits
from docmt.training.optimizer import build_optimizer
from docmt.training.settings import TrainingSettings

N_SYMBOLS = 32
SEARCH = DecodingSettings(beam_size=3, max_length_offset=6, precision="float32")
CPU = torch.device("cpu")
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# Relative to what is compared. Of a model this small, rounding can spoil a large share of a gradient.
LIMITS = {"float32 loss": 1e-5, "float32 gradient": 1e-4, "float32 step": 1e-2}
LIMITS |= {"bfloat16 loss": 0.01, "bfloat16 gradient": 0.25, "float16 loss": 0.002, "float16 gradient": 0.1}
LOGGED_EVERY = 4
CORRUPTED = "docmt.models.systems.cadec.CORRUPTED"
"""Share of drafts that are corrupted references; which words a model draws for the others depends on rounding."""


@contextlib.contextmanager
def _same_draws() -> Iterator[None]:
    """The drafts of CADec alike on all devices: corrupted references, drawn on the CPU."""
    draw = torch.rand

    def rand(*size: Any, device: Any = None, **options: Any) -> torch.Tensor:
        return draw(*size, **options).to(device)

    with mock.patch("torch.rand", rand), mock.patch(CORRUPTED, 1.0):
        yield


class Correctness:
    """The checks of a device, each for an architecture."""

    def __init__(self, device: torch.device, folder: Path) -> None:
        self.device = device
        counts = [3, 2, 4, 1, 2, 3, 2, 3]
        self.workload = Workload(folder, counts, shortest=0, longest=8, n_symbols=N_SYMBOLS)

    def checks(self) -> dict[str, Callable[[str], Outcome]]:
        """The checks of an architecture by name."""
        found = {"update": self.update, "training": self.training, "search": self.search, "contrast": self.contrast}
        return found | ({"no-waiting": self.no_waiting} if self.device.type == "cuda" else {})

    def update(self, preset: str) -> Outcome:
        """Forward, backward and Adam on one batch, in all precisions."""
        numbers: dict[str, float] = {}
        plain = self._step(preset, CPU, torch.float32)
        for name, dtype in ({"float32": torch.float32} | HALF).items():
            found = self._step(preset, self.device, dtype)
            numbers[f"{name} loss"] = float((found["loss"] - plain["loss"]).abs() / plain["loss"])
            numbers[f"{name} gradient"] = _distance(found["gradient"], plain["gradient"])
            if name == "float32":
                # Adam makes steps of the same size of gradients that are only noise.
                is_clear = plain["gradient"].abs() > 1e-4 * plain["gradient"].abs().max()
                numbers[f"{name} step"] = _distance(found["step"][is_clear], plain["step"][is_clear])
                continue
            draws = [numbers[f"{name} gradient"]]
            for seed in (1, 2):
                places = (self.device, dtype), (CPU, torch.float32)
                draws.append(_distance(*(self._step(preset, *place, seed)["gradient"] for place in places)))
            numbers[f"{name} gradient"] = statistics.median(draws)
        return judge(numbers, LIMITS)

    def _step(self, preset: str, device: torch.device, dtype: torch.dtype, seed: int = 0) -> dict[str, torch.Tensor]:
        """Loss, gradient and change of the weights."""
        settings = model_settings(preset)
        module = LossModule(random_model(settings, N_SYMBOLS, seed=seed), 0.1).to(device).train()
        optimizer = build_optimizer(module, set(), TrainingSettings())
        with _same_draws(), torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            loss = module(self.workload.batch(settings, device, dtype, n=3))
        loss.backward()
        used = [p for p in module.parameters() if p.grad is not None]
        before = torch.cat([p.detach().flatten() for p in used])
        gradient = _gradient(module)
        optimizer.step()
        step = torch.cat([p.detach().flatten() for p in used]) - before
        return {"loss": loss.detach().cpu(), "gradient": gradient.cpu(), "step": step.cpu()}

    def compiled(self, preset: str) -> Outcome:
        """The loss and its gradient as a compiled graph in bfloat16, against the plain computation."""
        settings = model_settings(preset)
        kernel = kernel_for(self.device, torch.bfloat16, settings.width // settings.heads)
        module = LossModule(random_model(settings, N_SYMBOLS), 0.1).to(self.device).train()
        batch, graph = self.workload.batch(settings, self.device, torch.bfloat16), compiled_loss(module, kernel)
        if graph is None:
            return NOT_COMPILED
        from torch import _dynamo
        from torch._inductor import config

        # torch counts graphs by the code that they are made of, which all presets share; few are allowed.
        _dynamo.reset()
        losses, gradients, started = [], [], time.monotonic()
        for loss_of_batch in (None, graph):
            module.compiled = loss_of_batch
            module.zero_grad()
            torch.manual_seed(0)
            with (
                mock.patch(CORRUPTED, 1.0),
                config.patch(fallback_random=True),  # pyright: ignore[reportAttributeAccessIssue] - numbers of eager mode
                torch.autocast(self.device.type, torch.bfloat16),
            ):
                loss = module(batch)
            loss.backward()
            losses.append(loss.detach())
            gradients.append(_gradient(module))
        numbers = {"loss": _distance(*losses[::-1]), "gradient": _distance(*gradients[::-1])}
        if graph.compiled is None:
            return Outcome(f"the compiler or its graph failed: {graph.failure}", "FAILED", numbers)
        limits = {"loss": 0.01, "gradient": 0.25}
        return judge(numbers, limits, note=f"{time.monotonic() - started:.0f} s to compile")

    def training(self, preset: str) -> Outcome:
        """A training through the trainer (memory probe, validation, entropies, checkpoints), and one with a break."""
        # Sums in a fixed order where torch has a kernel that does so; elsewhere, rounding may differ between runs.
        are_deterministic = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            with tempfile.TemporaryDirectory() as name, _same_draws():
                train, settings, folder = self.workload.train, model_settings(preset), Path(name)
                _, expected = train(folder / "cpu", settings, CPU)
                whole, found = train(folder / "whole", settings, self.device)
                train(folder / "broken", settings, self.device, max_steps=4)
                resumed, _ = train(folder / "broken", settings, self.device)
        finally:
            torch.use_deterministic_algorithms(are_deterministic)
        pairs = zip(resumed.model.parameters(), whole.model.parameters(), strict=True)
        numbers = {
            "history": max(relative_difference(found[column], expected[column]) for column in expected),
            "resumed": max(0.0 if torch.equal(a, b) else _distance(a, b) for a, b in pairs),
        }
        limits = {"history": 1e-3, "resumed": 1e-4 if self.device.type == "cuda" else 0.0}
        return judge(numbers, limits, note="" if numbers["resumed"] else "equal bit for bit")

    def no_waiting(self, preset: str) -> Outcome:
        """A training in half precision: near one in float32, and the CPU waits only in updates that are logged."""
        updates: list[int] = []

        def note(*_: object) -> None:
            updates.append(len(updates) + 1)
            is_quiet = len(updates) > 1 and len(updates) % LOGGED_EVERY
            torch.cuda.set_sync_debug_mode("error" if is_quiet else "default")

        hook = register_optimizer_step_post_hook(note)
        recipe = QUIET | {"max_steps": 2 * LOGGED_EVERY, "log_every_steps": LOGGED_EVERY}
        try:
            with tempfile.TemporaryDirectory() as folder:
                settings = model_settings(preset)
                _, found = self.workload.train(Path(folder, "device"), settings, self.device, **recipe)
                hook.remove()
                recipe["precision"] = "float32"
                _, expected = self.workload.train(Path(folder, "cpu"), settings, CPU, **recipe)
        finally:
            hook.remove()
            torch.cuda.set_sync_debug_mode("default")
        numbers = {"dev_loss": relative_difference(found["dev_loss"], expected["dev_loss"])}
        quiet = sum(n > 1 and n % LOGGED_EVERY > 0 for n in updates)
        return judge(numbers, {"dev_loss": 0.05}, note=f"{quiet} updates without waiting")

    def search(self, preset: str) -> Outcome:
        """Beam search; in float32, hypotheses may differ only where their scores do not."""
        trained = self.workload.trained(model_settings(preset))
        sources = self.workload.sources(trained.model.settings)

        def find(device: torch.device, precision: str) -> tuple[list[list[list[int]]], list[float]]:
            settings = SEARCH.model_copy(update={"precision": precision})
            found = dict(Translator(trained, settings, device=device.type).translate_sources(sources))
            hypotheses = [found[n] for n in range(len(sources))]
            return [each.sentences for each in hypotheses], [each.score for each in hypotheses]

        expected, scores = find(CPU, "float32")
        found, device_scores = find(self.device, "float32")
        half_scores = find(self.device, "auto")[1]
        numbers = {
            "different hypotheses": sum(a != b for a, b in zip(found, expected, strict=True)),
            "scores": max(abs(a - b) for a, b in zip(device_scores, scores, strict=True)),
        }
        # Rounding can lead a search of random weights elsewhere, on a CPU, too; a wrong kernel does so in most.
        changes = [abs(a - b) for a, b in zip(half_scores, scores, strict=True)]
        numbers["median score in half precision"] = statistics.median(changes)
        note = f"{numbers['different hypotheses']} of {len(sources)} hypotheses differ"
        return judge(numbers, {"scores": 1e-4, "median score in half precision": 0.1}, note=note)

    def contrast(self, preset: str) -> Outcome:
        """Log probabilities of given translations."""
        trained = self.workload.trained(model_settings(preset))
        src = ["a b c d e", "f b g c h"]
        candidates = [Candidate(src, tgt) for tgt in (["i j k", "l j m n"], ["i j", "o p"])]

        def score(device: torch.device, precision: str) -> list[float]:
            settings = SEARCH.model_copy(update={"precision": precision})
            return TargetScorer(trained, settings, device=device.type).score(candidates)

        expected = score(CPU, "float32")
        numbers = {
            "float32": relative_difference(score(self.device, "float32"), expected),
            "half precision": relative_difference(score(self.device, "auto"), expected),
        }
        return judge(numbers, {"float32": 1e-4, "half precision": 0.02})

    def probe(self) -> Outcome:
        """A training after a memory probe that ran out of memory in a backward pass, against one without a probe."""
        recipe = {"max_batch_tokens": 30, "accumulation_steps": 4, "log_every_steps": 1, "max_steps": 3}
        is_too_large, failures, backward = [False], [], Fabric.backward

        def fail(self: Fabric, *arguments: Any, **options: Any) -> None:
            backward(self, *arguments, **options)
            if is_too_large[0]:
                failures.append(1)
                raise torch.OutOfMemoryError("CUDA out of memory, as a trial")

        def search(run: Callable[[int], None], *, least: int, most: int, used: Callable[[], float]) -> int:
            def run_or_fail(tokens: int) -> None:
                is_too_large[0] = tokens > least
                try:
                    run(tokens)
                finally:
                    is_too_large[0] = False

            return largest_that_fits(run_or_fail, least=least, most=most, used=lambda: 0.3)

        with tempfile.TemporaryDirectory() as name:
            train, settings, folder = self.workload.train, model_settings("g_transformer"), Path(name)
            _, expected = train(folder / "fixed", settings, self.device, device_tokens=30, **recipe)
            search_patch = mock.patch("docmt.training.memory.largest_that_fits", search)
            with search_patch, mock.patch.object(Fabric, "backward", fail):
                _, found = train(folder / "probed", settings, self.device, **recipe)
        columns = ("train_loss", "gradient_norm", "dev_loss")
        numbers = {column: relative_difference(found[column], expected[column]) for column in columns}
        outcome = judge(numbers, dict.fromkeys(columns, 1e-3))
        return outcome if failures else Outcome("no larger batch was tried", "FAILED")


def _gradient(module: LossModule) -> torch.Tensor:
    """The gradients of all parameters that have one, as a vector."""
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def _distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference, relative to the norm of what is expected."""
    return float((found - expected).norm() / expected.norm())
