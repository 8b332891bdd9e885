"""Snakemake with a Snakefile of two rules: reasons for reruns, and requests of its Slurm plugin."""

import re
import shutil
import signal
import threading
import time
from importlib import metadata
from pathlib import Path
from threading import Lock, Semaphore
from types import SimpleNamespace

import pytest
import warm
import yaml
from snakemake.exceptions import WorkflowError
from snakemake.resources import Resources
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra

from docmt.snakemake import TESTED, cores_per_gpu, training_resources
from docmt.snakemake_patches import patch_scheduler_timer, patch_sigterm_deadlock

ROOT = Path(__file__).parents[1]
PROFILES = ("profiles/default", "slurm")
SNAKEFILE = """
rule all:
    input:
        "made/b.txt",


rule first:
    output:
        "made/a.txt",
    params:
        word="one",
    shell:
        "echo {params.word} > {output}"


rule second:
    input:
        "made/a.txt",
    output:
        "made/b.txt",
    shell:
        "cat {input} > {output}"
"""


@pytest.fixture
def snakemake(tmp_path):
    """Run Snakemake on `SNAKEFILE`, after a change. Returns rules with jobs that run or would run."""

    def run(*options, change=("", "")):
        assert change[0] in SNAKEFILE
        (tmp_path / "Snakefile").write_text(SNAKEFILE.replace(*change))
        shutil.copytree(ROOT / "profiles", tmp_path / "profiles", dirs_exist_ok=True)
        done = warm.run("snakemake", ["--cores", "1", "--nocolor", *options], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return {name for name in re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.MULTILINE)} - {
            "all"
        }

    return run


REWORDED = ("echo {params.word}", "echo  {params.word}")


def test_parameters_rerun_and_rewording_does_not(snakemake):
    assert snakemake() == {"first", "second"}
    assert snakemake(change=REWORDED) == set()
    assert snakemake("--dry-run", "--rerun-triggers", "code", change=REWORDED) == {"first", "second"}
    assert snakemake("--dry-run", change=("one", "two")) == {"first", "second"}


def test_waiting_jobs_share_one_timer(monkeypatch):
    class Scheduler:
        _open_jobs = Semaphore(0)

    monkeypatch.setattr(JobScheduler, "_schedule_reevalutation", JobScheduler._schedule_reevalutation)
    patch_scheduler_timer()
    scheduler = Scheduler()
    for _ in range(2):
        for _ in range(5):
            JobScheduler._schedule_reevalutation(scheduler, 0.05)
        timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
        assert all(timer.daemon for timer in timers)
        assert scheduler._open_jobs.acquire(timeout=10)
        time.sleep(0.2)
        assert not scheduler._open_jobs.acquire(blocking=False)


def test_a_run_survives_a_limit_of_threads(monkeypatch):
    class Scheduler:
        _open_jobs = Semaphore(0)

    def refuse(timer):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(JobScheduler, "_schedule_reevalutation", JobScheduler._schedule_reevalutation)
    monkeypatch.setattr(threading.Timer, "start", refuse)
    patch_scheduler_timer()
    scheduler = Scheduler()
    for _ in range(2):
        JobScheduler._schedule_reevalutation(scheduler, 0.01)
        assert scheduler._open_jobs.acquire(blocking=False)


def test_profile_leaves_the_limit_to_slurm():
    """The profile of a workflow overrides `--profile`."""
    ours, slurm = (yaml.safe_load((ROOT / f"{name}/config.yaml").read_text("utf-8")) for name in PROFILES)
    assert not {name for name in ours.keys() & slurm.keys() if ours[name] != slurm[name]}


def test_sigterm_does_not_block(monkeypatch):
    class Scheduler:
        _lock, _open_jobs, _user_kill = Lock(), Semaphore(0), None

    monkeypatch.setattr(JobScheduler, "exit_gracefully", JobScheduler.exit_gracefully)
    patch_sigterm_deadlock()
    scheduler = Scheduler()
    with scheduler._lock:
        JobScheduler.exit_gracefully(scheduler, signal.SIGTERM, None)
    assert scheduler._open_jobs.acquire(timeout=10)
    assert scheduler._user_kill == "graceful"


