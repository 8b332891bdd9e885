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
import torch.nn.functional as F
from core_fixtures import RECIPE, Study, make_model, make_study, run_training
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.presets import ARCHITECTURES
from docmt.training.loss import LossModule
from docmt.training.memory import largest_that_fits
from docmt.training.optimizer import build_optimizer
from docmt.training.settings import TrainingSettings
from standin import scenarios
from standin.counting import counting
from standin.scenarios import HALF

FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
CUDNN = "_scaled_dot_product_cudnn_attention"
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
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        ours = step(architecture, "cuda", dtype)
        found[f"{name}_loss"] = abs(ours["loss"] - plain["loss"]) / plain["loss"]
        # Adam makes steps of the same size of gradients that are only noise.
        is_clear = plain["gradient"].abs() > 1e-4 * plain["gradient"].abs().max()
        for what, chosen in (("gradient", slice(None)), ("change", is_clear)):
            difference = ours[what][chosen] - plain[what][chosen]
            found[f"{name}_{what}"] = float(difference.norm() / plain[what][chosen].norm())
    # Of a model this small, rounding can spoil the gradient of a single draw, whatever the architecture.
    for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        draws = [found[f"{name}_gradient"], *(rounding(architecture, dtype, seed) for seed in (1, 2))]
        found[f"{name}_gradient"] = statistics.median(draws)
    return found


def rounding(architecture: str, dtype: torch.dtype, seed: int) -> float:
    """How far the gradient in a type is from that of the CPU, for another draw of the weights."""
    plain = step(architecture, "cpu", torch.float32, seed)["gradient"]
    return float((step(architecture, "cuda", dtype, seed)["gradient"] - plain).norm() / plain.norm())


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
        "cudnn": half.counts.launches(CUDNN),
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
    micro_batch = scenarios.micro_batch(architecture)
    kernels = ("short_groups_forward", "short_groups_backward", "_flash_attention_forward")
    return {
        "micro_batch": micro_batch.totals(),
        "attention": {name: micro_batch.launches(name) for name in kernels},
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
    query = torch.ones(1, 2, 3, 8, dtype=torch.bfloat16, device="cuda")
    kernels = []
    for is_enabled in (True, False):
        with counting() as attention, sdpa_kernel(FUSED if is_enabled else FUSED[:2]):
            F.scaled_dot_product_attention(query, query, query)
            F.scaled_dot_product_attention(query, query, query, attn_mask=torch.zeros_like(query[..., :3]))
        kernels.append(sorted(name for _, name, _ in attention.events if "attention" in name))
    before = torch.cuda.memory_allocated()
    large = torch.empty(1000, device="cuda")
    held = torch.cuda.memory_allocated() - before
    del large
    freed = torch.cuda.memory_allocated() == before
    return {
        "messages": messages,
        **counts.totals(),
        "lines": counts.by_line("sync"),
        "held": held,
        "freed": freed,
        "kernels": kernels,
    }


def probe(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """Train after a probe that ran out of memory in a backward pass, and with the batches that it left."""
    recipe = {"max_batch_tokens": 30, "accumulation_steps": 4, "log_every_steps": 1, "max_steps": 3}
    options = {"model": HALF | {"dropout": 0.0}, "training": recipe, "accelerator": "gpu"}
    _, expected = run_training(study, folder / "fixed", device_tokens=30, **options)
    capacity, failures = standin.device.LIBRARY.standin_capacity(), []

    def search(run: Callable[[int], None], *, least: int, **limits: Any) -> int:
        """The second size fails in its first backward pass, when 30 of 79 parameters have a gradient."""

        def run_short(tokens: int) -> None:
            n_left = [30] if tokens > least else [-1]

            def note(_: torch.Tensor) -> None:
                n_left[0] -= 1
                if n_left[0] == 0:
                    standin.device.set_capacity(torch.cuda.memory_allocated() + 100)

            hooks = [p.register_post_accumulate_grad_hook(note) for p in modules[0].parameters()]
            try:
                run(tokens)
            except UserError as error:
                failures.append(str(error))
                raise
            finally:
                standin.device.set_capacity(capacity)
                for hook in hooks:
                    hook.remove()

        return largest_that_fits(run_short, least=least, **limits | {"used": lambda: 0.3})

    modules: list[LossModule] = []

    def train(self: LossModule, *mode: bool) -> nn.Module:
        modules.append(self)
        return nn.Module.train(self, *mode)

    patched = mock.patch("docmt.training.memory.largest_that_fits", search)
    with patched, mock.patch.object(LossModule, "train", train):
        _, found = run_training(study, folder / "probed", **options)
    return {"failures": failures, "found": _rows(found), "expected": _rows(expected)}


def older(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """Training and search with a GPU that has neither bfloat16 nor flash attention, in float16; and a resumed one."""
    recipe = {"precision": "fastest", "log_every_steps": 1, "max_gradient_norm": 1.0, "max_steps": 8}
    options = {"model": HALF | {"dropout": 0.0}, "training": recipe, "accelerator": "gpu"}
    _, expected = run_training(study, folder / "float32", **options | {"training": recipe | {"precision": "float32"}})
    with standin.device.older_gpu(7, 5), counting() as counts:
        whole, found = run_training(study, folder / "whole", **options)
        run_training(study, folder / "broken", **options | {"training": recipe | {"max_steps": 4}})
        resumed, _ = run_training(study, folder / "broken", **options)
        trained = scenarios.random_trained(study, "g_transformer", **HALF)
        half, auto = (
            scenarios.decode(trained, study, SEARCH.model_copy(update={"precision": precision}), device="cuda").scores
            for precision in ("float16", "auto")
        )
    weights = resumed.model.state_dict()
    scaled = sum(count for (_, name, _), count in counts.events.items() if name.startswith("_amp_update_scale"))
    return {
        "found": _rows(found),
        "expected": _rows(expected),
        "differs": [name for name, value in whole.model.state_dict().items() if not torch.equal(weights[name], value)],
        "scaled": scaled,
        "half_scores": half,
        "auto_scores": auto,
    }


def heads(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """A training in half precision with heads of a width that flash attention does not take."""
    options = {"model": {"width": 20, "heads": 2, "dropout": 0.0}, "training": {"max_steps": 2, "precision": "auto"}}
    return _rows(run_training(study, folder, accelerator="gpu", **options)[1])


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
    results = {"device": run(device, "", study), "memory": run(memory, "", study), "probe": run(probe, "", study)}
    results |= {"older": run(older, "", study), "heads": run(heads, "", study)}
    done: dict[str, dict[str, Any]] = {}  # some presets are one model under two names
    for architecture in sys.argv[2:] or ARCHITECTURES:
        key = str(ARCHITECTURES[architecture])
        if key not in done:
            done[key] = {name: run(part, architecture, study) for name, part in PARTS.items()}
        results[architecture] = done[key]
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
