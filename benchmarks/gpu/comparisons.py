"""Scenarios: docmt's computations with a tiny model on a device, compared with the CPU in float32.

`docmt bench gpu` prints a table with a row per scenario. `pytest -m gpu` runs the same scenarios as tests, on a GPU or
on the stand-in for a GPU (`tests/standin`).
"""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from lightning_fabric import Fabric
from torch.optim.optimizer import register_optimizer_step_post_hook

from benchmarks.gpu.outcomes import NOT_COMPILED, Outcome, distance, judge, relative_difference
from benchmarks.gpu.workload import QUIET, History, Recipe, Workload, kernel_of, model_settings, random_model
from docmt.decoding.contrastive_scoring import Candidate, TargetScorer
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import Translator
from docmt.models.presets import ARCHITECTURES
from docmt.training.compiling import compiled_loss
from docmt.training.loss import LossModule
from docmt.training.memory import OutOfMemory
from docmt.training.optimizer import build_optimizer
from docmt.training.settings import TrainingSettings

PRESETS = [name for n, name in enumerate(ARCHITECTURES) if ARCHITECTURES[name] not in [*ARCHITECTURES.values()][:n]]
"""Architectures without duplicates under a second name."""
COMPILED_FIRST = ("sentence_transformer", "g_transformer", "rst_mix", "global_context", "cadec")
"""One preset per graph type. Compiling a preset takes half a minute."""
COUNTS = [3, 2, 4, 1, 2, 3, 2, 3]  # sentences by instance
N_SYMBOLS = 32
SEARCH = DecodingSettings(beam_size=3, max_length_offset=6, precision="float32")
CPU = torch.device("cpu")
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Relative to the expected values. In a model this small, rounding can change a large share of a gradient.
LIMITS = {"float32 loss": 1e-5, "float32 gradient": 1e-4, "float32 step": 1e-2}
LIMITS |= {"bfloat16 loss": 0.01, "bfloat16 gradient": 0.25, "float16 loss": 0.002, "float16 gradient": 0.1}
LOGGED_EVERY = 4
CORRUPTED = "docmt.models.systems.cadec.CORRUPTED"
"""Share of drafts that are corrupted references. Words in other drafts are sampled and depend on rounding."""


def scenario_names(*, on_gpu: bool) -> tuple[list[str], list[str]]:
    """Return scenario names (`KIND/PRESET` or `probe`), most informative first, and the rest of `compiled`."""

    def named(*kinds: str, presets: Sequence[str] = PRESETS) -> list[str]:
        return [f"{kind}/{preset}" for kind in kinds for preset in presets]

    first, training = named("update", "contrast", "search"), named("training")
    if not on_gpu:
        return [*first, *training], []
    first += [*named("no-waiting"), "probe", *named("compiled", presets=COMPILED_FIRST), *training]
    return first, named("compiled", presets=[preset for preset in PRESETS if preset not in COMPILED_FIRST])


@contextlib.contextmanager
def _same_draws() -> Iterator[None]:
    """Draw CADec's drafts on the CPU, all as corrupted references, so that they are equal on all devices."""
    draw = torch.rand

    def rand(*size: Any, device: Any = None, **options: Any) -> torch.Tensor:
        return draw(*size, **options).to(device)

    with mock.patch("torch.rand", rand), mock.patch(CORRUPTED, 1.0):
        yield


