"""Several GPUs in one machine run as many GPU jobs at once, one per GPU. A script stands in for nvidia-smi."""

import fcntl
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from docmt import gpu_locks
from docmt.cli.run import limit_gpus

ROOT = Path(__file__).parents[1]
FIRST, SECOND = (f"GPU-{number}0bf21fc-51c8-dd37-9ec3-f4571f8a9a5d" for number in (1, 2))
LIST = f"""GPU 0: NVIDIA H100 80GB HBM3 (UUID: {FIRST})
  MIG 1g.10gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: {SECOND})
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with two GPUs, and its folder for temporary files."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n[ $1 = --list-gpus ] && cat <<'EOF'\n{LIST}EOF\n")
    program.chmod(0o755)
    for name in list(os.environ):
        if name.startswith(("SLURM", "CUDA")):
            monkeypatch.delenv(name)
    monkeypatch.setenv(gpu_locks.LOCAL_JOBS, "")  # restored afterwards
    monkeypatch.delenv(gpu_locks.LOCAL_JOBS)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(gpu_locks, "_held", held := {})
    yield tmp_path
    for file in held.values():
        os.close(file)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [(None, [FIRST, SECOND]), ("1", ["1"]), ("0, 2", ["0", "2"]), ("", []), ("-1", []), ("GPU-abc", ["GPU-abc"])],
)
def test_visible_gpus_are_the_chosen_ones_or_all(devices, expected, machine, monkeypatch):
    if devices is not None:
        monkeypatch.setenv(gpu_locks.VISIBLE, devices)
    assert gpu_locks.visible_gpus() == expected


@pytest.mark.parametrize("script", [None, "#!/bin/sh\nexit 9\n"], ids=["no driver", "broken driver"])
def test_a_machine_without_gpus_has_none(script, machine, monkeypatch):
    if script is None:
        monkeypatch.setenv("PATH", str(machine))
    else:
        (machine / "bin/nvidia-smi").write_text(script)
    assert gpu_locks.visible_gpus() == []


@pytest.mark.parametrize(
    ("environment", "number", "expected"),
    [
        ({}, 1, FIRST),
        ({"CUDA_VISIBLE_DEVICES": "3,1"}, 1, "3"),
        ({}, 2, None),
        ({}, 3, None),
        ({}, 0, None),
        ({"CUDA_VISIBLE_DEVICES": "1"}, 1, "1"),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, ""),
        ({"SLURM_JOB_ID": "7"}, 1, None),
        ({"SLURM_JOB_ID": "7", "DOCMT_LOCAL_JOBS": "1"}, 1, FIRST),
    ],
)
def test_a_job_takes_what_it_needs(environment, number, expected, machine, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    gpu_locks.claim_gpus(number)
    assert os.environ.get(gpu_locks.VISIBLE) == expected


@pytest.mark.parametrize(("number", "devices", "expected"), [(1, "0,1", "1"), (1, "1,0", "1"), (2, "0,1", "0")])
def test_a_gpu_has_one_lock_whatever_its_name(number, devices, expected, machine):
    """A job that uses all visible GPUs locks them as well. Another job shares the first GPU."""
    gpu_locks.claim_gpus(number)
    process, gpu = claim(os.environ | {gpu_locks.VISIBLE: devices})
    _, messages = process.communicate()
    assert gpu == expected
    assert ("sharing 0" in messages) == (number == 2)


@pytest.mark.parametrize("umask", [0o077, 0o022])
def test_all_users_may_lock_a_gpu(umask, machine):
    before = os.umask(umask)
    gpu_locks.claim_gpus(2)
    os.umask(before)
    files = list(machine.glob("docmt-gpu-*.lock"))
    assert [path.stat().st_mode & 0o777 for path in files] == [0o644, 0o644]


def test_unreadable_lock_means_in_use(machine, caplog):
    (machine / f"docmt-gpu-{FIRST}.lock").symlink_to(machine / "missing/file")
    gpu_locks.claim_gpus()
    assert os.environ[gpu_locks.VISIBLE] == SECOND
    assert not caplog.records


def test_lock_is_as_new_as_its_job(machine):
    file = machine / f"docmt-gpu-{FIRST}.lock"
    file.touch()
    os.utime(file, (1, 1))
    gpu_locks.claim_gpus()
    assert file.stat().st_mtime > 1


def test_a_lock_file_deleted_meanwhile_locks_nothing(machine, monkeypatch):
    lock = fcntl.flock

    def delete_and_lock(file, operation):
        (machine / f"docmt-gpu-{FIRST}.lock").unlink(missing_ok=True)
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", delete_and_lock)
    gpu_locks.claim_gpus()
    assert os.environ[gpu_locks.VISIBLE] == SECOND


CLAIM = "import os, sys; from docmt.gpu_locks import *; claim_gpus(); print(os.environ[VISIBLE], flush=True)"


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def claim(environment=None):
    """A process that claims a GPU and waits for the end of its input, and the GPU."""
    command = [sys.executable, "-c", f"{CLAIM}; sys.stdin.read()"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT, env=environment, **PIPES)
    return process, process.stdout.readline().strip()


def test_parallel_jobs_have_different_gpus(machine, caplog):
    (first, gpu), (second, other) = claim(), claim()
    assert (gpu, other) == (FIRST, SECOND)
    with caplog.at_level(logging.WARNING):
        gpu_locks.claim_gpus()
    assert os.environ[gpu_locks.VISIBLE] == FIRST
    assert f"all GPUs are in use by other jobs of docmt: sharing {FIRST}" in caplog.text
    del os.environ[gpu_locks.VISIBLE]
    second.send_signal(signal.SIGKILL)
    second.wait()
    third, again = claim()
    assert again == SECOND
    for process in (first, third):
        process.communicate()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--cores", "5"], ["--cores", "5", "--resources", "gpu=2"]),
        (["--resources", "gpu=1"], ["--resources", "gpu=1"]),
        (["--resources=gpu=1"], ["--resources", "gpu=1"]),
        (["--resources=mem_mb=9"], ["--resources", "gpu=2", "mem_mb=9"]),
        (["--resources", "mem_mb=9", "--quiet"], ["--resources", "gpu=2", "mem_mb=9", "--quiet"]),
    ],
)
def test_as_many_jobs_as_gpus(options, expected, machine):
    assert limit_gpus(options) == expected


def test_without_gpus_their_number_limits_nothing(machine, monkeypatch):
    monkeypatch.setenv(gpu_locks.VISIBLE, "")
    assert limit_gpus(["--cores", "5"]) == ["--cores", "5"]


def test_all_free_gpus_are_taken(machine, monkeypatch):
    gpu_locks.claim_gpus()
    assert gpu_locks.claim_more([FIRST, SECOND])
    with monkeypatch.context() as other:  # another process
        other.setattr(gpu_locks, "_held", {})
        assert not gpu_locks.claim_more([FIRST, SECOND])
        other.setenv("SLURM_JOB_ID", "1")  # which has chosen
        assert gpu_locks.claim_more([FIRST, SECOND])
