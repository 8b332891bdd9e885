"""`docmt bench gpu`, which runs `benchmarks/gpu` of the repository."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from docmt.commands import CommandGroup, OutFile, Positive
from docmt.errors import UserError

ROOT = Path(__file__).parents[2]

commands = CommandGroup("bench", help="Check GPU results against the CPU, and benchmark a GPU.")


@commands.command
def gpu(
    *,
    out: OutFile = Path("bench-gpu.json"),
    only: list[str] | None = None,
    device: Literal["cuda", "cpu"] = "cuda",
    size: str = "",
    tokens: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    minutes: float = 7.0,
    jobs: Positive = 1,
) -> int:
    """Check GPU results against the CPU, and benchmark the GPU (docs/gpu.md).

    The command needs a clone of the repository, but neither network nor corpora. The exit code is 1 if a row FAILED.

    Example:
        docmt bench gpu --jobs 12 --out bench-gpu.json

    Args:
        out: JSON file to write, updated after every row. Send it to us.
        only: rows to run, by name, by the part before the slash, or by a pattern such as `*/rst_mix`.
        device: cpu runs a small trial of the command without a GPU.
        size: model size. Default: base on a GPU, tiny on a CPU.
        tokens: source tokens per measured update. 0: 16,384 on a GPU, 1,024 on a CPU.
        minutes: time limit, after which no further row starts.
        jobs: number of processes for the checks. A process needs a core and 2 GiB GPU memory.
    """
    if not (ROOT / "benchmarks/gpu").is_dir():
        raise UserError(
            f"docmt bench gpu: {ROOT} has no benchmarks/gpu: clone the repository, and `pip install -e .` there"
        )
    sys.path.insert(0, str(ROOT))
    from benchmarks.gpu.acceptance import check_gpu

    return check_gpu(out=out, only=only, device=device, size=size, tokens=tokens, minutes=minutes, jobs=jobs)
