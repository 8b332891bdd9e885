"""GPU capabilities, energy use, and reasons why torch cannot use a GPU of this machine."""

import ctypes
import os
import re
from pathlib import Path
from typing import Any

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
NVML = "libnvidia-ml.so.1"
"""Library of NVIDIA's driver that nvidia-smi calls."""


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
            index = "the newest CUDA"
            if gpu < CAPABILITY_OF_WHEELS:
                index = "cu126"
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
    cuda = torch.version.cuda
    if cuda is None:
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
    libraries = ""
    if LOADED_LIBRARIES.exists():
        libraries = LOADED_LIBRARIES.read_text()
    driver = re.search(r"(/\S*)/libcuda\.so", libraries)
    if driver:
        os.environ.setdefault("TRITON_LIBCUDA_PATH", driver[1])


class DeviceMeter:
    """A device, and the energy that it has used since the meter was made.

    Args:
        device: device of this process.
        gpu: identifier of the GPU, if another program uses it.
    """

    def __init__(self, device: str | torch.device, *, gpu: str | None = None) -> None:
        self.device, self.gpu = torch.device(device), gpu
        self._start = _millijoules(self)

    def joules(self) -> float | None:
        """Return the energy, also for other processes on the card. None if it is not known, as on a CPU."""
        end = _millijoules(self)
        if self._start is None or end is None:
            return None
        return (end - self._start) / 1000

    def facts(self) -> dict[str, Any]:
        """Return the facts about a job on this device, for its record. `joules` is absent if it is not known."""
        joules = self.joules()
        return {"device": self.device.type, "n_devices": 1} | ({} if joules is None else {"joules": joules})


def _millijoules(meter: DeviceMeter) -> int | None:
    """Return the energy counter of a GPU, which starts when the driver is loaded.

    None without such a counter, as on GPUs before Volta or of AMD.
    """
    if meter.device.type != "cuda":
        return None
    try:
        nvml = ctypes.CDLL(NVML)
    except OSError:
        return None
    # NVML counts GPUs by slot and ignores CUDA_VISIBLE_DEVICES.
    identifier = meter.gpu or f"GPU-{torch.cuda.get_device_properties(meter.device).uuid}"
    handle, energy = ctypes.c_void_p(), ctypes.c_ulonglong()
    failed = (
        nvml.nvmlInit_v2()
        or nvml.nvmlDeviceGetHandleByUUID(identifier.encode(), ctypes.byref(handle))
        or nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy))
    )
    if failed:
        return None
    return energy.value
