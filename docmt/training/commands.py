"""`docmt train`."""

import logging
import os
import sys
from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from docmt.commands import CommandGroup, Threads, settings_at
from docmt.gpu_locks import claim_gpus
from docmt.model_owners import record_owner
from docmt.snakemake import CORES_PER_GPU
from docmt.training.launching import is_lost_peer, launch, note_lost_peer
from docmt.training.settings import RunSettings, TrainingFiles, TrainingOptions

command = CommandGroup("train")


@command.default
def train(
    *,
    settings: Annotated[RunSettings, settings_at("train")],
    files: TrainingFiles,
    seed: Annotated[int, Parameter(validator=Number(gte=0, lt=10**9))] = 1,
    threads: Threads = 1,
    accelerator: Literal["auto", "cpu", "gpu"] = "auto",
    devices: int = 1,
    nodes: int = 1,
    micro_batch_tokens: int = 0,
    options: TrainingOptions = TrainingOptions(),
    fingerprint: str | None = None,
) -> int:
    """Train a model. To resume after an interruption, run the same command again.

    After a signal, the exit code is 128 + its number.

    Example:
        docmt train --settings @system.json --train instances/train --dev instances/dev --vocabulary vocabulary.txt
        --pipeline pipeline.json --checkpoints checkpoints --history history.csv --out model.pt --threads 2

    Args:
        settings: `{"model": {…}, "training": {…}}` as JSON or @FILE. `docmt config manual` lists the keys.
        seed: random seed of initialization, batch order and dropout.
        accelerator: type of the devices. `auto`: GPUs if there are any.
        devices: devices per node, with one process each. 0: one process on the CPU.
        nodes: number of nodes, each of which runs the same command.
        micro_batch_tokens: maximum number of tokens that a device computes at once. Updates stay the same. 0: fill GPU
            memory, or max_batch_tokens on a CPU.
        fingerprint: hash of all settings and data, recorded in the model. Default: hash of --settings.
    """
    if devices == 0:
        accelerator, devices = "cpu", 1
    # Before the processes of its devices start; other nodes of a Slurm job have GPUs of other names.
    if accelerator != "cpu" and "LOCAL_RANK" not in os.environ and (nodes == 1 or "SLURM_JOB_ID" not in os.environ):
        claim_gpus(devices)
    n_processes = devices * nodes
    if n_processes > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    # By default, every process has as many compilers as the machine has cores, up to 32.
    n_compilers = max(threads, min(CORES_PER_GPU, len(os.sched_getaffinity(0)) // max(devices, 1)))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(n_compilers))
    code = launch(sys.argv[1:], devices=devices, nodes=nodes)
    if code is not None:
        return code
    is_first = not any(int(os.environ.get(name, 0)) for name in ("LOCAL_RANK", "NODE_RANK"))
    if n_processes > 1 and not is_first:  # the first of several processes logs for all
        logging.getLogger("docmt").setLevel(logging.ERROR)

    import torch

    from docmt.training import run
    from docmt.training.agreement import Interrupted

    torch.set_num_threads(threads)
    if files.init is not None and files.init.name == "config.json":
        # A rule of the workflow needs a file as its input: it names this one of a published model.
        files = replace(files, init=files.init.parent)
    if is_first:
        record_owner(files.out.parent)
    try:
        run.train(
            settings,
            files,
            seed=seed,
            accelerator=accelerator,
            devices=devices,
            nodes=nodes,
            micro_batch_tokens=micro_batch_tokens or None,
            options=options,
            model_fingerprint=fingerprint,
        )
    except Interrupted as interruption:
        return 128 + interruption.signal_number
    except RuntimeError as error:
        if n_processes == 1 or not is_lost_peer(error):
            raise
        return note_lost_peer(error)
    return 0