class Scenarios:
    """Scenarios on a device, called by name, with temporary files in a folder."""

    def __init__(self, device: torch.device, folder: Path) -> None:
        self.device = device
        self.workload = Workload(folder, COUNTS, shortest=0, longest=8, n_symbols=N_SYMBOLS)

    def __call__(self, name: str) -> Outcome:
        """Run a scenario by its name in `scenario_names`."""
        kind, *presets = name.split("/")
        return getattr(self, kind.replace("-", "_"))(*presets)

    def update(self, preset: str) -> Outcome:
        """Compare forward, backward and Adam on one batch in all precisions (median of three in half precision)."""
        numbers: dict[str, float] = {}
        for precision, dtype in PRECISIONS.items():
            gradients = []
            for seed in range(1 if precision == "float32" else 3):
                expected = self._step(preset, CPU, torch.float32, seed)
                results = self._step(preset, self.device, dtype, seed)
                gradients.append(distance(results["gradient"], expected["gradient"]))
                if seed == 0:
                    numbers[f"{precision} loss"] = distance(results["loss"], expected["loss"])
                if precision == "float32":
                    # Adam's step size is the same even if a gradient is only noise.
                    is_clear = expected["gradient"].abs() > 1e-4 * expected["gradient"].abs().max()
                    numbers["float32 step"] = distance(results["step"][is_clear], expected["step"][is_clear])
            numbers[f"{precision} gradient"] = statistics.median(gradients)
        return judge(numbers, LIMITS)

    def _step(self, preset: str, device: torch.device, dtype: torch.dtype, seed: int) -> dict[str, torch.Tensor]:
        """Return loss, gradient and weight change."""
        settings = model_settings(preset)
        module = LossModule(random_model(settings, N_SYMBOLS, seed=seed), 0.1).to(device).train()
        optimizer = build_optimizer(module, set(), TrainingSettings())
        with _same_draws(), torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            loss = module(self.workload.batch(module.model, dtype, n=3))
        loss.backward()
        used = [p for p in module.parameters() if p.grad is not None]
        before = torch.cat([p.detach().flatten() for p in used])
        gradient = _gradient(module)
        optimizer.step()
        step = torch.cat([p.detach().flatten() for p in used]) - before
        return {"loss": loss.detach().cpu(), "gradient": gradient.cpu(), "step": step.cpu()}

    def compiled(self, preset: str) -> Outcome:
        """Compare a compiled graph's loss and gradient in bfloat16 with the plain computation."""
        settings = model_settings(preset)
        module = LossModule(random_model(settings, N_SYMBOLS), 0.1).to(self.device).train()
        batch = self.workload.batch(module.model, torch.bfloat16)
        graph = compiled_loss(module, kernel_of(module.model, torch.bfloat16))
        if graph is None:
            return NOT_COMPILED
        from torch import _dynamo
        from torch._inductor import config

        # torch limits the number of graphs by code object. All presets share the same code.
        _dynamo.reset()
        results, started = [], time.monotonic()
        for module.compiled in (None, graph):
            module.zero_grad()
            torch.manual_seed(0)
            with (
                mock.patch(CORRUPTED, 1.0),
                config.patch(fallback_random=True),  # pyright: ignore[reportAttributeAccessIssue] - numbers of eager mode
                torch.autocast(self.device.type, torch.bfloat16),
            ):
                loss = module(batch)
            loss.backward()
            results.append({"loss": loss.detach(), "gradient": _gradient(module)})
        plain, compiled_results = results
        numbers = {part: distance(compiled_results[part], plain[part]) for part in plain}
        if graph.compiled is None:
            return Outcome(f"the compiler or its graph failed: {graph.failure}", "FAILED", numbers)
        limits = {"loss": 0.01, "gradient": 0.25}
        return judge(numbers, limits, note=f"{time.monotonic() - started:.0f} s to compile")

    def training(self, preset: str) -> Outcome:
        """Compare a training (memory probe, validation, entropies, checkpoints) with the CPU and after resuming."""
        # Sums in a fixed order if torch has such a kernel. With other kernels, rounding can differ between runs.
        are_deterministic = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            with tempfile.TemporaryDirectory() as name, _same_draws():
                train, settings, folder = self.workload.train, model_settings(preset), Path(name)
                _, expected = train(folder / "cpu", settings, CPU)
                whole, resumed_history = train(folder / "whole", settings, self.device)
                train(folder / "broken", settings, self.device, max_steps=4)
                resumed, _ = train(folder / "broken", settings, self.device)
        finally:
            torch.use_deterministic_algorithms(are_deterministic)
        pairs = zip(resumed.model.parameters(), whole.model.parameters(), strict=True)
        numbers = {
            "history": max(relative_difference(resumed_history[column], expected[column]) for column in expected),
            "resumed": max(0.0 if torch.equal(a, b) else distance(a, b) for a, b in pairs),
        }
        limits = {"history": 1e-3, "resumed": 1e-4 if self.device.type == "cuda" else 0.0}
        return judge(numbers, limits, note="" if numbers["resumed"] else "equal bit for bit")

    def no_waiting(self, preset: str) -> Outcome:
        """Compare a training in half precision with float32. The CPU can wait for the device only in logged updates."""
        quiet: list[bool] = []  # True if the CPU must not wait after an update

        def note(*_: object) -> None:
            n = len(quiet) + 1
            quiet.append(n > 1 and n % LOGGED_EVERY > 0)
            torch.cuda.set_sync_debug_mode("error" if quiet[-1] else "default")

        recipe = QUIET | {"max_steps": 2 * LOGGED_EVERY, "log_every_steps": LOGGED_EVERY}
        train, settings = self.workload.train, model_settings(preset)
        with tempfile.TemporaryDirectory() as folder:
            hook = register_optimizer_step_post_hook(note)
            try:
                _, history = train(Path(folder, "device"), settings, self.device, **recipe)
            finally:
                hook.remove()
                torch.cuda.set_sync_debug_mode("default")
            recipe["precision"] = "float32"
            _, expected = train(Path(folder, "cpu"), settings, CPU, **recipe)
        numbers = {"dev_loss": relative_difference(history["dev_loss"], expected["dev_loss"])}
        return judge(numbers, {"dev_loss": 0.05}, note=f"{sum(quiet)} updates without waiting")

    def search(self, preset: str) -> Outcome:
        """Compare beam search. In float32, hypotheses can differ only if their scores are equal."""
        trained = self.workload.trained(model_settings(preset))
        sources = self.workload.sources(trained.model.settings)

        def find(device: torch.device, precision: str) -> tuple[list[list[list[int]]], list[float]]:
            settings = SEARCH.model_copy(update={"precision": precision})
            by_number = dict(Translator(trained, settings, device=device.type).translate_sources(sources))
            hypotheses = [by_number[n] for n in range(len(sources))]
            return [each.sentences for each in hypotheses], [each.score for each in hypotheses]

        expected, scores = find(CPU, "float32")
        by_number, device_scores = find(self.device, "float32")
        _, half_scores = find(self.device, "auto")
        # With random weights, rounding can change a hypothesis, even on a CPU. A wrong kernel changes most hypotheses.
        numbers = {
            "different hypotheses": sum(a != b for a, b in zip(by_number, expected, strict=True)),
            "scores": max(abs(a - b) for a, b in zip(device_scores, scores, strict=True)),
            "median score in half precision": statistics.median(
                abs(a - b) for a, b in zip(half_scores, scores, strict=True)
            ),
        }
        note = f"{numbers['different hypotheses']} of {len(sources)} hypotheses differ"
        return judge(numbers, {"scores": 1e-4, "median score in half precision": 0.1}, note=note)

    def contrast(self, preset: str) -> Outcome:
        """Compare log probabilities in forced decoding."""
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
        """Compare a training without memory probe with a training whose probe ran out of memory in a backward pass."""
        recipe: Recipe = {"max_batch_tokens": 30, "accumulation_steps": 4, "log_every_steps": 1, "max_steps": 3}
        has_tried, backward = [False], Fabric.backward

        def fail(fabric: Fabric, *arguments: Any, **options: Any) -> None:
            backward(fabric, *arguments, **options)
            raise torch.OutOfMemoryError("CUDA out of memory, as a trial")

        def search(run: Callable[[int], None], *, least: int, most: int, **_: Any) -> int:
            run(least)
            with mock.patch.object(Fabric, "backward", fail), contextlib.suppress(OutOfMemory):
                has_tried[0] = most > least
                run(most)
            return least

        with tempfile.TemporaryDirectory() as name:
            train, settings, folder = self.workload.train, model_settings("g_transformer"), Path(name)
            _, expected = train(folder / "fixed", settings, self.device, micro_batch_tokens=30, **recipe)
            with mock.patch("docmt.training.memory.largest_that_fits", search):
                _, history = train(folder / "probed", settings, self.device, **recipe)
        outcome = _judge_history(history, expected)
        return outcome if has_tried[0] else Outcome("no larger batch was tried", "FAILED")


def compare_several(device: torch.device, names: Sequence[str]) -> Outcome:
    """Compare a training's history on all devices with one device (GPUs exchange gradients through NCCL)."""
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(Path(folder), COUNTS * len(names), shortest=0, longest=8, n_symbols=N_SYMBOLS)
        settings, is_cuda = model_settings("g_transformer"), device.type == "cuda"
        recipe: Recipe = {"max_batch_tokens": 60, "accumulation_steps": len(names)}
        expected, history = (
            workload.train_on(some, settings, is_cuda=is_cuda, **recipe) for some in (names[:1], names)
        )
    return _judge_history(history, expected, note=f"{len(names)} devices against 1")


def _judge_history(history: History, expected: History, *, note: str = "") -> Outcome:
    columns = ("train_loss", "gradient_norm", "dev_loss")
    numbers = {column: relative_difference(history[column], expected[column]) for column in columns}
    return judge(numbers, dict.fromkeys(columns, 1e-3), note=note)


def _gradient(module: LossModule) -> torch.Tensor:
    """Return all existing gradients as one vector."""
    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])
