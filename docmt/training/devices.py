"""Devices and precision of a training, checked against the visible GPUs."""

import logging
import os

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy

from docmt.errors import UserError

log = logging.getLogger(__name__)

GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
"""Environment variables that name the GPUs allocated to the process."""

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""Environment variables of torch's allocator: the name that all versions know, and the newer one."""
CAPABILITY_WITH_BFLOAT16 = (8, 0)
"""The first compute capability with bfloat16, TF32 and flash attention (Ampere)."""
MIN_WIDTH_FOR_BFLOAT16 = 256
"""On a CPU, narrower models lose more time to conversion than they gain (docs/experiments/performance.md)."""


def make_fabric(precision: str, accelerator: str, *, width: int, devices: int = 1, nodes: int = 1) -> Fabric:
    """Set up devices (`devices` per node) and precision, and connect the processes of all devices.

    Raises UserError when the visible devices are not as requested.
    """
    is_gpu = _choose_gpu(accelerator, devices)
    if is_gpu:
        prepare_cuda(precision)
    fabric = Fabric(
        accelerator="cuda" if is_gpu else "cpu",
        devices=devices,
        num_nodes=nodes,
        # Gradients are views of the buckets that devices exchange: no second copy of them in memory.
        strategy=DDPStrategy(gradient_as_bucket_view=True) if devices * nodes > 1 else "auto",
        precision="bf16-mixed" if uses_bfloat16(precision, is_gpu=is_gpu, width=width) else "32-true",
        # Explicit, since Lightning would assume that srun started any process in a Slurm job for it.
        plugins=[LightningEnvironment()],
    )
    if devices * nodes > 1:
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # importing it has set its level
        fabric.launch()
    return fabric


def prepare_cuda(precision: str) -> None:
    """Set what torch reads when CUDA starts."""
    if not any(name in os.environ for name in ALLOCATOR_VARIABLES):
        # Segments that grow leave no gaps between batches of different sizes.
        os.environ[ALLOCATOR_VARIABLES[0]] = "expandable_segments:True"
    # A switch of the whole process, which torch reads in every product.
    torch.backends.cuda.matmul.allow_tf32 = precision != "float32"


def matmul_dtype(fabric: Fabric) -> torch.dtype:
    """Data type of matrix products."""
    return torch.bfloat16 if fabric.strategy.precision.precision == "bf16-mixed" else torch.float32


def uses_bfloat16(precision: str, *, is_gpu: bool, width: int) -> bool:
    """Whether a setting means bfloat16 for a model of this width on this machine."""
    if is_gpu and torch.cuda.get_device_capability() < CAPABILITY_WITH_BFLOAT16:
        if precision in ("auto", "fastest", "bfloat16"):
            log.warning("this GPU has no bfloat16: training in float32, without flash attention")
        return False
    has_bfloat16 = is_gpu or cpu_has_bfloat16()
    if precision == "bfloat16" and not has_bfloat16:
        log.warning("this CPU has no bfloat16 instructions: precision float32 or fastest is many times faster here")
    is_faster = is_gpu or (has_bfloat16 and width >= MIN_WIDTH_FOR_BFLOAT16)
    return {"auto": is_gpu, "fastest": is_faster, "bfloat16": True, "tf32": False, "float32": False}[precision]


def cpu_has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices in hardware (AVX-512 BF16 or AMX)."""
    probes = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(probe is not None and probe() for probe in probes)


def _choose_gpu(accelerator: str, devices: int) -> bool:
    """Whether to train on GPUs."""
    if accelerator == "cpu":
        return False
    visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
    # On a desktop, one of several GPUs may be used; in a Slurm job, more visible ones than requested are a mistake.
    if visible == devices or (accelerator == "auto" and visible > devices and "SLURM_JOB_ID" not in os.environ):
        return True
    if visible:
        raise UserError(
            f"--devices {devices}: asked for {devices} per node, but {visible} GPU(s) are visible here: request "
            f"that many from the cluster (per node, not per task), set CUDA_VISIBLE_DEVICES, or use --devices {visible}"
        )
    if accelerator == "gpu":
        raise UserError(
            f"--accelerator gpu: asked for {devices}, but no GPU is visible here: check `nvidia-smi` and "
            "CUDA_VISIBLE_DEVICES, or use --accelerator cpu"
        )
    promises = [f"{name}={os.environ[name]}" for name in GPU_VARIABLES if os.environ.get(name) not in (None, "", "-1")]
    if promises:
        log.warning(
            "GPUs were allocated (%s), but torch sees none: TRAINING ON THE CPU; --accelerator gpu would refuse",
            ", ".join(promises),
        )
    return False
