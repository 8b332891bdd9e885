"""CPU and GPU hours for a study, from Snakemake's benchmarks."""

import logging
import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ValidationError

from docmt.errors import UserError
from docmt.files import read_json
from docmt.report.dataframes import column
from docmt.report.manifest import Manifest

log = logging.getLogger(__name__)

HOUR = 3600
OTHER = "other"  # stage for an unlisted rule, such as a user-defined rule
# Rules without costs: a page cannot contain its own costs, and the reader can be made before or after the page.
PAGES = ("render", "render_reader")
# File name by rule. In these files in the run folder, jobs record their device.
RECORDS = {
    "train": "model.job.json",
    "translate": "decoding/{part}.job.json",
    "contrast": "decoding/suite_{part}.json",
    "generate": "decoding/generated_{part}.job.json",
}


class SessionRecord(BaseModel):
    """Part of a training between two starts."""

    from_update: int
    seconds: float


class JobFacts(BaseModel):
    """Facts that a job recorded about its device (docs/files.md). Other keys are ignored."""

    device: str
    n_devices: int
    n_nodes: int = 1
    cpu_seconds: float | None = None
    sessions: list[SessionRecord] = []


def read_costs(manifest: Manifest, scores: pd.DataFrame) -> pd.DataFrame | None:
    """Return jobs, core-hours and GPU-hours by stage. None without benchmarks."""
    if manifest.benchmarks is None:
        return None
    # Systems that translate with another system's model have scores, but are not among the trained runs.
    runs = {*manifest.trained(), *zip(scores["dataset"], scores["system"], scores["seed"], strict=True)}
    folders = {
        f"{dataset}/{system}/seed{seed}": manifest.folder(dataset, system, seed) for dataset, system, seed in runs
    }
    stage_of = {rule: stage for stage, rules in manifest.stages.items() for rule in rules}
    unlisted = sorted({path.name for path in manifest.benchmarks.glob("*/")} - set(stage_of))
    stages: dict[str, list[tuple[float, float]]] = {}
    for rule in [*stage_of, *unlisted]:
        for path in sorted((manifest.benchmarks / rule).rglob("*.tsv")) if rule not in PAGES else ():
            if times := read_times(path, rule, folders):
                stages.setdefault(stage_of.get(rule, OTHER), []).append(times)
    if not stages:
        return None
    return pd.DataFrame(
        {
            "stage": stage,
            "jobs": len(times),
            "core_hours": sum(cpu for cpu, _ in times) / HOUR,
            "gpu_hours": sum(gpu for _, gpu in times) / HOUR,
        }
        for stage, times in stages.items()
    )


def read_times(benchmark: Path, rule: str, run_folders: Mapping[str, Path]) -> tuple[float, float] | None:
    """Read a job's processor and GPU time in seconds from `FOLDER/{rule}/NAME.tsv`.

    `run_folders` maps `{dataset}/{system}/seed{seed}` to the run folder, where a job records its device and sessions.
    If the file is not a benchmark, a warning is logged and None is returned.
    """
    try:
        # Snakemake writes `NA` or `-` where a job ended before the first measurement. It writes several rows when it
        # repeated the measurement.
        rows = pd.read_csv(benchmark, sep="\t", index_col=False, na_values=["-"])
        times, cpu_times = (column(rows, key).astype(float) for key in ("s", "cpu_time"))
        if times.empty or times.isna().any():
            raise ValueError("no wall time")
    except (OSError, ValueError):
        log.warning("%s: not a Snakemake benchmark, skipped", benchmark)
        return None
    seconds, cpu_seconds = float(times.sum()), float(cpu_times.sum(skipna=False))
    facts = None
    if rule in RECORDS:
        run, part = (benchmark.parent, benchmark.stem) if "{part}" in RECORDS[rule] else (benchmark.with_suffix(""), "")
        if folder := run_folders.get("/".join(run.parts[-3:])):
            facts = read_job_facts(folder / RECORDS[rule].format(part=part))
    facts = facts or JobFacts(device="cpu", n_devices=1)
    if facts.n_nodes > 1:  # Snakemake only sees the `srun` that started its processes
        cpu_seconds = facts.cpu_seconds or math.nan
    all_seconds = seconds + sum(session.seconds for session in facts.sessions[:-1])
    cpu_seconds *= all_seconds / seconds if seconds > 0 else 1
    # Used GPUs instead of requested ones: a job without a GPU runs on the CPU.
    n_gpus = 0 if facts.device == "cpu" else facts.n_devices
    return 0.0 if math.isnan(cpu_seconds) else cpu_seconds, n_gpus * all_seconds


def read_job_facts(path: Path) -> JobFacts | None:
    """Read the facts that a job recorded, in a separate file or under `provenance` in its output.

    None if the file does not exist.
    """
    if not path.is_file():
        return None
    content = read_json(path)
    facts = content.get("provenance", content) if isinstance(content, dict) else content
    try:
        return JobFacts.model_validate(facts)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise UserError(f"{path}: not a job record: {where}: {problem['msg']}") from None
