"""Devices and precision for a training, checked against the visible GPUs."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.strategies.ddp import DDPStrategy
from torch import nn
from typing_extensions import override

from docmt.errors import UserError
from docmt.models.gpus import (
    CAPABILITY_WITH_BFLOAT16,
    CAPABILITY_WITH_TENSOR_CORES,
    allocated_gpus,
    check_gpus,
    missing_gpus,
)
from docmt.models.precisions import cpu_has_bfloat16, fastest_precision
from docmt.training.checkpoints import CheckpointFolder

log = logging.getLogger(__name__)

# The name that all versions of torch know, and the newer one.
ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
FABRIC_PRECISIONS: dict[torch.dtype, Literal["32-true", "bf16-mixed", "16-mixed"]]
FABRIC_PRECISIONS = {torch.float32: "32-true", torch.bfloat16: "bf16-mixed", torch.float16: "16-mixed"}
DTYPES: dict[str, torch.dtype] = {name: dtype for dtype, name in FABRIC_PRECISIONS.items()}
MEASURED_BATCH = (40, 26)  # sentences and their tokens


class Replicas(DDPStrategy):
    """A model in every process, with the initial weights of the first. The trainer exchanges gradients."""

    @override
    def setup_module(self, module: nn.Module) -> nn.Module:  # pyright: ignore[reportIncompatibleMethodOverride]
        for tensor in module.state_dict().values():
            torch.distributed.broadcast(tensor, 0)
        return module


def make_fabric(
    precision: str, accelerator: str, *, width: int, devices: int = 1, nodes: int = 1, checkpoints: Path | None = None
) -> Fabric:
    """Set up devices (`devices` per node) and precision, and connect the processes.

    The folder `checkpoints` keeps the precision that was measured to be fastest on a CPU.
    """
    is_gpu = _choose_gpu(accelerator, devices)
    if is_gpu:
        prepare_cuda(precision)

    def connect(dtype: torch.dtype) -> Fabric:
        fabric = Fabric(
            accelerator="cuda" if is_gpu else "cpu",
            devices=devices,
            num_nodes=nodes,
            strategy=Replicas() if devices * nodes > 1 else "auto",
            precision=FABRIC_PRECISIONS[dtype],
            # Explicit, since Lightning would assume that srun started any process in a Slurm job for it.
            plugins=[LightningEnvironment()],
        )
        if devices * nodes > 1:
            logging.getLogger("lightning_fabric").setLevel(logging.WARNING)  # importing it has set its level
            fabric.launch()
        return fabric

    if is_gpu or precision != "fastest":
        return connect(product_type(precision, is_gpu=is_gpu, width=width))
    # Times differ between processes and sessions: the first process of the first session decides for all.
    fabric, dtype = connect(torch.float32), torch.float32
    if fabric.is_global_zero:
        folder = None
        if checkpoints:
            folder = CheckpointFolder(checkpoints)
        noted = ""
        if folder:
            noted = folder.load_hint("precision", "cpu")
        dtype = DTYPES.get(noted) or product_type(precision, is_gpu=False, width=width)
        if folder and noted not in DTYPES:
            folder.save_hint("precision", "cpu", FABRIC_PRECISIONS[dtype])
    dtype = fabric.broadcast(dtype)
    if dtype == torch.float32:
        return fabric
    return connect(dtype)


def prepare_cuda(precision: str) -> None:
    """Set the variables that torch reads when CUDA starts."""
    if torch.version.hip:
        log.info("AMD GPU: attention uses padded batches without docmt's kernels (untested on AMD)")
    if not any(name in os.environ for name in ALLOCATOR_VARIABLES):
        # Segments that grow leave no gaps between batches of different sizes.
        os.environ[ALLOCATOR_VARIABLES[0]] = "expandable_segments:True"
    # A switch of the whole process, which torch reads in every product.
    torch.backends.cuda.matmul.allow_tf32 = precision != "float32"
    torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for each shape, in 0.2 to 0.9 seconds


def product_type(precision: str, *, is_gpu: bool, width: int) -> torch.dtype:
    """Return the dtype of matrix products for a precision setting, a model width and this machine."""
    if precision in ("float32", "tf32"):
        return torch.float32
    if precision == "float16":
        if not is_gpu:
            raise UserError("training.precision: float16 works only on a GPU: use fastest, or float32")
        return torch.float16
    if is_gpu:
        capability = torch.cuda.get_device_capability()
        if capability >= CAPABILITY_WITH_BFLOAT16:
            return torch.bfloat16
        if precision == "fastest" and capability >= CAPABILITY_WITH_TENSOR_CORES:
            return torch.float16
        advice = ""
        if capability >= CAPABILITY_WITH_TENSOR_CORES:
            advice = "; fastest uses float16"
        log.warning("this GPU has no bfloat16: training in float32, without flash attention%s", advice)
        return torch.float32
    if precision == "bfloat16":
        if not cpu_has_bfloat16():
            log.warning("this CPU has no bfloat16 instructions: precision float32 or fastest will be many times faster")
        return torch.bfloat16
    if precision == "auto" or not cpu_has_bfloat16():
        return torch.float32
    # Conversions count as well as products: narrow models lose more time to the former than they gain in the latter.
    # The layer draws random numbers, which must not be the training's.
    with torch.random.fork_rng(devices=[]):
        layer = nn.TransformerEncoderLayer(width, 1, 4 * width, batch_first=True)

        def step(dtype: torch.dtype) -> None:
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                states = layer(torch.ones(*MEASURED_BATCH, width))
            states.sum().backward()

        types = {"float32": torch.float32, "bfloat16": torch.bfloat16}
        return types[fastest_precision({name: partial(step, dtype) for name, dtype in types.items()})]


def _choose_gpu(accelerator: str, devices: int) -> bool:
    """True to train on GPUs. Raises UserError if the visible GPUs are not the requested ones."""
    if accelerator == "cpu":
        return False
    visible = 0
    if torch.cuda.is_available():
        visible = torch.cuda.device_count()
    # On a desktop, one of several GPUs may be used. In a Slurm job, more visible GPUs than requested are a mistake.
    if visible == devices or (accelerator == "auto" and visible > devices and "SLURM_JOB_ID" not in os.environ):
        check_gpus()
        return True
    if visible:
        raise UserError(
            f"--devices {devices}: {devices} GPU(s) per node requested, but {visible} visible here: request this "
            "number from the cluster (per node, not per task), set CUDA_VISIBLE_DEVICES, or use --devices "
            f"{visible}"
        )
    reason = missing_gpus()
    if accelerator == "gpu":
        advice = reason or "check `nvidia-smi` and CUDA_VISIBLE_DEVICES"
        message = f"--accelerator gpu: {devices} GPU(s) requested, but none is visible here: {advice}"
        raise UserError(f"{message}, or use --accelerator cpu")
    promises = allocated_gpus()
    if promises:
        log.warning(
            "GPUs were allocated (%s), but torch finds none: TRAINING ON THE CPU (--accelerator gpu makes this an "
            "error)",
            ", ".join(promises),
        )
    if reason:
        log.warning("TRAINING ON THE CPU, although this machine has a GPU: %s", reason)
    return False
