"""What a study cost: time, processors, GPUs and memory of its jobs, from Snakemake's benchmarks."""

import itertools
import logging
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ValidationError

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.dataframes import column
from docmt.report.manifest import Stages, place_of, stage_of
from docmt.report.tables import Table, build_table, count, format_score, score, word

log = logging.getLogger(__name__)

HOUR = 3600

# Where a job of a rule records its device, in the folder of its run
RECORDS = {
    "train": "model.job.json",
    "translate": "decoding/{part}.job.json",
    "contrast": "decoding/suite_{part}.json",
    "generate": "decoding/generated_{part}.job.json",
}


class SessionRecord(BaseModel):
    """A stretch of a training between two starts."""

    from_update: int
    seconds: float


class JobFacts(BaseModel):
    """What a job on a device recorded about itself (docs/files.md). Other keys are ignored."""

    device: str
    n_devices: int
    n_nodes: int = 1
    cpu_seconds: float | None = None
    sessions: list[SessionRecord] = []

    @property
    def n_gpus(self) -> int:
        """The GPUs that were used, not those requested: a job that finds none runs on the CPU."""
        return 0 if self.device == "cpu" else self.n_devices

    @property
    def earlier_seconds(self) -> float:
        """Time of all sessions but the last."""
        return sum(session.seconds for session in self.sessions[:-1])


@dataclass(frozen=True)
class JobCost:
    """The cost of the last attempt of one job; of a training that was resumed, with its earlier sessions.

    Attributes:
        core_seconds: processor time; earlier sessions count at the load of the last one. NaN when the job was too short
            to be measured.
        gpu_seconds: wall time times the number of GPUs in use.
        peak_mib: largest resident memory, all processes together; NaN as above, and on several nodes.
        earlier_seconds: wall time of earlier sessions alone.
        lacks_facts: whether a job that should have recorded its device has not.
    """

    stage: str
    rule: str
    wall_seconds: float
    core_seconds: float
    gpu_seconds: float
    peak_mib: float
    earlier_seconds: float
    lacks_facts: bool


def read_costs(
    folder: Path,
    *,
    run_folders: Mapping[str, Path] | None = None,
    stages: Stages,
    without: Collection[str] = (),
) -> list[JobCost]:
    """Read `folder/{rule}/{name}.tsv`, in the order of the workflow, without some rules; a missing folder holds none.

    Devices and sessions are read in the folder of each run, given by `{dataset}_{system}_seed{seed}`. A file that is
    not a benchmark is named in the log and skipped. Raises UserError when a file of job facts is damaged.
    """
    costs = []
    for path in sorted(folder.glob("*/*.tsv"), key=lambda path: (place_of(path.parent.name, stages), path.name)):
        rule, name = path.parent.name, path.stem
        if rule in without:
            continue
        try:
            # Snakemake writes `NA` or `-` where a job ended before the first measurement.
            rows = pd.read_csv(path, sep="\t", index_col=False, na_values=["-"])
            times, cpu_times, peaks = (column(rows, name).astype(float) for name in ("s", "cpu_time", "max_rss"))
            if times.empty or times.isna().any():
                raise ValueError("no wall time")
        except (OSError, ValueError):
            log.warning("%s: not a Snakemake benchmark, skipped", path)
            continue
        source = _facts_path(rule, name, run_folders or {})
        found = read_job_facts(source) if source else None
        facts = found or JobFacts(device="cpu", n_devices=1)
        # One row, or more when Snakemake repeated the measurement.
        seconds, cpu_seconds, peak_mib = float(times.sum()), float(cpu_times.sum(skipna=False)), float(peaks.max())
        if facts.n_nodes > 1:  # Snakemake only sees the `srun` that started its processes
            cpu_seconds, peak_mib = facts.cpu_seconds or math.nan, math.nan
        wall_seconds = seconds + facts.earlier_seconds
        costs.append(
            JobCost(
                stage=stage_of(rule, stages),
                rule=rule,
                wall_seconds=wall_seconds,
                core_seconds=cpu_seconds * (wall_seconds / seconds if seconds > 0 else 1),
                gpu_seconds=facts.n_gpus * wall_seconds,
                peak_mib=peak_mib,
                earlier_seconds=facts.earlier_seconds,
                lacks_facts=rule in RECORDS and found is None,
            )
        )
    return costs


