"""CPU hours, GPU hours and GPU energy of a study, from Snakemake's benchmarks and the records of its jobs."""

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from pydantic import BaseModel, ValidationError

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.dataframes import column
from docmt.report.tables import Table, count, label, score

log = logging.getLogger(__name__)

HOUR = 3600
KWH = 3.6e6  # joules
OTHER = "other"  # stage for an unlisted rule, such as a user-defined rule
TIME_UNITS = (("hours", 10, 1), ("minutes", 0.1, 60), ("seconds", 0, HOUR))  # unit, minimum hours, units per hour
# Rules without costs: a page cannot contain its own costs, and the reader can be made before or after the page.
PAGES = ("report_render", "report_reader")
# File name by rule. In these files in the run folder, jobs record their device.
RECORDS = {
    "train": "model.job.json",
    "translate": "decoding/{part}.job.json",
    "translate_shard": "decoding/{part}.job.json",
    "score_candidates": "decoding/suite_{part}.json",
    "translate_suite": "decoding/generated_{part}.job.json",
    "evaluate_cxmi": "scores/cxmi_{part}.json",
    "evaluate_comet": "scores/comet_{part}.json",
}


class SessionRecord(BaseModel):
    """Part of a training between two starts."""

    seconds: float
    joules: float | None = None


class JobFacts(BaseModel):
    """Facts that a job recorded about its device (docs/files.md). Other keys are ignored."""

    device: str
    n_devices: int
    n_nodes: int = 1
    cpu_seconds: float | None = None
    joules: float | None = None
    sessions: list[SessionRecord] = []


class JobCosts(NamedTuple):
    """Costs of a job. `joules` is the energy of its GPUs, NaN if it is not known."""

    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0
    joules: float = 0.0


