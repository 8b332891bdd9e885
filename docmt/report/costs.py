"""What a study cost: time, processors, GPUs and memory of its jobs, from Snakemake's benchmarks."""

import csv
import logging
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from docmt.report.sources import History
from docmt.report.stages import place_of, stage_of
from docmt.report.tables import Table, blank_repeats, format_count, format_score

log = logging.getLogger(__name__)

HEAD_BYTES = 65536
"""Device and resumption stand at the head of a log."""

DEVICE = re.compile(r"INFO (?:.* parameters, |device )(?:(?P<number>\d+) × )?(?P<kind>[a-z]+)\b")
RESUMED = re.compile(r"INFO resumed after update (?P<step>\d+)")

HOUR = 3600


@dataclass(frozen=True)
class JobCost:
    """What one job took.

    Attributes:
        rule, name: the job; the name is that of its benchmark and log.
        seconds: wall time of the last attempt.
        earlier_seconds: wall time of updates in earlier sessions, of a training that was resumed.
        cpu_seconds: processor time of the last attempt; NaN when it was too short to be measured.
        peak_mib: largest resident memory in MiB, all processes together; NaN as above.
        n_gpus: GPUs that it computed on; 0 for the CPU.
    """

    rule: str
    name: str
    seconds: float
    earlier_seconds: float
    cpu_seconds: float
    peak_mib: float
    n_gpus: int

    @property
    def wall_seconds(self) -> float:
        """Wall time of all sessions that are known."""
        return self.seconds + self.earlier_seconds

    @property
    def core_seconds(self) -> float:
        """Processor time; earlier sessions count at the load of the last one. NaN when it was not measured."""
        return self.cpu_seconds * (self.wall_seconds / self.seconds if self.seconds > 0 else 1)


def read_costs(
    folder: Path, *, logs: Path | None = None, histories: Sequence[History] = (), without: Collection[str] = ()
) -> list[JobCost]:
    """Read `folder/{rule}/{name}.tsv`, in the order of the workflow.

    Args:
        folder: of benchmarks; a missing one holds none.
        logs: folder with the log of each job as `{rule}/{name}.log`: devices and resumptions are read there.
        histories: of trainings, for the time of earlier sessions.
        without: rules to leave out.

    A file that is not a benchmark is named in the log and passed over.
    """
    tables = {f"{history.dataset}_{history.system}_seed{history.seed}": history.table for history in histories}
    costs = []
    for path in sorted(folder.glob("*/*.tsv"), key=lambda path: (place_of(path.parent.name), path.name)):
        rule, name = path.parent.name, path.stem
        if rule in without:
            continue
        rows = _read_rows(path)
        if not rows:
            log.warning("%s: not a benchmark of Snakemake, passed over", path)
            continue
        seconds = sum(row["s"] for row in rows)
        head = _head(logs / rule / f"{name}.log") if logs is not None else ""
        costs.append(
            JobCost(
                rule=rule,
                name=name,
                seconds=seconds,
                earlier_seconds=_earlier_seconds(head, tables.get(name), seconds) if rule == "train" else 0.0,
                cpu_seconds=sum(row["cpu_time"] for row in rows),
                peak_mib=max(row["max_rss"] for row in rows),
                n_gpus=_count_gpus(head),
            )
        )
    return costs


