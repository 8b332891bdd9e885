"""Resources of training jobs, and readers for Snakemake's logs and records.

Snakemake does not document these formats. They were tested with the versions in `TESTED`. After an upgrade, you should
run `tests/status`, `tests/test_snakemake.py`, `tests/workflow` and `tests/slurm`. Snakemake is only imported inside
functions, so that `docmt status` starts fast.
"""

import ast
import base64
import contextlib
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmt.files import modified

if TYPE_CHECKING:
    from snakemake.workflow import Workflow as SnakemakeWorkflow

TESTED = {"snakemake": "9.27.1", "snakemake-executor-plugin-slurm": "2.8.0"}

SLURM_LOGS = Path(".snakemake/slurm_logs")
"""Folder with the Slurm plugin's job logs. They identify a study's jobs."""

LOCKS = Path(".snakemake/locks")
"""Folder with Snakemake's locks in a study."""

N_LOGS = 3
"""Number of most recent Snakemake log files to read."""

BLOCK = re.compile(r"^(?P<indent>    )?(?P<error>Error in )?(?:local)?(?:rule|checkpoint) (?P<rule>\w+):$")
ENTRY = re.compile(r"^    (?P<key>\w+): (?P<value>.*)$")
SUBMITTED = re.compile(r"^Job (?P<number>\S+) has been submitted with SLURM jobid (?P<job>\S+) ")
SLURM_JOB = re.compile(r"^(?:Job|Submitted array job) .* SLURM job ?ID ", re.MULTILINE | re.IGNORECASE)

CORES_PER_GPU = 4
"""CPU cores per GPU process. They also read and noise instances and write checkpoints."""
NOTICE = "--signal=TERM@120"
"""Slurm signal that tells a training to save, 120 seconds before the time limit. USR1 would end Snakemake inside the
job, and Slurm would then kill the training before it has saved."""


def cores_per_gpu(wildcards: Any, threads: int) -> int:
    """Return the resource `cpus_per_gpu`. It only matters in cluster jobs that request GPUs."""
    return max(CORES_PER_GPU, threads)


def training_resources(workflow: "SnakemakeWorkflow") -> dict[str, Any]:
    """Return resources for the rule `train`, derived from the user's `nodes` and `gpu`, or `gres`.

    By default, a training uses one node with one GPU. The number of nodes is always requested, because Slurm could
    otherwise distribute a job's GPUs over several nodes.

    With several nodes, the training itself starts one task per node with `srun` (docmt.training.launching). The plugin
    must not start the job with `srun`, which the resource `mpi` prevents. The number of tasks is set here, because the
    plugin would request tasks per GPU.

    Returns:
        nodes: number of nodes.
        micro_batch_tokens: maximum number of tokens that a device computes at once. 0: chosen by device memory.
        devices: GPUs per node.
        gpu: GPUs on all nodes together, as counted by the plugin.
        slurm_extra: sbatch options.
        mem_mb: memory per node. It grows with processes and attempts. CUDA and NCCL need 2 to 3 GB before any data.
        mpi, tasks, tasks_per_gpu: only with several nodes.

    Raises:
        WorkflowError: a number is not an integer, or the GPUs cannot be divided evenly among the nodes.
    """
    from snakemake.exceptions import WorkflowError

    overrides = workflow.resource_settings.overwrite_resources.get("train", {})
    values = {name: str(getattr(value, "raw", value)) for name, value in overrides.items()}
    nodes, gpus = values.get("nodes", "1"), values.get("gpu", values.get("nodes", "1"))
    if not (nodes.isdecimal() and gpus.isdecimal() and int(nodes) > 0):
        raise WorkflowError(f"train: nodes {nodes}, gpu {gpus}: must be whole numbers, at least 1 node")
    n_nodes, n_gpus = int(nodes), int(gpus)
    if n_gpus % n_nodes:
        raise WorkflowError(
            f"train: {n_gpus} GPU(s) cannot be divided among {n_nodes} nodes: `gpu` is the total over all nodes"
        )
    devices = n_gpus // n_nodes
    gres = values.get("gres", "").split(":")
    if gres[0] == "gpu":  # per node, such as gpu:a100:2
        devices, n_gpus = int(gres[-1]) if gres[-1].isdecimal() else 1, 0  # the plugin rejects `gpu` next to `gres`
    shared: dict[str, Any] = {"nodes": n_nodes, "devices": devices, "gpu": n_gpus}
    shared["micro_batch_tokens"] = values.get("micro_batch_tokens", 0)
    shared["mem_mb"] = lambda wildcards, attempt: 8000 * (1 + max(1, devices)) * attempt
    if n_nodes == 1:
        return shared | {"slurm_extra": NOTICE}
    model = f"{values['gpu_model']}:" if "gpu_model" in values else ""
    evenly = f" --gpus-per-node={model}{devices}" if n_gpus else ""
    extra = f"{NOTICE} --ntasks-per-node=1{evenly}"
    return shared | {"slurm_extra": extra, "mpi": "srun", "tasks": n_nodes, "tasks_per_gpu": 0}