def _facts_path(rule: str, name: str, run_folders: Mapping[str, Path]) -> Path | None:
    """Where a job of a run recorded its device; None for other jobs."""
    if rule not in RECORDS:
        return None
    # The longest match wins: the name of one run may be a prefix of another's.
    run = max((run for run in run_folders if f"{name}_".startswith(f"{run}_")), key=len, default=None)
    if run is None:
        return None
    part = name.removeprefix(run).removeprefix("_")
    return run_folders[run] / RECORDS[rule].format(part=part)


def read_job_facts(path: Path) -> JobFacts | None:
    """What a job recorded about itself, in a separate file or under `provenance` in its output.

    Returns:
        None when an older docmt made the file, or made none.

    Raises:
        UserError: the file has another form.
    """
    if not path.is_file():
        return None
    content = read_json(path)
    facts = content.get("provenance", content) if isinstance(content, dict) else content
    if isinstance(facts, dict) and "device" not in facts:
        return None
    try:
        return JobFacts.model_validate(facts)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise UserError(f"{path}: not a record of a job: {where}: {problem['msg']}") from None


def summarize_costs(costs: Sequence[JobCost], *, by: Sequence[str] = ("stage", "rule")) -> list[dict[str, Any]]:
    """Sums by rule or stage, in the order of the jobs; hours, MiB. Sums skip processor time that was not measured."""
    groups = itertools.groupby(costs, key=lambda cost: {key: getattr(cost, key) for key in by})
    return [group | _sums(list(jobs)) for group, jobs in groups]


def _sums(jobs: Sequence[JobCost]) -> dict[str, Any]:
    peaks = [job.peak_mib for job in jobs if not math.isnan(job.peak_mib)]
    return {
        "jobs": len(jobs),
        "wall_hours": sum(job.wall_seconds for job in jobs) / HOUR,
        "core_hours": sum(job.core_seconds for job in jobs if not math.isnan(job.core_seconds)) / HOUR,
        "gpu_hours": sum(job.gpu_seconds for job in jobs) / HOUR,
        "peak_mib": max(peaks, default=math.nan),
        "earlier_hours": sum(job.earlier_seconds for job in jobs) / HOUR,
        "not_measured": sum(math.isnan(job.core_seconds) for job in jobs),
    }


def costs_table(costs: Sequence[JobCost], *, by: Sequence[str] = ("stage", "rule")) -> Table | None:
    """Jobs, wall, processor and GPU time and memory of each rule or stage, and of all; None without benchmarks."""
    if not costs:
        return None
    records = summarize_costs(costs, by=by)
    total: dict[str, Any] = dict.fromkeys(by, "") | {"stage": "all"} | _sums(costs)
    digits = 3 if total["wall_hours"] < 100 else 1
    cells = {
        "Stage": word("stage"),
        "Rule": word("rule"),
        "jobs": count("jobs"),
        "wall hours": score("wall_hours", digits=digits),
        "core-hours": score("core_hours", digits=digits),
        "GPU-hours": score("gpu_hours", digits=digits),
        "peak GiB": lambda record: format_score(record["peak_mib"] / 1024),
    }
    table = build_table(
        pd.DataFrame([*records, total]),
        cells,
        key="costs" if "rule" in by else "costs_by_stage",
        title=f"Costs by {by[-1]}",
        caption=_caption(total, n_without_facts=sum(cost.lacks_facts for cost in costs)),
        n_labels=len(by),
    )
    return replace(table, values=pd.DataFrame(records))


def _caption(total: Mapping[str, Any], *, n_without_facts: int) -> str:
    parts = [
        f"In all, {total['jobs']:,} jobs took {total['wall_hours']:.2f} wall hours (jobs side by side take less time), "
        f"{total['core_hours']:.2f} core-hours and {total['gpu_hours']:.2f} GPU-hours. From Snakemake's benchmarks: "
        "the last successful attempt of each finished job. Failed attempts are not included. Core-hours are processor "
        "time used, GPU-hours wall time on a GPU."
    ]
    if total["earlier_hours"]:
        parts.append(
            f"Trainings that were resumed include their earlier sessions ({total['earlier_hours']:.3f} hours), whose "
            "processor time is estimated from the load of the last session."
        )
    if total["not_measured"]:
        parts.append(
            "Jobs too short for more than their wall time to be measured, and not in core-hours: "
            f"{total['not_measured']:,}."
        )
    if n_without_facts:
        parts.append(
            "Jobs without a record of their device and sessions (made by an older docmt), which count as the last "
            f"session on a CPU: {n_without_facts:,}."
        )
    return " ".join(parts)
