"""Patches for private functions in Snakemake and its Slurm plugin, to work around bugs.

All bugs are described in docs/upstream.md. The patches were tested with the versions in `docmt.snakemake.TESTED`.
"""

import contextlib
import os
import re
import sys
import time
from _thread import start_new_thread
from collections.abc import AsyncGenerator
from pathlib import Path
from threading import Timer
from typing import Any

from docmt.snakemake import ends_with_user_error

REFUSAL = re.compile(r"The error message was '(.*?)'\.\n", re.DOTALL)
"""Pattern for the words of `sbatch` in the plugin's message, before the whole command line."""
TEMPORARY = re.compile(
    r"MaxSubmit|temporarily unable|Unable to contact slurm|Socket timed out|Connection refused", re.I
)
"""Pattern for refusals that end by themselves: too many jobs in the queue, or a controller that is away.

The words "job submit limit" are not among them, because Slurm also prints them for a time limit of a QOS.
"""
FIRST_PAUSE_SECONDS = 30.0
MAX_PAUSE_SECONDS = 600.0
N_ABSENCES = 3
"""Number of answers without a job after which the job has ended. Slurm forgets jobs minutes after their end."""


def patch_slurm_plugin() -> None:
    """Apply the patches that concern the process which submits jobs."""
    patch_cancelling()
    patch_refused_submissions()
    patch_retries()
    patch_runtime_limit()
    patch_slurm_outages()


def patch_scheduler_timer() -> None:
    """Allow only one polling timer. Otherwise every finished job starts another timer, and polling grows."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    waiting: set[JobScheduler] = set()

    def schedule_once(self: JobScheduler, delay: float) -> None:
        def look() -> None:
            waiting.discard(self)
            self._open_jobs.release()

        if self not in waiting:
            waiting.add(self)
            timer = Timer(delay, look)
            timer.daemon = True  # Snakemake ends without waiting for it
            timer.start()

    JobScheduler._schedule_reevalutation = schedule_once


def patch_sigterm_deadlock() -> None:
    """Run the SIGTERM handler in a separate thread. In the main thread, it can wait forever for a lock."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    stop = JobScheduler.exit_gracefully

    def exit_gracefully(self: JobScheduler, *_: object) -> None:
        start_new_thread(stop, (self,))  # not `Thread`, because starting it also takes a lock

    JobScheduler.exit_gracefully = exit_gracefully


def patch_group_errors() -> None:
    """Print the message of a failed group for each of its jobs. Snakemake drops it, and with it why a job failed."""
    from snakemake.jobs import GroupJob

    def log_error(self: GroupJob, msg: str | None = None, aux_logs: list[str] | None = None, **details: Any) -> None:
        for job in sorted(self.jobs, key=lambda job: job.rule.name):
            job.log_error(msg, indent=True, aux_logs=aux_logs, **details)

    GroupJob.log_error = log_error


def patch_cancelling() -> None:
    """Say that Snakemake waits for the next look at the queue after Ctrl-C."""
    from snakemake_executor_plugin_slurm import Executor

    cancel = Executor.cancel_jobs

    def cancel_jobs(self: Any, active_jobs: list[Any]) -> None:
        cancel(self, active_jobs)
        print("docmt: jobs are cancelled; Snakemake ends within 3 minutes, without another Ctrl-C", file=sys.stderr)

    Executor.cancel_jobs = cancel_jobs


def patch_refused_submissions() -> None:
    """Shorten the message about a refused job to the words of `sbatch`, and submit again what is refused for now."""
    from snakemake_executor_plugin_slurm import Executor

    report = Executor._report_job_error_threadsafe
    pauses: dict[Any, float] = {}

    def report_or_wait(self: Any, job_info: Any, msg: str) -> None:
        refusal = REFUSAL.search(msg)
        lines = (refusal[1] if refusal else msg).strip().splitlines()
        reason = "; ".join(line.removeprefix("sbatch: error: ") for line in lines)
        if not TEMPORARY.search(reason):
            return report(self, job_info, f"sbatch refused this job: {reason}. " if refusal else msg)
        job = job_info.job
        pause = pauses.get(job, FIRST_PAUSE_SECONDS)
        pauses[job] = min(2 * pause, MAX_PAUSE_SECONDS)
        self.logger.warning(f"sbatch: no place for job {job.jobid} yet ({reason}): submitted again in {pause:.0f} s")

        def submit_again() -> None:
            with contextlib.suppress(RuntimeError):  # Snakemake has stopped
                self._job_submission_executor.submit(self.run_job, job)

        timer = Timer(pause, submit_again)
        timer.daemon = True
        timer.start()

    Executor._report_job_error_threadsafe = report_or_wait


def patch_retries() -> None:
    """Do not submit a job again that ended with an error of the user (exit code 2), because it would fail again."""
    from snakemake_executor_plugin_slurm import Executor

    report = Executor.report_job_error

    def report_job_error(self: Any, job_info: Any, msg: str | None = None, **details: Any) -> None:
        job = job_info.job
        members = job.jobs if job.is_group() else [job]
        if any(ends_with_user_error(Path(log)) for member in members for log in member.log):
            job.attempt = job.restart_times + 1
        report(self, job_info, msg, **details)

    Executor.report_job_error = report_job_error


def patch_runtime_limit() -> None:
    """Limit the minutes and memory of a job to its resources `max_runtime` and `max_mem_mb`.

    Snakemake adds up minutes, memory and also these limits in a group. If a limit is 0, nothing is requested.
    """
    import snakemake_executor_plugin_slurm as plugin

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


def patch_step_cores() -> None:
    """Give the step inside a Slurm job all cores of the job. The plugin counts them only for GPUs by `--gpus`."""
    n_cores = os.environ.get("SLURM_CPUS_ON_NODE")
    if n_cores is None:
        return
    import snakemake_executor_plugin_slurm_jobstep as plugin

    choose = plugin.get_cpu_setting
    plugin.get_cpu_setting = lambda job, gpu: choose(job, gpu) and f"--cpus-per-task={n_cores}"


def patch_slurm_outages() -> None:
    """Keep jobs while `squeue` fails, and notice jobs that it no longer knows. The plugin would wait forever."""
    import snakemake_executor_plugin_slurm as plugin

    query = plugin.query_job_status
    check = plugin.Executor.check_active_jobs
    states: dict[str, str] | None = None  # last answer of squeue
    last_answer = time.monotonic()
    absences: dict[str, int] = {}

    async def query_or_wait(command: str, logger: Any) -> tuple[dict[str, str], float | None]:
        nonlocal states, last_answer
        answer, seconds = await query(command, logger)
        states = answer if command.startswith("squeue") else None
        if answer is None:
            minutes = (time.monotonic() - last_answer) / 60
            logger.warning(f"Slurm has not answered for {minutes:.0f} minutes: {command}. Snakemake waits for it.")
            return {}, 0.0
        last_answer = time.monotonic()
        return answer, seconds

    async def check_active_jobs(self: Any, active_jobs: list[Any]) -> AsyncGenerator[Any, None]:
        async for job in check(self, active_jobs):
            name = str(job.external_jobid)
            if states is not None:
                absences[name] = 0 if name in states else absences.get(name, 0) + 1
            if absences.get(name, 0) < N_ABSENCES:
                yield job
            else:
                self.logger.warning(f"Slurm no longer knows job {name}: it has succeeded if its outputs are there")
                self.report_job_success(job)

    plugin.query_job_status = query_or_wait
    plugin.Executor.check_active_jobs = check_active_jobs