def slurm_label(comment: str) -> str:
    """Return a job's rule and wildcards from the comment that the plugin sets."""
    return comment.removeprefix("rule_").replace("_wildcards_", " ", 1)


def slurm_logs(folder: Path, rule: str, name: str) -> list[Path]:
    """Return the plugin's Slurm output files `{id}.log` for a job's attempts, oldest first.

    Args:
        folder: study folder.
        rule: rule name.
        name: log file name. The plugin joins wildcard values to folder names. Therefore only letters and digits are
            compared, without `seed` before a number.
    """
    folders = (folder / SLURM_LOGS / f"rule_{rule}").glob("*/")
    files = [
        path for job_folder in folders if _bare(job_folder.name) == _bare(name) for path in job_folder.glob("*.log")
    ]
    return sorted(files, key=lambda path: (modified(path), path.name))


def _bare(name: str) -> str:
    joined = re.sub(r"[^a-z0-9]+", "_", name.lower().replace("-of-", "_"))
    return re.sub(r"_seed(\d+)", r"_\1", joined)


@dataclass(frozen=True)
class Job:
    """A job in Snakemake's messages.

    Attributes:
        rule: rule name.
        reason: reason to run, if the job was announced.
        log: log file, relative to the folder. Empty if the rule has none.
        outputs: output files, relative to the folder.
        job: ID in the cluster's queue, if the job failed.
        is_failed: True if Snakemake reported a failure and has not restarted the job.
        message: Snakemake's error message, without the advice after it.
    """

    rule: str
    reason: str = ""
    log: str = ""
    outputs: tuple[str, ...] = ()
    job: str | None = None
    is_failed: bool = False
    message: str | None = None


@dataclass(frozen=True)
class Workflow:
    """A study's state as recorded by Snakemake.

    Attributes:
        state: `idle`, `running`, `killed` (locked by this host, but Snakemake is not running), or `locked` (by another
            host, where Snakemake can be running or not).
        started: outputs of unfinished jobs.
        jobs: last message on a job, by log file, from the newest message files.
        uses_slurm: True if Snakemake submitted jobs to Slurm, by these message files.
    """

    state: str
    started: frozenset[str] = frozenset()
    jobs: Mapping[str, Job] = field(default_factory=dict)
    uses_slurm: bool = False


def read_workflow(folder: Path) -> Workflow:
    """Read `.snakemake` in a study's folder. If it is missing or unreadable, Snakemake is idle."""
    home = folder / ".snakemake"
    texts = [_read(path) for path in sorted((home / "log").glob("*.snakemake.log"))[-N_LOGS:]]
    jobs: dict[str, Job] = {}
    for text in texts:
        jobs |= {job.log: job for job in read_jobs(text) if job.log}
    state = "idle"
    if any((folder / LOCKS).glob("*.lock")):
        head = texts[-1].splitlines()[:20] if texts else []
        host = next((line.strip().removeprefix("Host: ") for line in head if line.strip().startswith("Host: ")), None)
        if _runs_here(folder):
            state = "running"
        else:
            state = "killed" if host == platform.node() and Path("/proc").is_dir() else "locked"
    uses_slurm = any(SLURM_JOB.search(text) for text in texts)
    return Workflow(state, frozenset(_marked(home / "incomplete")), jobs, uses_slurm)


