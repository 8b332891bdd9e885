"""GPU capabilities, and reasons why torch cannot use a GPU of this machine."""

import os
import re
from pathlib import Path

import torch

from docmt.errors import UserError

CAPABILITY_WITH_TENSOR_CORES = (7, 0)
"""First compute capability with fast float16 (Volta)."""
CAPABILITY_WITH_BFLOAT16 = (8, 0)
"""First compute capability with bfloat16, TF32 and flash attention (Ampere)."""
CAPABILITY_OF_WHEELS = (7, 5)
"""First compute capability that torch's default build supports (Turing)."""
FIRST_DRIVERS = {"11": 450, "12": 525, "13": 580}
"""Minimum NVIDIA driver version by CUDA version."""
GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
DRIVER_FOLDER = Path("/proc/driver/nvidia")
CONTROL_DEVICE = Path("/dev/nvidiactl")
LOADED_LIBRARIES = Path("/proc/self/maps")


def check_gpus() -> None:
    """Raise UserError if torch has no kernels for a visible NVIDIA GPU. The message names the right build."""
    if torch.version.hip:  # which names GPUs of AMD by other numbers
        return
    builds = [re.fullmatch(r"(sm|compute)_(\d+)(\d)[af]?", name) for name in torch.cuda.get_arch_list()]
    for number in range(torch.cuda.device_count()):
        gpu = torch.cuda.get_device_capability(number)
        # Kernels run on later GPUs of their generation, portable code (`compute_`) on all later ones.
        if builds and not any(
            (int(b[2]), int(b[3])) <= gpu and (b[1] == "compute" or int(b[2]) == gpu[0]) for b in builds if b
        ):
            index = "cu126" if gpu < CAPABILITY_OF_WHEELS else "the newest CUDA"
            raise UserError(
                f"{torch.cuda.get_device_name(number)} (compute capability {gpu[0]}.{gpu[1]}): torch "
                f"{torch.__version__} has no kernels for this GPU: install torch from PyTorch's index for {index} "
                "(docs/installation.md), or use the CPU"
            )


def allocated_gpus() -> list[str]:
    """Return the environment variables that name GPUs allocated to this process, as `NAME=value`."""
    return [f"{name}={os.environ[name]}" for name in GPU_VARIABLES if os.environ.get(name) not in (None, "", "-1")]


def missing_gpus() -> str | None:
    """Return why torch does not find this machine's GPU, and what to do. None if there is no GPU or it is hidden."""
    is_hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or (
        "SLURM_JOB_ID" in os.environ and not allocated_gpus()  # a job without GPUs on a node that has some
    )
    has_gpu = any(DRIVER_FOLDER.glob("gpus/*")) or CONTROL_DEVICE.exists()  # some containers hide the folder
    if is_hidden or not has_gpu:
        return None
    if (cuda := torch.version.cuda) is None:
        return f"torch {torch.__version__} is a build for CPUs: install its default build (docs/installation.md)"
    version = DRIVER_FOLDER / "version"
    driver = re.search(r"Kernel Module\D*(\d+)(\.\d+)*", version.read_text() if version.exists() else "")
    needed = FIRST_DRIVERS.get(cuda.partition(".")[0], 0)
    if driver is not None and int(driver[1]) < needed:
        return (
            f"NVIDIA's driver {driver[1]} is too old for torch {torch.__version__}, which needs {needed}: update it, "
            "or install torch from PyTorch's index for cu126 (docs/installation.md)"
        )
    return f"torch {torch.__version__} (CUDA {cuda}) finds no GPU: check `nvidia-smi` and permissions of /dev/nvidia*"


def show_driver_to_triton() -> None:
    """Set the CUDA driver's folder for Triton, which calls `ldconfig`. Some containers do not list the driver there.

    torch has loaded the driver when a GPU is in use. Otherwise nothing is set.
    """
    libraries = LOADED_LIBRARIES.read_text() if LOADED_LIBRARIES.exists() else ""
    if driver := re.search(r"(/\S*)/libcuda\.so", libraries):
        os.environ.setdefault("TRITON_LIBCUDA_PATH", driver[1])
