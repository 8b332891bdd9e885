"""Patches for private functions in Snakemake and its Slurm plugin, to work around bugs.

All bugs are described in docs/upstream.md. The patches were tested with the versions in `docmt.snakemake.TESTED`.
"""

from _thread import start_new_thread
from threading import Timer


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


def patch_squeue_fallback() -> None:
    """Remember the controller's answer, so that the Slurm plugin keeps using `squeue` while the controller is down."""
    import snakemake_executor_plugin_slurm as plugin

    ask = plugin.get_min_job_age
    last: int | None = None

    def remembered() -> int | None:
        nonlocal last
        last = ask() or last
        return last

    plugin.get_min_job_age = remembered
