"""Makes Snakemake ask Slurm about its jobs every second: the plugin waits longer each time, up to three minutes."""

import sys

if "snakemake" in sys.orig_argv:
    from snakemake_executor_plugin_slurm import Executor

    Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
