"""The two faults of Snakemake and of its Slurm plugin that are mended from outside, in private places of theirs.

docs/upstream.md has the report of each. They were tested with the versions in `docmt.snakemake.TESTED`.
"""

from _thread import start_new_thread


def stop_from_another_thread() -> None:
    """Keep SIGTERM from blocking Snakemake forever.

    Its handler takes a lock that the main thread, in which handlers run, holds while it looks at finished jobs. Here
    the handler starts a thread, which waits until the lock is free.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    stop = JobScheduler.exit_gracefully

    def exit_gracefully(self: JobScheduler, *_: object) -> None:
        start_new_thread(stop, (self,))  # not `Thread`, whose start takes a lock, too

    JobScheduler.exit_gracefully = exit_gracefully


def keep_asking_squeue() -> None:
    """Make the Slurm plugin keep using `squeue` while the controller is down.

    Before each status check, the plugin asks the controller whether `squeue` remembers jobs for long enough, and falls
    back to `sacct` when there is no answer. Without an accounting database `sacct` fails too: the plugin then forgets
    its jobs and waits forever. Here the last answer is remembered.
    """
    import snakemake_executor_plugin_slurm as plugin

    ask = plugin.get_min_job_age
    last: int | None = None

    def remembered() -> int | None:
        nonlocal last
        last = ask() or last
        return last

    plugin.get_min_job_age = remembered
