"""Runs presets on the device and on the CPU, and writes results: `python -m standin.measure FOLDER [PRESET …]`.

test_cuda_standin.py starts it as a separate process, because the stand-in must replace CUDA before torch is imported.
"""

import contextlib
import gc
import json
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
from core_fixtures import RECIPE, Study, make_study, run_training
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from docmt.cli.main import main as main_of_docmt
from docmt.decoding.settings import DecodingSettings
from docmt.errors import UserError
from docmt.models.presets import ARCHITECTURES
from standin import scenarios
from standin.counting import counting
from standin.scenarios import HALF

FUSED = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]
CUDNN = "_scaled_dot_product_cudnn_attention"
SEARCH = DecodingSettings(beam_size=3, max_length_offset=6, precision="float32")


def _rows(history: Any) -> dict[str, list[float]]:
    return {name: history[name].dropna().tolist() for name in history if name not in ("seconds", "tokens_per_second")}


def decoding(architecture: str, study: Study, folder: Path) -> dict[str, Any]:
    """Counts for a search in half precision."""
    trained = scenarios.random_trained(study, architecture, **HALF)
    half = scenarios.decode(trained, study, SEARCH.model_copy(update={"precision": "auto"}), device="cuda")
    cudnn = half.counts.launches(CUDNN)
    return {"steps": half.n_steps, "searches": half.n_searches, "cudnn": cudnn, **half.counts.totals()}


def budgets(architecture: str, study: Study, folder: Path) -> dict[str, Any]:
    """Counts for a micro-batch with the base size, and for updates of a half-precision training that logs twice."""
    training = RECIPE | scenarios.QUIET | {"max_steps": 7}
    updates = scenarios.updates(study, folder, architecture, model=HALF, training=training)
    micro_batch = scenarios.micro_batch(architecture)
    kernels = ("short_groups_forward", "short_groups_backward", "_flash_attention_forward")
    return {
        "micro_batch": micro_batch.totals(),
        "attention": {name: micro_batch.launches(name) for name in kernels},
        "updates": [counts.totals() for counts in updates],
        "text": updates[1].describe("sync", "pageable copy", "pinned copy", "copy to host"),
    }


def device(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """Expected behavior of the stand-in."""
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
    results = {"messages": messages, "lines": counts.by_line("sync"), "held": held, "freed": freed, "kernels": kernels}
    return results | counts.totals()


def older(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """Training, resuming and search on a GPU with neither bfloat16 nor flash attention, in float16."""
    recipe = {"precision": "fastest", "log_every_steps": 1, "max_gradient_norm": 1.0, "max_steps": 8}
    options = {"model": HALF | {"dropout": 0.0}, "training": recipe, "accelerator": "gpu"}
    _, expected = run_training(study, folder / "float32", **options | {"training": recipe | {"precision": "float32"}})
    with standin.device.older_gpu(7, 5), counting() as counts:
        whole, history = run_training(study, folder / "whole", **options)
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
        "found": _rows(history),
        "expected": _rows(expected),
        "differs": [name for name, value in whole.model.state_dict().items() if not torch.equal(weights[name], value)],
        "scaled": scaled,
        "half_scores": half,
        "auto_scores": auto,
    }


def heads(_: str, study: Study, folder: Path) -> dict[str, Any]:
    """A training in half precision with a head width that flash attention does not support."""
    options = {"model": {"width": 20, "heads": 2, "dropout": 0.0}, "training": {"max_steps": 2, "precision": "auto"}}
    return _rows(run_training(study, folder, accelerator="gpu", **options)[1])


def memory(_: str, study: Study, folder: Path) -> dict[str, str]:
    """Error message of a training on a device that is too small."""
    capacity = standin.device.LIBRARY.standin_capacity()
    standin.device.set_capacity(torch.cuda.memory_allocated() + 200_000)
    try:
        run_training(study, folder, model=HALF, accelerator="gpu", training={"max_batch_tokens": 400})
    except UserError as error:
        return {"message": str(error)}
    finally:
        standin.device.set_capacity(capacity)
    return {"message": ""}


def bench(folder: Path) -> dict[str, Any]:
    """Rows of `docmt bench gpu`, with a wrong kernel, a probe that leaves gradients, and updates that wait."""
    command = ["bench", "gpu", "--size", "tiny", "--tokens", "60", "--minutes", "600"]
    command += ["--out", str(folder / "bench.json")]
    kernels, zero_grad = standin.kernels.SHORT_GROUPS, torch.optim.Optimizer.zero_grad
    forward = kernels.forward

    def scaled(*arguments: Any) -> tuple[torch.Tensor, ...]:
        output, *others = forward(*arguments)
        return (1.1 * output, *others)

    scale = mock.patch.object(kernels, "forward", scaled)

    def zero_unless_failing(self: torch.optim.Optimizer, **options: Any) -> None:
        if sys.exc_info()[0] is None:
            zero_grad(self, **options)

    leave = mock.patch.object(torch.optim.Optimizer, "zero_grad", zero_unless_failing)
    norm = "docmt.training.trainer.get_total_norm"
    wait = mock.patch(norm, lambda gradients: torch.tensor(nn.utils.get_total_norm(gradients).item(), device="cuda"))
    none = contextlib.nullcontext()
    runs = [
        (none, ["--jobs", "2", "--only", "environment", "speed", "probe", "contrast/g_transformer"]),
        (none, ["--jobs", "1", "--only", "update/g_transformer"]),  # the first attention of a process tries its kernels
        (scale, ["--jobs", "1", "--only", "update/g_transformer"]),
        (leave, ["--jobs", "1", "--only", "probe"]),
        (wait, ["--jobs", "1", "--only", "no-waiting/g_transformer"]),
    ]
    codes, files = [], []
    for fault, options in runs:
        with fault:
            codes.append(main_of_docmt([*command, *options]))
        files.append(json.loads((folder / "bench.json").read_text()))
    rows = [{row["name"]: row for row in file["rows"]} for file in files]
    return {"provenance": files[0]["provenance"], "codes": codes, "rows": rows}


PARTS: dict[str, Callable[[str, Study, Path], dict[str, Any]]] = {
    "budgets": budgets,
    "decoding": decoding,  # after a training: the first attention of a process tries its kernels
}


def run(part: Callable[[str, Study, Path], dict[str, Any]], architecture: str, study: Study) -> dict[str, Any]:
    """Result of a part, or `{"error": traceback}`."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return part(architecture, study, Path(folder))
        except Exception:
            return {"error": traceback.format_exc()}


def main() -> None:
    """Run everything, or with architectures only their parts. FOLDER/results.json gets the results."""
    gc.freeze()  # each row of the acceptance collects garbage: what is imported need not be looked at
    folder, architectures = Path(sys.argv[1]), sys.argv[2:]
    study = make_study(folder / "study")
    results = {"device": run(device, "", study)}
    if not architectures:
        results |= {"memory": run(memory, "", study), "bench": bench(folder)}
        results |= {"older": run(older, "", study), "heads": run(heads, "", study)}
    done: dict[str, dict[str, Any]] = {}  # some presets are one model under two names
    for architecture in architectures or ARCHITECTURES:
        key = str(ARCHITECTURES[architecture])
        if key not in done:
            done[key] = {name: run(part, architecture, study) for name, part in PARTS.items()}
        results[architecture] = done[key]
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