def _read_rows(path: Path) -> list[dict[str, float]]:
    """The measurements of a job: one row, more when Snakemake repeated it. Empty when the file is of another form."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        return [
            {"s": float(row["s"]), "cpu_time": _number(row.get("cpu_time")), "max_rss": _number(row.get("max_rss"))}
            for row in rows
        ]
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return []


def _number(cell: str | None) -> float:
    """A measurement; Snakemake writes `NA` or `-` where a job ended before the first one."""
    return math.nan if cell in (None, "", "-", "NA") else float(cell)


def _head(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _count_gpus(head: str) -> int:
    """The GPUs that a job says it computes on. Requested ones do not count: a job may find none and take the CPU."""
    match = DEVICE.search(head)
    if match is None or match["kind"] == "cpu":
        return 0
    return int(match["number"] or 1)


def _earlier_seconds(head: str, history: pd.DataFrame | None, seconds: float) -> float:
    """The time of updates before the last session began, by the history of a training.

    Without its log: what the updates took beyond the wall time of the last session.
    """
    if history is None or history.empty or "seconds" not in history:
        return 0.0
    table = history[["step", "seconds"]].dropna().sort_values("step")
    if table.empty:
        return 0.0
    beyond = max(0.0, float(table["seconds"].iloc[-1]) - seconds)
    if (match := RESUMED.search(head)) is None:
        return beyond
    steps, times = [0.0, *table["step"]], [0.0, *table["seconds"]]
    return max(beyond, float(np.interp(int(match["step"]), steps, times)))


def summarise_costs(costs: Sequence[JobCost]) -> list[dict[str, Any]]:
    """Sums by rule, in the order of the jobs; hours, MiB. Processor time that was not measured is left out of sums."""
    rules: dict[str, list[JobCost]] = {}
    for cost in costs:
        rules.setdefault(cost.rule, []).append(cost)
    return [{"stage": stage_of(rule), "rule": rule} | _sums(jobs) for rule, jobs in rules.items()]


def _sums(jobs: Sequence[JobCost]) -> dict[str, Any]:
    peaks = [job.peak_mib for job in jobs if not math.isnan(job.peak_mib)]
    return {
        "jobs": len(jobs),
        "wall_hours": sum(job.wall_seconds for job in jobs) / HOUR,
        "core_hours": sum(job.core_seconds for job in jobs if not math.isnan(job.core_seconds)) / HOUR,
        "gpu_hours": sum(job.n_gpus * job.wall_seconds for job in jobs) / HOUR,
        "peak_mib": max(peaks, default=math.nan),
        "earlier_hours": sum(job.earlier_seconds for job in jobs) / HOUR,
        "not_measured": sum(math.isnan(job.cpu_seconds) for job in jobs),
    }


def costs_table(costs: Sequence[JobCost]) -> Table | None:
    """Jobs, wall time, processor time, GPU time and memory of each rule, and of all; None without benchmarks."""
    if not costs:
        return None
    records = summarise_costs(costs)
    total: Mapping[str, Any] = {"stage": "all", "rule": ""} | _sums(costs)
    digits = 3 if total["wall_hours"] < 100 else 1
    shown, breaks = blank_repeats([_cells(record, digits) for record in [*records, total]], 1)
    return Table(
        key="costs",
        title="Costs",
        caption=_caption(total),
        header=["Stage", "Rule", "jobs", "wall hours", "core-hours", "GPU-hours", "peak GiB"],
        rows=shown,
        values=pd.DataFrame(records),
        n_labels=2,
        breaks=breaks,
        is_long=True,
    )


def _cells(record: Mapping[str, Any], digits: int) -> list[str]:
    hours = [format_score(record[key], digits=digits) for key in ("wall_hours", "core_hours", "gpu_hours")]
    return [
        record["stage"],
        record["rule"],
        format_count(record["jobs"]),
        *hours,
        format_score(record["peak_mib"] / 1024, digits=2),
    ]


def _caption(total: Mapping[str, Any]) -> str:
    parts = [
        "From Snakemake's benchmarks: the last successful attempt of each job that had ended. Attempts that failed are "
        "not in it. Core-hours are processor time used, GPU-hours wall time on a GPU."
    ]
    if total["earlier_hours"]:
        parts.append(
            f"Trainings that were resumed count with the updates of earlier sessions "
            f"({total['earlier_hours']:.3f} hours), their processor time at the load of the last session."
        )
    if total["not_measured"]:
        parts.append(
            "Jobs that ended before more than their wall time was measured, and are not in core-hours: "
            f"{total['not_measured']:,}."
        )
    return " ".join(parts)