def read_costs(benchmarks: Path | None, stages: Mapping[str, Sequence[str]]) -> pd.DataFrame | None:
    """Return jobs, core-hours, GPU-hours and GPU energy by stage. None without benchmarks.

    The energy is missing if it is unknown for a job on a GPU, or if no job used a GPU.

    Args:
        benchmarks: folder with `RULE/NAME.tsv`, next to the folders of datasets.
        stages: rules by stage.
    """
    if benchmarks is None:
        return None
    stage_of: dict[str, str] = {}
    for stage, rules in stages.items():
        stage_of |= dict.fromkeys(rules, stage)
    unlisted = sorted({path.name for path in benchmarks.glob("*/")} - set(stage_of))
    jobs_of: dict[str, list[JobCosts]] = {}
    for rule in [*stage_of, *unlisted]:
        if rule in PAGES:
            continue
        for path in sorted((benchmarks / rule).rglob("*.tsv")):
            costs = read_job_costs(path, rule, benchmarks.parent)
            if costs is not None:
                jobs_of.setdefault(stage_of.get(rule, OTHER), []).append(costs)
    if not jobs_of:
        return None
    rows = []
    for stage, jobs in jobs_of.items():
        gpu_seconds = sum(job.gpu_seconds for job in jobs)
        joules = math.nan
        if gpu_seconds:
            joules = sum(job.joules for job in jobs)
        row = {
            "stage": stage,
            "jobs": len(jobs),
            "core_hours": sum(job.cpu_seconds for job in jobs) / HOUR,
            "gpu_hours": gpu_seconds / HOUR,
            "gpu_kwh": joules / KWH,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def costs_table(costs: pd.DataFrame | None) -> Table | None:
    """Return jobs, core time, GPU time and GPU energy by stage and in total, in units that suit the longest time.

    Without a job on a GPU, the table has no columns for GPUs.
    """
    if costs is None:
        return None
    on_gpus = costs.loc[costs["gpu_hours"] > 0]
    kwh = float(column(on_gpus, "gpu_kwh").sum(skipna=False))
    hours = costs[["core_hours", "gpu_hours"]].sum()
    everything = {"stage": "all", "jobs": costs["jobs"].sum(), **hours, "gpu_kwh": kwh}
    rows = pd.concat([costs, pd.DataFrame([everything])], ignore_index=True)
    unit, scale = next((unit, scale) for unit, limit, scale in TIME_UNITS if max(hours) >= limit)
    rows[["core_hours", "gpu_hours"]] *= scale
    if kwh >= 1:
        energy_unit = "kWh"
    else:
        energy_unit = "Wh"
        rows["gpu_kwh"] *= 1000
    caption = "Processor time used, wall time times the number of GPUs in use, and energy of their cards."
    if on_gpus.empty:
        rows = rows.drop(columns=["gpu_hours", "gpu_kwh"])
        caption = "Processor time used."
    return Table(
        "costs_by_stage",
        "Costs by stage",
        rows.dropna(axis="columns", how="all"),
        [
            label("stage", "Stage"),
            count("jobs"),
            score("core_hours", f"core-{unit}", digits=1),
            score("gpu_hours", f"GPU-{unit}", digits=1),
            score("gpu_kwh", f"GPU energy ({energy_unit})", digits=1),
        ],
        caption=caption,
        note="Of the last successful attempt of each finished job, from Snakemake's benchmarks, and of all sessions of "
        "resumed trainings. The processor time of earlier sessions is estimated from the load of the "
        "last one; jobs too short to be measured have none.",
        full=costs,
    )


def read_job_costs(benchmark: Path, rule: str, results: Path) -> JobCosts | None:
    """Read the costs of a job from `FOLDER/{rule}/NAME.tsv` and its record.

    `results` contains the run folders `{dataset}/runs/{system}/seed{seed}`, where a job records its device and
    sessions. If the file is not a benchmark, a warning is logged and None is returned.
    """
    try:
        # Snakemake writes `NA` or `-` where a job ended before the first measurement. It writes several rows when it
        # repeated the measurement.
        rows = pd.read_csv(benchmark, sep="\t", index_col=False, na_values=["-"])
        times = column(rows, "s").astype(float)
        cpu_times = column(rows, "cpu_time").astype(float)
        if times.empty or times.isna().any():
            raise ValueError("no wall time")
    except (OSError, ValueError):
        log.warning("%s: not a Snakemake benchmark, skipped", benchmark)
        return None
    seconds = float(times.sum())
    cpu_seconds = float(cpu_times.sum(skipna=False))
    facts = None
    if rule in RECORDS:
        run = benchmark.with_suffix("")
        if "{part}" in RECORDS[rule]:
            run = benchmark.parent
        dataset, system, seed = run.parts[-3:]
        record = RECORDS[rule].format(part=benchmark.stem)
        facts = read_job_facts(results / dataset / "runs" / system / seed / record)
    facts = facts or JobFacts(device="cpu", n_devices=1)
    if facts.n_nodes > 1:  # Snakemake only sees the `srun` that started its processes
        cpu_seconds = facts.cpu_seconds or math.nan
    all_seconds = seconds + sum(session.seconds for session in facts.sessions[:-1])
    if seconds > 0:
        cpu_seconds *= all_seconds / seconds
    if math.isnan(cpu_seconds):
        cpu_seconds = 0.0
    if facts.device == "cpu":  # also if a GPU was requested
        return JobCosts(cpu_seconds)
    energies = []
    for part in facts.sessions or [facts]:
        if part.joules is None:
            energies.append(math.nan)
        else:
            energies.append(part.joules)
    return JobCosts(cpu_seconds, facts.n_devices * all_seconds, sum(energies))


def read_job_facts(path: Path) -> JobFacts | None:
    """Read the facts that a job recorded, in a separate file or under `provenance` in its output.

    None if the file does not exist.
    """
    if not path.is_file():
        return None
    facts = read_json(path)
    if isinstance(facts, dict):
        facts = facts.get("provenance", facts)
    try:
        return JobFacts.model_validate(facts)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise UserError(f"{path}: not a job record: {where}: {problem['msg']}") from None