def last_configuration(folder: Path) -> list[Path]:
    """Return the last run's configuration files in a study folder. Empty without a run.

    Paths inside the study folder are returned relative to `folder`, because the folder can have been moved.
    """
    for log in sorted((folder / ".snakemake/log").glob("*.snakemake.log"), reverse=True):
        text = _read(log)
        working_folder = re.search(r"^  Working directory: (.+)$", text, re.MULTILINE)
        files = re.search(r"^  Config file\(s\): (.+)$", text, re.MULTILINE)
        if working_folder and files:
            names = re.findall(r"""PosixPath\(('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\)""", files[1])
            paths = [Path(ast.literal_eval(name)) for name in names]
            return [
                folder / path.relative_to(working_folder[1]) if path.is_relative_to(working_folder[1]) else path
                for path in paths
            ]
    return []


def read_jobs(text: str) -> Iterator[Job]:
    """Yield the jobs in Snakemake's messages, in order. Restarted and failed jobs appear again."""
    numbers: dict[str, str] = {}
    entries, is_failed, indent = None, False, ""
    for whole in [*text.splitlines(), ""]:
        line = whole.removeprefix(indent)
        if entries is not None:
            entry = ENTRY.match(line)
            if entry:
                entries[entry["key"]] = entry["value"]
                continue
            if not line.startswith(" "):
                yield _job(entries, numbers, is_failed=is_failed)
                entries, indent = None, ""
        block = BLOCK.match(whole)
        if block:
            # Jobs in groups are indented.
            entries, is_failed, indent = {"rule": block["rule"]}, bool(block["error"]), block["indent"] or ""
            continue
        submitted = SUBMITTED.match(line)
        if submitted:
            numbers[submitted["number"]] = submitted["job"]


def _job(entries: dict[str, str], numbers: dict[str, str], *, is_failed: bool) -> Job:
    outputs = tuple(name.removesuffix(" (update)") for name in entries.get("output", "").split(", ") if name)
    log = entries.get("log", "").removesuffix(" (check log file(s) for error details)").split(", ")[0]
    # A job is submitted after it is announced. Therefore an ID that is known now belongs to an earlier attempt.
    job = (entries.get("external_jobid") or numbers.get(entries.get("jobid", ""))) if is_failed else None
    message = entries.get("message", "None").partition(" Detailed failure reason")[0]
    message = None if message == "None" or not is_failed else message
    return Job(entries["rule"], entries.get("reason", ""), log, outputs, job, is_failed, message)


def _marked(folder: Path) -> Iterator[str]:
    """Yield outputs with Snakemake's marks. A mark's name is the path in base64, in pieces if it is long."""
    for mark in folder.rglob("*"):
        if mark.is_file():
            name = "".join(part.removeprefix("@") for part in mark.relative_to(folder).parts)
            with contextlib.suppress(ValueError):  # not an output mark
                yield base64.urlsafe_b64decode(name).decode("utf-8")


def _runs_here(folder: Path) -> bool:
    """True if a Snakemake process on this host works in a folder. Other users' processes can be hidden."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            # `snakemake …`, `python /path/snakemake …`, `python -m snakemake …`; not `bash -c "… snakemake …"`.
            if any(Path(word.decode(errors="replace")).name == "snakemake" for word in words[:4]) and (
                (entry / "cwd").resolve() == folder.resolve()
            ):
                return True
        except OSError:
            continue
    return False


def ends_with_user_error(log: Path) -> bool:
    """True if a job's log ends with docmt's message for exit code 2. Another attempt would fail in the same way."""
    return _read(log).rstrip().rpartition("\n")[2].startswith("docmt: error: ")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
