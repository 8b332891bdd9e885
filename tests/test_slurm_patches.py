"""Patches of Snakemake's Slurm plugin, with stand-ins for its jobs and queries. tests/slurm uses a real Slurm."""

import asyncio
import itertools
import logging
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm as plugin
import snakemake_executor_plugin_slurm_jobstep as jobstep
from snakemake.jobs import GroupJob
from snakemake.persistence.file import FilePersistence
from snakemake_interface_executor_plugins.settings import ExecMode

from docmt import snakemake_patches as patches

CALL = "sbatch -A nlp -t 480 --mem 96000 --nodes=1"


@pytest.fixture
def executor(monkeypatch):
    """An executor that reports to lists. Patched functions are restored afterwards."""
    for name in ("check_active_jobs", "report_job_error"):
        monkeypatch.setattr(plugin.Executor, name, getattr(plugin.Executor, name))
    for name in ("query_job_status", "get_submit_command"):
        monkeypatch.setattr(plugin, name, getattr(plugin, name))
    executor = object.__new__(plugin.Executor)
    executor.logger = logging.getLogger("slurm")
    executor.errors, executor.successes, executor.submitted = [], [], []
    executor.report_job_success = executor.successes.append
    executor._job_submission_executor = SimpleNamespace(submit=lambda _, job: executor.submitted.append(job))
    return executor


@pytest.fixture
def reports(executor, monkeypatch):
    monkeypatch.setattr(plugin.Executor, "report_job_error", lambda self, info, msg: self.errors.append(msg))
    return executor.errors


@pytest.fixture
def timers(monkeypatch):
    """Pauses before which a timer would wait. The timers end at once."""
    pauses = []

    def timer(pause, function):
        pauses.append(pause)
        return SimpleNamespace(start=function)

    monkeypatch.setattr(patches, "Timer", timer)
    return pauses


@dataclass(frozen=True)
class Job:
    """A job that can be a dict key."""

    jobid: int
    log: tuple[str, ...] = ()

    def is_group(self):
        return False


def test_each_patch_has_a_described_fault():
    """Another version may need no patch, or another one. Check the faults on this page before you change it."""
    root = Path(__file__).parents[1]
    text = " ".join((root / "docs/upstream.md").read_text(encoding="utf-8").split())
    names = re.findall(r"^def (patch_\w+)", (root / "docmt/snakemake_patches.py").read_text("utf-8"), re.MULTILINE)
    assert set(names) == set(re.findall(r"`(patch_\w+)`", text))
    concerned = re.findall(r"This concerns ([\w-]+) (\d[\d.]*\d)", text)
    assert len(concerned) == text.count("## ") - 1, "each section, except the one about another plugin"
    assert [metadata.version(name.lower()) for name, _ in concerned] == [version for _, version in concerned]


def refusal(*lines):
    words = "\n".join(f"sbatch: error: {line}" for line in lines)
    return f"SLURM sbatch failed. The error message was '{words}'.\n    sbatch call:\n        sbatch --long"


@pytest.mark.parametrize(
    "reason",
    [
        "invalid partition specified: cpux",
        "Invalid account or account/partition combination specified",
        "QOSMaxWallDurationPerJobLimit",
        "Requested node configuration is not available",
        "Memory specification can not be satisfied",
    ],
)
def test_refusal_is_reported_in_one_line(executor, reports, timers, reason):
    patches.patch_job_errors()
    limits = "job submit limit, user's size and/or time limits"  # what Slurm prints for all of them
    second = f"Batch job submission failed: Job violates accounting/QOS policy ({limits})"
    executor.report_job_error(SimpleNamespace(job=Job(7)), refusal(reason, second))
    assert reports == [f"sbatch refused this job: {reason}; {second}. "]
    assert timers == []


@pytest.mark.parametrize(
    "reason",
    ["AssocMaxSubmitJobLimit", "QOSMaxSubmitJobPerUserLimit", "Unable to contact slurm controller (connect failure)"],
)
def test_full_queue_is_waited_for(executor, reports, timers, reason, caplog):
    patches.patch_job_errors()
    job = Job(7)
    for _ in range(7):
        executor.report_job_error(SimpleNamespace(job=job), refusal(reason))
    assert reports == []
    assert timers == [30, 60, 120, 240, 480, 600, 600]
    assert executor.submitted == [job] * 7
    assert f"no place for job 7 yet ({reason}): submitted again in 30 s" in caplog.text


