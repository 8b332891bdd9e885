"""One process per device, started here or by `srun`. When one fails, all end and the cause is shown.

torchrun fails `test_signal_reaches_all_processes` (tests/training): after a signal it ends
with a traceback and exit code 1, or leaves the processes behind. It also needs 227 MB, while this process needs 19.
Lightning's launcher does not forward signals, and kills all processes when one fails.
"""

import contextlib
import logging
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from docmt.errors import UserError

log = logging.getLogger(__name__)

LAUNCHED = "DOCMT_LAUNCHED"  # environment variable of the processes started here
REASONS = "DOCMT_REASONS"
"""Environment variable with a folder. Processes that lost another process write the whole error there."""
LOST_PEER = 75  # exit code of a process that ended because another one did
SECONDS_TO_END = 15.0  # time for the other processes to end by themselves after one has failed
SECONDS_BETWEEN_POLLS = 0.05
SECONDS_FOR_CAUSE = 2 * SECONDS_TO_END
"""Time that a node without a failure of its own leaves the failing node to report, before srun kills it."""
SECONDS_FOR_FIRST = 5.0  # time that later nodes leave the first one to report a failure of all nodes
PROGRAM = (sys.executable, "-P", "-m", "docmt.cli.main")
"""docmt as this process runs it, regardless of the current folder."""
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)  # signals that ask a training to stop


def launch(arguments: Sequence[str], *, devices: int, nodes: int) -> int | None:
    """Start `docmt` with some arguments for all devices on this node (`devices` per node) and wait for all processes.

    All nodes must run the same command. In the script of a Slurm job with several nodes, this process becomes an `srun`
    that starts it on every node. Starts nothing if all processes already exist (`srun` with one task per device, or
    another launcher that sets LOCAL_RANK). Returns the exit code, or None if this process is one that trains.
    """
    if min(devices, nodes) < 1:
        raise UserError(f"--devices {devices} --nodes {nodes}: must be at least 1 each")
    if devices * nodes == 1:
        return None
    if os.environ.pop(LAUNCHED, None):
        threading.Thread(target=_end_with_launcher, daemon=True, name="end-with-launcher").start()
    if "LOCAL_RANK" in os.environ:
        return None
    # In a job, but in no step of it, and nobody else (who would set NODE_RANK) starts the other nodes.
    if nodes > 1 and "SLURM_JOB_ID" in os.environ and not {"SLURM_STEP_NUM_TASKS", "NODE_RANK"} & os.environ.keys():
        _become_srun(arguments, nodes)
    tasks = int(os.environ.get("SLURM_STEP_NUM_TASKS", 1))
    address = _address(os.environ, nodes)
    if tasks == devices * nodes and tasks != nodes:
        os.environ.update(address, LOCAL_RANK=os.environ["SLURM_LOCALID"], WORLD_SIZE=str(tasks))
        return None
    if tasks != nodes:
        raise UserError(
            f"--devices {devices} --nodes {nodes}: srun started {tasks} tasks: start one per device "
            f"(--nodes={nodes} --ntasks-per-node={devices}) or one per node (--nodes={nodes} --ntasks-per-node=1)"
        )
    with tempfile.TemporaryDirectory() as reasons:
        environment = {**os.environ, **address, LAUNCHED: "1", REASONS: reasons, "WORLD_SIZE": str(devices * nodes)}
        with _processes(arguments, environment, devices) as processes:
            return _wait(processes, Path(reasons), node=int(address["NODE_RANK"]), nodes=nodes)


def is_lost_peer(error: RuntimeError) -> bool:
    """True if an error only reports that another process in the training is gone."""
    signs = r"gloo|nccl|Connection (closed|reset|refused)|Broken pipe|ProcessGroup|TCPStore|DistStore"
    return re.search(signs, f"{type(error)} {error}", re.IGNORECASE) is not None


def note_lost_peer(error: BaseException) -> int:
    """Log the first line of a lost-peer error. Returns the exit code.

    The following lines contain NCCL's messages. They matter if no process failed by itself, and only the launcher can
    find that out.
    """
    text, folder = str(error), os.environ.get(REASONS)
    if folder is None:
        log.error("lost the connection to another process: %s", text)
    else:
        log.info("lost the connection to another process: %s", text.partition("\n")[0])
        Path(folder, os.environ["LOCAL_RANK"]).write_text(text, encoding="utf-8")
    return LOST_PEER


def _become_srun(arguments: Sequence[str], nodes: int) -> None:
    """Replace this process by `srun` with one task per node, which may use all resources of the job on the node.

    Signals to this process then reach srun and are forwarded.
    """
    command = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    command += ["--cpu-bind=none", "--mpi=none", "--input=none"]
    os.environ.setdefault("MASTER_ADDR", socket.gethostname())  # the script runs on the first node
    try:
        os.execvp("srun", [*command, *PROGRAM, *arguments])
    except FileNotFoundError:
        raise UserError(f"--nodes {nodes}: this is a Slurm job, but srun is not on the PATH") from None


