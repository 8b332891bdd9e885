"""Patches for faults of Snakemake and its Slurm plugin. docs/upstream.md describes them, with the versions."""

import contextlib
import os
import re
import time
from _thread import start_new_thread
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from threading import Timer
from typing import Any

import snakemake_executor_plugin_slurm as plugin
import snakemake_executor_plugin_slurm_jobstep as jobstep
from snakemake.jobs import GroupJob
from snakemake.persistence.file import FilePersistence
from snakemake.scheduling.job_scheduler import JobScheduler

from docmt.slurm import is_temporary, read_refusal
from docmt.snakemake import ends_with_user_error

FIRST_PAUSE_SECONDS = 30.0
MAX_PAUSE_SECONDS = 600.0
N_ABSENCES = 3
"""Number of answers without a job after which the job has ended. Slurm forgets jobs minutes after their end."""


def patch_scheduler_timer() -> None:
    """Allow only one polling timer. Otherwise every finished job starts another timer, and polling grows."""
    waiting: set[JobScheduler] = set()

    def schedule_once(self: JobScheduler, delay: float) -> None:
        def look() -> None:
            waiting.discard(self)
            self._open_jobs.release()

        if self not in waiting:
            waiting.add(self)
            try:
                _start_timer(delay, look)
            except RuntimeError:  # a login node can limit the number of threads, for a moment
                time.sleep(delay)
                look()

    JobScheduler._schedule_reevalutation = schedule_once


def patch_sigterm_deadlock() -> None:
    """Run the SIGTERM handler in a separate thread. In the main thread, it can wait forever for a lock."""
    stop = JobScheduler.exit_gracefully

    def exit_gracefully(self: JobScheduler, *_: object) -> None:
        start_new_thread(stop, (self,))  # not `Thread`, because starting it also takes a lock

    JobScheduler.exit_gracefully = exit_gracefully


def patch_group_errors() -> None:
    """Print the message of a failed group for each of its jobs. Snakemake drops it, and with it why a job failed."""

    def log_error(self: GroupJob, msg: str | None = None, aux_logs: list[str] | None = None, **details: Any) -> None:
        for job in sorted(self.jobs, key=lambda job: job.rule.name):
            job.log_error(msg, indent=True, aux_logs=aux_logs, **details)

    GroupJob.log_error = log_error


def patch_step_cores() -> None:
    """Give the step inside a Slurm job all cores of the job. The plugin counts them only for GPUs by `--gpus`."""
    n_cores = os.environ.get("SLURM_CPUS_ON_NODE")
    if n_cores is not None:
        choose = jobstep.get_cpu_setting
        jobstep.get_cpu_setting = lambda job, gpu: choose(job, gpu) and f"--cpus-per-task={n_cores}"


def patch_unfinished_marks() -> None:
    """In a job, keep marks of unfinished outputs, because only Snakemake's main process records their settings."""
    FilePersistence._unmark_incomplete = lambda self, key: None


def patch_job_errors() -> None:
    """Wait and submit again if Slurm refuses a job for now, and do not retry a user's error (exit code 2)."""
    report = plugin.Executor.report_job_error
    pauses: dict[Any, float] = {}

    def report_or_wait(self: Any, job_info: Any, msg: str | None = None, **details: Any) -> None:
        job = job_info.job
        refusal = read_refusal(msg or "")
        reason = " ".join((refusal or msg or "").split())
        if is_temporary(reason):
            pause = pauses.get(job, FIRST_PAUSE_SECONDS)
            pauses[job] = min(2 * pause, MAX_PAUSE_SECONDS)
            self.logger.warning(f"no place for job {job.jobid} yet ({reason}): submitted again in {pause:.0f} s")

            def submit() -> None:
                with contextlib.suppress(RuntimeError):  # Snakemake has stopped
                    self._job_submission_executor.submit(self.run_job, job)

            return _start_timer(pause, submit)
        members = job.jobs if job.is_group() else [job]
        if any(ends_with_user_error(Path(log)) for member in members for log in member.log):
            job.attempt = job.restart_times + 1
        return report(self, job_info, f"sbatch refused this job: {refusal}. " if refusal else msg, **details)

    plugin.Executor.report_job_error = report_or_wait


def patch_request_limits() -> None:
    """Limit the minutes and memory of a job to its resources `max_runtime` and `max_mem_mb`.

    Snakemake adds up minutes, memory and also these limits in a group. If a limit is 0, nothing is requested.
    """
    build = plugin.get_submit_command

    def build_within_limits(job: Any, *arguments: Any, **keywords: Any) -> str:
        call = build(job, *arguments, **keywords)
        members = job.jobs if job.is_group() else [job]
        for flag, name in (("-t", "max_runtime"), ("--mem", "max_mem_mb")):
            limits = [member.resources[name] for member in members if member.resources.get(name) is not None]
            request = re.search(rf" {flag} (\d+)", call)
            if limits and request and int(request[1]) > min(limits):
                call = call.replace(request[0], f" {flag} {min(limits)}" if min(limits) else "", 1)
        return call

    plugin.get_submit_command = build_within_limits


def patch_slurm_outages() -> None:
    """Keep jobs while `squeue` fails, and notice jobs that it no longer knows. The plugin would wait forever."""
    query, check = plugin.query_job_status, plugin.Executor.check_active_jobs
    last_answer = time.monotonic()
    absences: dict[str, int] = {}

    async def query_or_wait(command: str, logger: Any) -> tuple[dict[str, str], float | None]:
        nonlocal last_answer
        answer, seconds = await query(command, logger)
        if answer is None:
            minutes = (time.monotonic() - last_answer) / 60
            logger.warning(f"Slurm has not answered for {minutes:.0f} minutes: {command}. Snakemake waits for it.")
            return {}, 0.0
        last_answer = time.monotonic()
        if command.startswith("squeue"):
            for job in absences:
                absences[job] = 0 if job in answer else absences[job] + 1
        return answer, seconds

    async def check_active_jobs(self: Any, active_jobs: list[Any]) -> AsyncGenerator[Any, None]:
        for job in active_jobs:
            absences.setdefault(str(job.external_jobid), 0)
        async for job in check(self, active_jobs):
            if absences[str(job.external_jobid)] < N_ABSENCES:
                yield job
            else:
                self.logger.warning(f"Slurm no longer knows job {job.external_jobid}. Snakemake checks its outputs.")
                self.report_job_success(job)

    plugin.query_job_status, plugin.Executor.check_active_jobs = query_or_wait, check_active_jobs


def _start_timer(seconds: float, function: Callable[[], object]) -> None:
    timer = Timer(seconds, function)
    timer.daemon = True  # Snakemake ends without waiting for it
    timer.start()
