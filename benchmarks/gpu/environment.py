"""Rows on this machine's driver, torch and GPU, with one sentence per defect."""

import shutil
import subprocess
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.gpu.outcomes import Outcome, needed
from benchmarks.gpu.rows import Check
from docmt.errors import UserError
from docmt.gpu_locks import SECONDS_FOR_LIST
from docmt.models.attention.varlen import find_flash
from docmt.models.gpus import CAPABILITY_WITH_BFLOAT16, check_gpus

GIB = 1 << 30
MAX_SHARE_OF_OTHERS = 0.05
HEALTH = {
    "driver_version": "driver",
    "ecc.errors.uncorrected.volatile.total": "uncorrected ECC errors",
    "temperature.gpu": "°C",
    "power.limit": "power limit",
    "clocks.max.sm": "maximum clock",
    "clocks_event_reasons.hw_slowdown": "slowed down by the hardware",
}


def environment_checks(device: torch.device, n_devices: int) -> dict[str, Check]:
    """Return checks of training requirements on a device. On a CPU, only torch is checked."""
    version = f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    if device.type == "cpu":
        return {"environment/torch": lambda: Outcome(f"{version}: a trial on a CPU, not an acceptance")}
    capability = torch.cuda.get_device_capability()

    def gpu() -> Outcome:
        memory = torch.cuda.get_device_properties(0).total_memory / GIB
        value = f"{n_devices} × {torch.cuda.get_device_name()}, capability {'.'.join(map(str, capability))}"
        return Outcome(f"{value}, {memory:.1f} GiB", numbers={"n": n_devices, "memory_gib": memory})

    def kernels() -> Outcome:
        try:
            check_gpus()
        except UserError as error:
            return Outcome(str(error), "FAILED")
        return Outcome(f"{version}, kernels for {' '.join(torch.cuda.get_arch_list())}", "ok")

    def attention() -> Outcome:
        if capability < CAPABILITY_WITH_BFLOAT16:
            return Outcome("none before capability 8.0: padded attention, several times slower", "measured")
        return needed(find_flash() is not None, "variable-length", "this torch lacks it: install torch 2.11 or later")

    def compiler() -> Outcome:
        # Triton compiles part of every kernel in C, on the job's machine.
        has_compiler = any(map(shutil.which, ("cc", "gcc", "clang")))
        header = Path(sysconfig.get_path("include"), "Python.h")
        missing = f"no {header}" if has_compiler else "no C compiler"
        defect = f"{missing}: trainings run uncompiled; install gcc and Python's headers"
        return needed(has_compiler and header.exists(), "C compiler and Python.h", defect)

    def nccl() -> Outcome:
        from torch.cuda.nccl import version  # only in CUDA builds

        if not torch.distributed.is_nccl_available():
            return Outcome("this torch has no NCCL: trainings can use one GPU; install torch's default build", "FAILED")
        return Outcome(f"NCCL {'.'.join(map(str, version()))}", "ok")

    def memory() -> Outcome:
        free, total = torch.cuda.mem_get_info()
        others = (total - free - torch.cuda.memory_reserved()) / GIB
        advice = "end them, or take another GPU with CUDA_VISIBLE_DEVICES: all figures below suffer"
        defect = f"{others:.1f} GiB are in use, mostly by other processes (`nvidia-smi`): {advice}"
        limit = max(1.0, MAX_SHARE_OF_OTHERS * total / GIB)  # the driver itself needs 0.5 GiB for this process
        return needed(others <= limit, f"{others:.1f} GiB in use, beside what torch holds", defect)

    def triton() -> Outcome:
        defect = "triton is not installed: trainings run uncompiled; install torch's default build for Linux"
        return needed(find_spec("triton") is not None, "installed", defect)

    rows = {"gpu": gpu, "torch": kernels, "attention": attention, "triton": triton, "compiler": compiler}
    rows |= {"memory": memory, "health": gpu_status} | ({"nccl": nccl} if n_devices > 1 else {})
    return {f"environment/{name}": check for name, check in rows.items()}


def gpu_status() -> Outcome:
    """Query the first visible GPU's driver, temperature, power and clocks with nvidia-smi."""
    identifier = str(getattr(torch.cuda.get_device_properties(0), "uuid", "0"))
    command = ["nvidia-smi", f"--query-gpu={','.join(HEALTH)}", "--format=csv,noheader"]
    command += ["-i", identifier if identifier == "0" else f"GPU-{identifier}"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=SECONDS_FOR_LIST
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Outcome(f"nvidia-smi does not answer ({error}): driver, clocks and ECC are unknown", "not run")
    facts = dict(zip(HEALTH.values(), (part.strip() for part in done.stdout.split(",")), strict=True))
    value = ", ".join(f"{name} {part}" for name, part in facts.items())
    defect, errors = "", facts["uncorrected ECC errors"]
    if errors.isdecimal() and int(errors):
        defect = ": its memory is defective: have the GPU reset or replaced"
    elif facts["slowed down by the hardware"] == "Active":
        defect = ": look at power supply and cooling"
    return Outcome(value + defect, "FAILED" if defect else "ok", facts)
