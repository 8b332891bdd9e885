"""Runs presets on the device and on the CPU, writes what came out: `python -m standin.measure FOLDER [PRESET …]`.

test_cuda_standin.py starts it as a separate process: the stand-in must be there before torch is.
"""

import json
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import standin.device  # before torch

# isort: split

import torch
from core_fixtures import RECIPE, Study, make_model, make_study, run_training

from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.presets import ARCHITECTURES
from docmt.training.loss import LossModule
from docmt.training.settings import TrainingSettings
from docmt.training.trainer import build_optimizer
from standin import scenarios
from standin.counting import counting
from standin.scenarios import HALF

SEARCH = DecodingSettings(beam_size=3, max_length_offset=6, precision="float32")


def step(architecture: str, device: str, dtype: torch.dtype, seed: int = 0) -> dict[str, Any]:
    """Forward, backward and Adam on one batch: the loss, the gradient and the change of the weights, as vectors."""
    model = make_model(architecture, seed=seed, **HALF)
    module = LossModule(model, 0.1).to(device).train()
    optimizer = build_optimizer(module, set(), TrainingSettings())
    # All drafts are corrupted references: which words a model would draw depends on how it rounds.
    corrupted = mock.patch("docmt.models.systems.cadec.CORRUPTED", 1.0)
    with corrupted, torch.autocast("cuda", dtype, enabled=dtype != torch.float32):
        loss = module(scenarios.make_inputs(model.settings, device=device, dtype=dtype))
    loss.backward()
    gradient = torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])
    before = torch.cat([p.detach().flatten() for p in module.parameters()]).clone()
    optimizer.step()
    after = torch.cat([p.detach().flatten() for p in module.parameters()])
    devices = {str(t.device) for s in optimizer.state.values() for t in s.values()}
    assert devices == {"cpu" if device == "cpu" else "cuda:0"}, devices
    return {"loss": loss.item(), "gradient": gradient.cpu(), "change": (after - before).cpu()}


def values(architecture: str, study: Study, folder: Path) -> dict[str, float]:
    """How far the device is from the CPU, relative to the size of what is compared."""
    plain = step(architecture, "cpu", torch.float32)
    found: dict[str, float] = {}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        ours = step(architecture, "cuda", dtype)
        found[f"{name}_loss"] = abs(ours["loss"] - plain["loss"]) / plain["loss"]
        # Adam makes steps of the same size of gradients that are only noise.
        is_clear = plain["gradient"].abs() > 1e-4 * plain["gradient"].abs().max()
        for what, chosen in (("gradient", slice(None)), ("change", is_clear)):
            difference = ours[what][chosen] - plain[what][chosen]
            found[f"{name}_{what}"] = float(difference.norm() / plain[what][chosen].norm())
    # Of a model this small, rounding can spoil the gradient of a single draw, whatever the architecture.
    draws = [found["bfloat16_gradient"], *(rounding(architecture, seed) for seed in (1, 2))]
    found["bfloat16_gradient"] = statistics.median(draws)
    return found


def rounding(architecture: str, seed: int) -> float:
    """How far the gradient in bfloat16 is from that of the CPU, for another draw of the weights."""
    plain = step(architecture, "cpu", torch.float32, seed)["gradient"]
    return float((step(architecture, "cuda", torch.bfloat16, seed)["gradient"] - plain).norm() / plain.norm())


def training(architecture: str, study: Study, folder: Path) -> dict[str, Any]:
    """Train on the CPU, on the device, and on the device with a break; the histories and whether weights are equal."""
    # Dropout draws other numbers on each device.
    options = {"architecture": architecture, "model": HALF | {"dropout": 0.0}, "training": {"max_steps": 6}}
    _, cpu = run_training(study, folder / "cpu", **options)
    whole, device = run_training(study, folder / "whole", accelerator="gpu", **options)
    run_training(study, folder / "broken", accelerator="gpu", **(options | {"training": {"max_steps": 4}}))
    resumed, _ = run_training(study, folder / "broken", accelerator="gpu", **options)
    weights, expected = resumed.model.state_dict(), whole.model.state_dict()
    assert not any(p.is_cuda for p in whole.model.parameters())
    return {
        "cpu": _rows(cpu),
        "device": _rows(device),
        "differs": [name for name in weights if not torch.equal(weights[name], expected[name])],
        "device_name": whole.provenance["device"],
    }


def _rows(history: Any) -> dict[str, list[float]]:
    return {name: history[name].dropna().tolist() for name in history if name not in ("seconds", "tokens_per_second")}


