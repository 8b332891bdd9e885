"""GPU locks, so that concurrent jobs on a machine without a scheduler use different GPUs."""

import contextlib
import fcntl
import logging
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS_FOR_LIST = 20.0
LOCAL_JOBS = "DOCMT_LOCAL_JOBS"
"""Environment variable for jobs that Snakemake runs on the local machine, possibly inside a Slurm allocation."""
_held: dict[Path, int] = {}
"""Open lock files by path. The system unlocks them when the process ends, even if it is killed."""


def visible_gpus() -> list[str]:
    """Return the GPUs that CUDA may use, named as in `CUDA_VISIBLE_DEVICES`. Empty without NVIDIA's driver."""
    if VISIBLE in os.environ:
        names = [name.strip() for name in os.environ[VISIBLE].split(",")]
        return names if names[0] not in ("", "-1") else []
    return _identifiers()


def first_gpu() -> str | None:
    """Return the identifier of the first visible GPU (`GPU-…`), or None."""
    name = next(iter(visible_gpus()), None)
    return _slots([name]).get(name, name) if name else None


def _slots(names: Sequence[str]) -> dict[str, str]:
    """Return identifiers by slot number, if GPUs are named by numbers."""
    # CUDA counts in this order only with CUDA_DEVICE_ORDER=PCI_BUS_ID; with equal GPUs it mostly does so anyway.
    are_numbers = any(name.isdecimal() for name in names)
    return {str(slot): identifier for slot, identifier in enumerate(_identifiers() if are_numbers else ())}


def _identifiers() -> list[str]:
    """Return the identifiers of all GPUs, in slot order."""
    try:
        command = ["nvidia-smi", "--list-gpus"]
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=SECONDS_FOR_LIST
        )
    except (OSError, subprocess.SubprocessError):
        return []
    # By identifier: CUDA counts the fastest GPU first, nvidia-smi the one in the first slot.
    return re.findall(r"^GPU \d+: .*\(UUID: (GPU-[0-9a-f-]+)\)", done.stdout, re.MULTILINE)


def claim_gpus(number: int = 1) -> None:
    """Reserve GPUs for this process until it ends, and set `CUDA_VISIBLE_DEVICES`.

    Call this before CUDA starts. In a Slurm job, Slurm has already chosen the GPUs, unless Snakemake runs several jobs
    inside the allocation. If too few GPUs are free, some are shared, with a warning.
    """
    if _are_chosen() or _held or number < 1:
        return
    names = visible_gpus()
    if number > len(names):
        return
    free = _locked(names, number)
    shared = [name for name in names if name not in free][: number - len(free)]
    if shared:
        log.warning("all GPUs are in use by other jobs of docmt: sharing %s", ", ".join(shared))
    if number < len(names):
        os.environ[VISIBLE] = ",".join([*free, *shared])


def claim_more(names: Sequence[str]) -> bool:
    """Reserve further GPUs until this process ends. Returns True if no other docmt job uses any of them."""
    return _are_chosen() or len(_locked(names, len(names))) == len(names)


def _are_chosen() -> bool:
    """True if Slurm has assigned the GPUs of this process, which no other job can then use."""
    return "SLURM_JOB_ID" in os.environ and LOCAL_JOBS not in os.environ


def _locked(names: Sequence[str], number: int) -> list[str]:
    """Lock up to `number` GPUs and return their names."""
    slots, free = _slots(names), list[str]()
    for name in names:
        if len(free) < number and _lock(slots.get(name, name)):
            free.append(name)
    return free


def _lock(name: str) -> bool:
    """Lock the file of a GPU in the common temporary folder. Returns False if another process holds the lock."""
    path = Path(tempfile.gettempdir()) / f"docmt-gpu-{re.sub(r'[^A-Za-z0-9-]', '_', name)}.lock"
    if path in _held:
        return True
    try:
        with contextlib.suppress(FileExistsError):
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            os.fchmod(file, 0o644)  # regardless of the umask, since other users also lock it
            os.close(file)
        file = os.open(path, os.O_RDONLY)  # may be opened only for reading, which is enough to lock it
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(OSError):  # another user's file
            os.utime(file)  # old files in this folder may be deleted
        if not os.path.samestat(os.fstat(file), path.stat()):
            raise FileNotFoundError(path)
    except OSError:
        os.close(file)
        return False
    _held[path] = file
    return True