def _end_with_launcher() -> None:
    """Kill this process when the pipe from the launcher ends. A killed launcher leaves no trainer behind."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)


def _address(environment: Mapping[str, str], nodes: int) -> dict[str, str]:
    """Return address and port of the first process, and this node's number, from Slurm or the user's environment."""
    if nodes == 1 and int(environment.get("SLURM_STEP_NUM_TASKS", 1)) == 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "NODE_RANK": "0"}
    address = {}
    names = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if names:
        job, step = (
            int(re.sub(r"\D", "", environment.get(name, "")) or 0) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")
        )
        address = {
            "MASTER_ADDR": first_host(names),
            # All nodes must compute the same port, and two steps on a node different ones.
            "MASTER_PORT": str(15000 + (job * 7 + step) % 10000),
            "NODE_RANK": environment.get("SLURM_NODEID", "0"),
        }
    address |= {name: environment[name] for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK") if name in environment}
    if len(address) < 3:
        raise UserError(
            f"--nodes {nodes}: not in a Slurm job: start the command on each node with MASTER_ADDR, MASTER_PORT and "
            "NODE_RANK (from 0) set"
        )
    return address


def first_host(names: str) -> str:
    """Return the first host in a Slurm host list, for example `rack2-05-x` for `rack2-[05-07,11]-x`."""
    first = re.match(r"(?:\[[^\]]*\]|[^,\[])*", names)
    assert first is not None, "matches any text"
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", first[0])


@dataclass
class _Process:
    """A process started here. Its standard error goes to `messages`, or to the user if that is None."""

    rank: int
    host: str  # empty with a single node
    popen: subprocess.Popen[bytes]
    messages: IO[bytes] | None
    forwarded: list[int] = field(default_factory=list)

    def forward(self, number: int) -> None:
        self.forwarded.append(number)
        self.popen.send_signal(number)

    def close(self) -> None:
        self.popen.kill()
        self.popen.wait()
        for file in (self.popen.stdin, self.messages):
            if file is not None:
                file.close()


@contextlib.contextmanager
def _processes(arguments: Sequence[str], environment: dict[str, str], n: int) -> Iterator[list[_Process]]:
    """Start processes, forward signals to all of them, and end them with the block.

    Only the first process on the first node writes to the user. The others log the same or nothing. Their output is
    shown only if they fail.
    """
    processes: list[_Process] = []
    noted: list[int] = []

    def forward(number: int, _: FrameType | None) -> None:
        noted.append(number)
        for process in processes:
            process.forward(number)

    handlers = {number: signal.signal(number, forward) for number in SIGNALS}
    before = int(environment["NODE_RANK"]) * n
    host = ""
    if n < int(environment["WORLD_SIZE"]):
        host = socket.gethostname()
    try:
        for rank in range(n):
            messages = tempfile.TemporaryFile() if before + rank else None  # noqa: SIM115 - closed with its process
            popen = subprocess.Popen(
                [*PROGRAM, *arguments],
                env=environment | {"LOCAL_RANK": str(rank)},
                stdin=subprocess.PIPE,
                stderr=messages,
            )
            processes.append(_Process(before + rank, host, popen, messages))
        for number in noted:  # that came before all were started
            for process in processes:
                process.forward(number)
        yield processes
    finally:
        for process in processes:
            process.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _wait(processes: list[_Process], reasons: Path, *, node: int = 0, nodes: int = 1) -> int:
    """Wait until all have ended. Returns the exit code of the first failure, or 0."""
    deadline = math.inf
    while any(process.popen.poll() is None for process in processes) and time.monotonic() <= deadline:
        if deadline == math.inf and any(process.popen.poll() for process in processes):
            deadline = time.monotonic() + SECONDS_TO_END
        time.sleep(SECONDS_BETWEEN_POLLS)
    failed = [process for process in processes if process.popen.poll()]
    if not failed:
        return 0
    # The cause is a process that was killed, else one that failed by itself, else one that lost another process.
    causes = [process for process in failed if process.popen.returncode != LOST_PEER]
    killed = [process for process in causes if process.popen.returncode < 0]
    cause = min(killed or causes or failed, key=lambda process: process.rank)
    code = cause.popen.returncode
    if nodes > 1:
        # srun kills the other nodes as soon as one ends, so the one that can explain the failure must end first.
        time.sleep(SECONDS_FOR_CAUSE * (code == LOST_PEER) + SECONDS_FOR_FIRST * (node > 0))
    _explain(cause)
    messages = [] if causes else sorted(reasons.iterdir())
    if messages:
        log.error(
            "no process failed by itself; the first lost connection:\n%s", messages[0].read_text(encoding="utf-8")
        )
    if code < 0:
        return 128 - code
    return code


def _explain(cause: _Process) -> None:
    """Show the messages of a failed process, and how it ended if they do not explain it."""
    code = cause.popen.returncode
    # A forwarded signal may kill a process before its handler is set. Or a second one, since Slurm also signals each
    # process itself, may kill it after it has saved its state. Neither is a failure.
    if -code in cause.forwarded:
        return
    has_explained = cause.messages is None or code - 128 in SIGNALS
    if cause.messages is not None:
        cause.messages.seek(0)
        text = cause.messages.read().decode("utf-8", "replace")
        sys.stderr.write(text)
        has_explained = has_explained or bool(text)
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    elif code == LOST_PEER:
        how = "lost the connection to other processes"
    elif has_explained:
        return
    else:
        how = f"ended with exit code {code}"
    log.error(
        "training process %d (pid %d%s) %s: all processes were stopped; the same command resumes from the last "
        "checkpoint",
        *(cause.rank, cause.popen.pid, f" on {cause.host}" if cause.host else "", how),
    )