def test_absent_controller_is_waited_for(executor, reports, timers, caplog):
    patches.patch_job_errors()
    message = "Job submission failed with exception: Failed to run sinfo: Unable to contact slurm controller\n"
    executor.report_job_error(SimpleNamespace(job=Job(7)), message)
    assert (reports, timers) == ([], [30])
    assert "slurm controller): submitted again in 30 s" in caplog.text, "one line"


def test_jobs_keep_marks_of_unfinished_outputs(monkeypatch):
    """Outputs of a job whose main process was killed are made again, and not refused for lack of a record."""
    removed = []
    monkeypatch.setattr(FilePersistence, "_unmark_incomplete", lambda self, key: removed.append(key))
    workflow = SimpleNamespace(
        exec_mode=ExecMode.REMOTE,
        execution_settings=SimpleNamespace(keep_metadata=True),
        remote_execution_settings=SimpleNamespace(immediate_submit=False),
    )
    persistence = object.__new__(FilePersistence)
    persistence.dag = SimpleNamespace(workflow=workflow)
    monkeypatch.setattr(FilePersistence, "_clear_cache", lambda self: None)
    monkeypatch.setattr(FilePersistence, "_get_key", lambda self, file: file)
    job = SimpleNamespace(output=["model.pt"])
    asyncio.run(persistence.finished(job))
    assert removed == ["model.pt"], "the fault"
    patches.patch_unfinished_marks()
    asyncio.run(persistence.finished(job))
    assert removed == ["model.pt"]


def test_other_failures_keep_their_message(executor, reports):
    patches.patch_job_errors()
    executor.report_job_error(SimpleNamespace(job=Job(7)), "no space left")
    assert reports == ["no space left"]


def test_group_errors_name_the_reason():
    messages = []
    job = SimpleNamespace(
        rule=SimpleNamespace(name="tokenize"), log_error=lambda msg, **details: messages.append((msg, details))
    )
    patches.patch_group_errors()
    GroupJob.log_error(SimpleNamespace(jobs=[job, job]), "refused", aux_logs=["7.log"], external_jobid="7")
    assert messages == [("refused", {"indent": True, "aux_logs": ["7.log"], "external_jobid": "7"})] * 2


@pytest.mark.parametrize(
    ("log", "attempt"),
    [
        ("12:00:00 INFO update 3\ndocmt: error: loss is nan\n", 3),
        ("docmt: error: loss is nan\nKilled\n", 1),
        ("Traceback\nRuntimeError: CUDA\n", 1),
        ("", 1),
    ],
)
@pytest.mark.parametrize("is_group", [False, True])
def test_user_errors_are_not_retried(executor, monkeypatch, tmp_path, log, attempt, is_group):
    monkeypatch.setattr(plugin.Executor, "report_job_error", lambda *arguments, **details: None)
    patches.patch_job_errors()
    (tmp_path / "job.log").write_text(log)
    job = SimpleNamespace(log=[str(tmp_path / "job.log")], attempt=1, restart_times=2, is_group=lambda: is_group)
    job.jobs = [job, SimpleNamespace(log=[str(tmp_path / "none.log")])]
    executor.report_job_error(SimpleNamespace(job=job), msg="failed")
    assert job.attempt == attempt


@pytest.mark.parametrize(
    ("limits", "call"),
    [
        ({}, CALL),
        ({"max_runtime": 480, "max_mem_mb": 100_000}, CALL),
        ({"max_runtime": 120}, CALL.replace("480", "120")),
        ({"max_mem_mb": 64_000}, CALL.replace("96000", "64000")),
        ({"max_mem_mb": 0}, CALL.replace(" --mem 96000", "")),
    ],
)
@pytest.mark.parametrize("is_group", [False, True])
def test_requests_stay_within_limits(executor, monkeypatch, limits, call, is_group):
    monkeypatch.setattr(plugin, "get_submit_command", lambda *arguments, **keywords: CALL)
    patches.patch_request_limits()
    member = SimpleNamespace(resources=limits)
    other = SimpleNamespace(resources={name: limit + 1 for name, limit in limits.items()})
    # Snakemake adds up the limits of jobs that run side by side.
    sums = {name: 2 * limit + 1 for name, limit in limits.items()}
    resources = sums if is_group else limits
    job = SimpleNamespace(resources=resources, jobs=[other, member], is_group=lambda: is_group)
    assert plugin.get_submit_command(job, {}) == call


