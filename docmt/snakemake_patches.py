"""The faults of Snakemake and of its Slurm plugin that are mended from outside, in private places of theirs.

docs/upstream.md has the report of each. They were tested with the versions in `docmt.snakemake.TESTED`.
"""

from _thread import start_new_thread
from threading import Timer


def keep_one_timer() -> None:
    """Keep Snakemake from looking at all waiting jobs ever more often: here, only one timer for the next look runs."""
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


def stop_from_another_thread() -> None:
    """Keep SIGTERM from blocking Snakemake forever: its handler waits for a lock in a thread of its own."""
    from snakemake.scheduling.job_scheduler import JobScheduler

    stop = JobScheduler.exit_gracefully

    def exit_gracefully(self: JobScheduler, *_: object) -> None:
        start_new_thread(stop, (self,))  # not `Thread`, whose start takes a lock, too

    JobScheduler.exit_gracefully = exit_gracefully


def keep_asking_squeue() -> None:
    """Make the Slurm plugin keep using `squeue` while the controller is down: it remembers the controller's answer."""
    import snakemake_executor_plugin_slurm as plugin

    ask = plugin.get_min_job_age
    last: int | None = None

    def remembered() -> int | None:
        nonlocal last
        last = ask() or last
        return last

    plugin.get_min_job_age = remembered
