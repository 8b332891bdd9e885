"""`docmt diff`: what a changed configuration runs again."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tabulate import tabulate

from docmt.commands import CommandGroup
from docmt.config.artifacts.base import STAGE_VERSIONS, Artifact
from docmt.config.comparing import ConfigComparison, compare_configs
from docmt.config.loading import load_config_files

MOST_KEYS = 40


command = CommandGroup("diff")


@command.default
def diff(old: Path, new: Path, /) -> None:
    """Show the keys that a changed configuration changes, and the jobs that run again.

    Example:
        docmt diff config/config.yaml config/mine.yaml

    Args:
        old: configuration that results were made with.
        new: configuration to run next.
    """
    print(show_comparison(compare_configs(load_config_files([old]), load_config_files([new]))))


def show_comparison(comparison: ConfigComparison) -> str:
    """Changed keys with what each runs again, then all jobs that run again, as text."""
    if not comparison.changes:
        return "the two configurations mean the same: nothing runs again"
    rows = [
        [str(change), "only valid with other changes" if jobs is None else count_jobs(jobs) or "nothing runs again"]
        for change, jobs in comparison.changes
    ]
    more = f"\n… and {len(rows) - MOST_KEYS} more" if len(rows) > MOST_KEYS else ""
    keys = tabulate(rows[:MOST_KEYS], ["changed key", "runs again by itself"], "simple", disable_numparse=True)
    totals = [
        f"of {comparison.n_jobs} jobs",
        f"  again: {count_jobs(comparison.again) or 'none'}",
        f"  new:   {count_jobs(comparison.added) or 'none'}",
    ]
    if comparison.left:
        totals.append(f"  files of the old study that stay and are not used: {len(comparison.left)}")
    return f"{keys}{more}\n\n" + "\n".join(totals)


def count_jobs(artifacts: Iterable[Artifact]) -> str:
    """How many jobs of each stage, such as `training 3, decoding 6`."""
    counts = Counter(artifact.stage for artifact in artifacts for _ in range(artifact.n_jobs))
    return ", ".join(f"{stage} {counts[stage]}" for stage in STAGE_VERSIONS if counts[stage])
