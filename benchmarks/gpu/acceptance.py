"""`docmt bench gpu`: compare GPU results with a CPU and measure speed, in one table and one file."""

import math
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from docmt.errors import UserError
from docmt.gpu_locks import VISIBLE, claim_gpus, claim_more, visible_gpus
from docmt.models.presets import SIZES
from docmt.provenance import describe, package_versions

if TYPE_CHECKING:
    from benchmarks.gpu.outcomes import Outcome

BUDGETS: dict[str, dict[str, float]] = {
    "NVIDIA H100 80GB HBM3": {
        "speed/products.tflops": 791,
        "speed/eager.tokens_per_second": 474_000,
        "speed/compiled.tokens_per_second": 566_000,
    }
}
"""Figures from an earlier acceptance as `ROW.FIGURE`, by GPU name. More is better (docs/experiments/gpu.md)."""
MIN_SHARE = 0.9  # minimum share of the budget, since repeated measurements vary by a few percent
PACKAGES = ("triton", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-cudnn-cu12", "nvidia-nccl-cu12")


def check_gpu(
    *,
    out: Path,
    only: list[str] | None,
    device: Literal["cuda", "cpu"],
    size: str,
    tokens: int,
    minutes: float,
    jobs: int,
) -> int:
    """Run checks, print their rows and write all rows to a file. Returns 1 if a row FAILED (see docmt/cli/bench.py)."""
    if size not in ("", *SIZES):
        raise UserError(f"--size {size}: must be one of {', '.join(SIZES)}")
    names = ["cpu", "cpu"]
    if device == "cuda":
        names = visible_gpus()
        claim_gpus()
        if len(names) > 1 and "," in os.environ.get(VISIBLE, ","):
            os.environ[VISIBLE] = names[0]  # with several GPUs in a Slurm job, all rows but `several` use one

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler prints when it starts and stops

    import torch

    from benchmarks.gpu.comparisons import Scenarios, compare_several, scenario_names
    from benchmarks.gpu.environment import environment_checks
    from benchmarks.gpu.rows import Workers, run_checks
    from benchmarks.gpu.speed import Speed
    from docmt.models.gpus import missing_gpus
    from docmt.training.devices import prepare_cuda

    if device == "cuda" and not torch.cuda.is_available():
        raise UserError(f"no GPU: {missing_gpus() or 'none is visible here'}; --device cpu tries the command on a CPU")
    if device == "cuda":
        prepare_cuda("auto")  # before CUDA starts, as in a training
    is_cuda, torch_device = device == "cuda", torch.device(device)
    size, tokens = size or ("base" if is_cuda else "tiny"), tokens or (16384 if is_cuda else 1024)
    name = torch.cuda.get_device_name() if is_cuda else "CPU (a trial)"
    provenance = describe(device=name, cuda=torch.version.cuda, size=size, tokens=tokens, jobs=jobs)
    provenance["versions"] |= package_versions(PACKAGES)
    rows: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        scenarios = Scenarios(torch_device, folder / "tiny")
        first, last = ({key: partial(scenarios, key) for key in keys} for keys in scenario_names(on_gpu=is_cuda))
        checks = environment_checks(torch_device, max(1, len(names)))
        speed = Speed(torch_device, folder / "large", size=size, tokens=tokens, rows=rows)
        checks |= speed.checks() | first
        if len(names) > 1:
            several = {"equality": partial(compare_several, torch_device), "scaling": speed.scaling}
            checks |= {f"several/{key}": partial(on_all, check, names) for key, check in several.items()}
        checks |= last
        named = {
            part: {key for key in (*checks, "budgets") if fnmatch(key, part) or key.startswith(f"{part}/")}
            for part in only or ("*",)
        }
        if unknown := [part for part, keys in named.items() if not keys]:
            raise UserError(f"--only {' '.join(unknown)}: unknown row; known: {', '.join(checks)}, budgets")
        selected = {key: check for key, check in checks.items() if key in set().union(*named.values())}
        print(f"docmt bench gpu on {name}, commit {provenance['commit']}: {len(selected)} rows")
        workers = Workers(jobs, {*first, *last}, partial(Scenarios, torch_device), folder) if jobs > 1 else None
        run_checks(selected, rows, out=out, provenance=provenance, minutes=minutes, workers=workers)
        run_checks({"budgets": partial(compare, name, rows)}, rows, out=out, provenance=provenance, minutes=math.inf)
    counts = Counter(row.verdict for row in rows.values())
    print(f"{len(rows)} rows: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}; all figures are in {out}")
    if failed := [row.name for row in rows.values() if row.verdict == "FAILED"]:
        print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


def on_all(check: "Callable[[list[str]], Outcome]", names: list[str]) -> "Outcome":
    """Run a check on all devices, if no other job uses them."""
    from benchmarks.gpu.outcomes import Outcome

    if names[0] != "cpu" and not claim_more(names):
        return Outcome("other jobs of docmt use a GPU", "not run")
    return check(names)


def compare(name: str, rows: "dict[str, Outcome]") -> "Outcome":
    """Compare the measured figures with a GPU's budgets."""
    from benchmarks.gpu.outcomes import Outcome

    if name not in BUDGETS:
        return Outcome(f"there are no figures of {name} yet: send us the file (docs/gpu.md)", "not measured yet")
    sound = [row for row in rows.values() if row.verdict != "FAILED"]
    figures = {f"{row.name}.{key}": number for row in sound for key, number in row.numbers.items()}
    shares = {key: figures[key] / budget for key, budget in BUDGETS[name].items() if key in figures}
    low = [f"{key} is {100 * share:.0f} % of its budget" for key, share in shares.items() if not share >= MIN_SHARE]
    if low:
        return Outcome("; ".join(low), "FAILED", shares)
    if missing := [key for key in BUDGETS[name] if key not in figures]:
        return Outcome(f"not measured: {', '.join(missing)}", "not run", shares)
    return Outcome(f"{len(shares)} figures keep to their budgets", "ok", shares)