def test_the_installed_versions_are_those_that_were_tested():
    assert {name: metadata.version(name) for name in TESTED} == TESTED


class JobResources(dict):
    """Resources in the plugin's format, by name or as attributes."""

    __getattr__ = dict.__getitem__


def workflow_with(*settings):
    """A workflow after `--set-resources train:…`."""
    resources = {"train": Resources.parse(list(settings), allow_expressions=True)} if settings else {}
    return SimpleNamespace(resource_settings=SimpleNamespace(overwrite_resources=resources))


def submission(*settings, threads=1):
    """sbatch options for a training that determine where it runs."""
    resources = training_resources(workflow_with(*settings)) | {"cpus_per_gpu": cores_per_gpu(None, threads)}
    resources |= {
        name: value for name, _, value in (each.partition("=") for each in settings) if name in ("gpu_model", "gres")
    }
    job = SimpleNamespace(resources=JobResources(resources), threads=threads)
    validate_slurm_extra(job)
    names = ("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir")
    command = get_submit_command(job, dict.fromkeys(names, "")) + set_gres_string(job)
    wanted = r"--(?:nodes|ntasks|ntasks-per-node|ntasks-per-gpu|cpus-per-\w+|gpus|gpus-per-node|gres|signal)=\S+"
    return set(re.findall(wanted, command))


ONE = {"--nodes=1", "--signal=TERM@120"}
TWO = {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--signal=TERM@120"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], ONE | {"--gpus=1", "--cpus-per-gpu=4"}),
        (["gpu=4"], ONE | {"--gpus=4", "--cpus-per-gpu=4"}),
        (["gpu=0"], ONE | {"--ntasks=1", "--cpus-per-task=1"}),
        (["nodes=2"], TWO | {"--gpus=2", "--gpus-per-node=1", "--cpus-per-gpu=4"}),
        (["nodes=2", "gpu=8"], TWO | {"--gpus=8", "--gpus-per-node=4", "--cpus-per-gpu=4"}),
        (["nodes=2", "gpu_model=a100"], TWO | {"--gpus=a100:2", "--gpus-per-node=a100:1", "--cpus-per-gpu=4"}),
        (["nodes=2", "gpu=0"], TWO | {"--cpus-per-task=1"}),
        (["gres=gpu:a100:2"], ONE | {"--gres=gpu:a100:2", "--cpus-per-gpu=4"}),
        (["nodes=2", "gres=gpu:4"], TWO | {"--gres=gpu:4", "--cpus-per-gpu=4"}),
    ],
)
def test_a_training_requests_its_nodes_gpus_and_cores(settings, expected):
    assert submission(*settings) == expected


def test_threads_are_cores_per_gpu():
    assert "--cpus-per-gpu=6" in submission("gpu=2", threads=6)
    assert "--cpus-per-task=6" in submission("gpu=0", threads=6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], 16000),
        (["gpu=0"], 16000),
        (["gpu=8"], 72000),
        (["nodes=2", "gpu=8"], 40000),
        (["nodes=2"], 16000),
        (["gres=gpu"], 16000),
        (["gpu=0", "gres=gpu:a100:4"], 40000),
    ],
)
def test_resources_follow_from_gpus(settings, expected):
    resources = training_resources(workflow_with(*settings))
    memory = resources["mem_mb"]
    assert 8000 * (1 + max(1, resources["devices"])) == expected
    assert [memory(None, attempt=attempt) for attempt in (1, 2)] == [expected, 2 * expected]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["nodes=2", "gpu=3"], r"3 GPU\(s\) cannot be divided among 2 nodes"),
        (["nodes=0"], "nodes 0, gpu 0: must be whole numbers, at least 1 node"),
        (["nodes=2 * attempt"], "nodes 2 . attempt, gpu 2 . attempt: must be whole numbers"),
    ],
)
def test_nodes_that_cannot_be_requested_are_refused(settings, message):
    with pytest.raises(WorkflowError, match=message):
        training_resources(workflow_with(*settings))