@pytest.mark.parametrize(
    ("resources", "setting"),
    [
        ({"cpus_per_gpu": 4, "gres": "gpu:a100:2"}, "--cpus-per-task=8"),
        ({"cpus_per_gpu": 4, "gpu": 2}, "--cpus-per-task=8"),
        ({}, "--cpus-per-task=8"),
        ({"cpus_per_task": -1}, ""),
    ],
)
def test_step_has_all_cores_of_its_job(monkeypatch, resources, setting):
    class Resources(dict):
        __getattr__ = dict.__getitem__

    monkeypatch.setattr(jobstep, "get_cpu_setting", jobstep.get_cpu_setting)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")
    patches.patch_step_cores()
    job = SimpleNamespace(threads=1, resources=Resources(resources))
    assert jobstep.get_cpu_setting(job, "gpu" in resources) == setting


def look(executor, jobs):
    """Active jobs after a query of the queue."""

    async def collect():
        return [job.external_jobid async for job in executor.check_active_jobs(jobs)]

    return asyncio.run(collect())


@pytest.mark.parametrize("minutes", [0.5, 5, 50])
def test_jobs_survive_an_outage_and_are_found(executor, monkeypatch, caplog, minutes):
    """Snakemake asks Slurm every 30 seconds. Job 2 ends during the outage."""
    n_failures = int(2 * minutes)
    answers = iter([{"1": "RUNNING", "2": "RUNNING"}, *[None] * n_failures, *[{"1": "RUNNING"}] * 4])
    seconds = itertools.count(0, 30)
    monkeypatch.setattr(patches, "time", SimpleNamespace(monotonic=lambda: next(seconds)))

    async def query(command, logger):
        answer = next(answers)
        return answer, None if answer is None else 0.1

    async def check(self, jobs):
        await plugin.query_job_status("squeue --name x", self.logger)
        for job in jobs:
            yield job

    monkeypatch.setattr(plugin, "query_job_status", query)
    monkeypatch.setattr(plugin.Executor, "check_active_jobs", check)
    patches.patch_slurm_outages()
    jobs = [SimpleNamespace(external_jobid=name) for name in ("1", "2")]
    active = [look(executor, jobs) for _ in range(n_failures + 4)]
    assert active == [["1", "2"]] * (n_failures + 3) + [["1"]]
    assert executor.successes == jobs[1:]
    assert caplog.text.count("Slurm has not answered") == n_failures
    assert f"has not answered for {minutes:.0f} minutes" in caplog.text
    assert "no longer knows job 2" in caplog.text


def test_failed_query_keeps_jobs_in_the_plugin(executor, monkeypatch, caplog):
    """The plugin's loop, which forgot its jobs after the last attempt."""

    async def query(command, logger):
        return None, None

    monkeypatch.setattr(plugin, "query_job_status", query)
    monkeypatch.setattr(plugin, "get_min_job_age", lambda: None)
    monkeypatch.setattr(plugin, "is_query_tool_available", lambda name: False)
    settings = SimpleNamespace(status_attempts=2, init_seconds_before_status_checks=2, status_command="squeue")
    executor.workflow = SimpleNamespace(executor_settings=settings)
    executor.run_uuid = "x"
    executor._status_query_calls = executor._status_query_total_seconds = executor._status_query_max_seconds = 0
    executor._status_query_min_seconds, executor._status_query_cycle_rows = None, []
    executor._next_seconds_between_status_checks = 2

    class Limiter:
        async def __aenter__(self): ...
        async def __aexit__(self, *error): ...

    executor.status_rate_limiter = Limiter()
    patches.patch_slurm_outages()
    jobs = [SimpleNamespace(external_jobid="1", aux={})]
    assert [look(executor, jobs) for _ in range(5)] == [["1"]] * 5
    assert executor.successes == []