def decoding(architecture: str, study: Study, folder: Path) -> dict[str, Any]:
    """Search on the CPU and on the device, with the counts of the device; and in half precision."""
    trained = scenarios.random_trained(study, architecture, **HALF)
    cpu = scenarios.decode(trained, study, SEARCH, device="cpu")
    device = scenarios.decode(trained, study, SEARCH, device="cuda")
    half = scenarios.decode(trained, study, SEARCH.model_copy(update={"precision": "auto"}), device="cuda")
    return {
        "cpu": cpu.sentences,
        "device": device.sentences,
        "cpu_scores": cpu.scores,
        "device_scores": device.scores,
        "half_scores": half.scores,
        "steps": half.n_steps,
        "searches": half.n_searches,
        **half.counts.totals(),
    }


def contrast(architecture: str, study: Study, folder: Path) -> dict[str, list[float]]:
    """Scores of given translations on the CPU and on the device, and in half precision."""
    trained = scenarios.random_trained(study, architecture, **HALF)
    half = SEARCH.model_copy(update={"precision": "auto"})
    return {
        "cpu": scenarios.score(trained, SEARCH, device="cpu")[0],
        "device": scenarios.score(trained, SEARCH, device="cuda")[0],
        "half": scenarios.score(trained, half, device="cuda")[0],
    }


def budgets(architecture: str, study: Study, folder: Path) -> dict[str, Any]:
    """Counts of a micro-batch of the base size, and of the updates of a training in half precision that logs twice."""
    quiet = {"log_every_steps": 4, "validate_every_steps": 100, "checkpoint_every_steps": 100}
    training = RECIPE | quiet | {"max_steps": 7, "precision": "auto"}
    updates, history = scenarios.updates(study, folder, architecture, model=HALF, training=training)
    return {
        "micro_batch": scenarios.micro_batch(architecture).totals(),
        "updates": [counts.totals() for counts in updates],
        "text": updates[1].describe("sync", "pageable copy", "pinned copy", "copy to host"),
        "history": _rows(history),
    }


def device(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """What the stand-in itself should do."""
    on_device, on_cpu = torch.ones(3, 2, device="cuda"), torch.ones(2, 3)
    messages = []
    for mix in (lambda: on_device @ on_cpu, lambda: on_device + on_cpu, lambda: torch.cat([on_device, on_cpu])):
        try:
            mix()
        except RuntimeError as error:
            messages.append(str(error))
    with counting() as counts:
        on_cpu.to("cuda")
        on_cpu.to("cuda", non_blocking=True)
        on_cpu.pin_memory().to("cuda")
        on_cpu.pin_memory().to("cuda", non_blocking=True)
        (on_device * 2).sum().item()
        on_device[on_device > 0].cpu()
        on_device[on_device > 0] = 2  # `masked_fill_`
    before = torch.cuda.memory_allocated()
    large = torch.empty(1000, device="cuda")
    held = torch.cuda.memory_allocated() - before
    del large
    freed = torch.cuda.memory_allocated() == before
    return {"messages": messages, **counts.totals(), "lines": counts.by_line("sync"), "held": held, "freed": freed}


def memory(_: str, study: Study, folder: Path) -> dict[str, str]:
    """A training on a device that is too small; what it says."""
    capacity = standin.device.LIBRARY.standin_capacity()
    standin.device.set_capacity(torch.cuda.memory_allocated() + 200_000)
    try:
        run_training(study, folder, model=HALF, accelerator="gpu", training={"max_batch_tokens": 400})
    except UserError as error:
        return {"message": str(error)}
    finally:
        standin.device.set_capacity(capacity)
    return {"message": ""}


PARTS: dict[str, Callable[[str, Study, Path], dict[str, Any]]] = {
    "values": values,
    "training": training,
    "decoding": decoding,
    "contrast": contrast,
    "budgets": budgets,
}


def run(part: Callable[[str, Study, Path], dict[str, Any]], architecture: str, study: Study) -> dict[str, Any]:
    """The result of a part, or `{"error": traceback}`."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return part(architecture, study, Path(folder))
        except Exception:
            return {"error": traceback.format_exc()}


def main() -> None:
    """Run everything; the results go to FOLDER/results.json."""
    folder = Path(sys.argv[1])
    study = make_study(folder / "study")
    results = {"device": run(device, "", study), "memory": run(memory, "", study)}
    done: dict[str, dict[str, Any]] = {}  # some presets are one model under two names
    for architecture in sys.argv[2:] or ARCHITECTURES:
        key = str(ARCHITECTURES[architecture])
        if key not in done:
            done[key] = {name: run(part, architecture, study) for name, part in PARTS.items()}
        results[architecture] = done[key]
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
