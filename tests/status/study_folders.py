"""Hand-made study folders, in states that a cluster and its failures can leave."""

import base64
import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

from smoke_study import SMOKE

from docmt.cli.main import main
from docmt.config.artifacts.runs import run_folder, trained_runs
from docmt.config.plan import Plan
from docmt.snakemake import read_workflow
from docmt.status.study import read_state

HEAD = """SNAKEMAKE
=========
  Date: 2026-11-21 05:43:07
  Host: {host}
  Config file(s): [PosixPath('/somewhere/smoke.yaml')]

Building DAG of jobs...
"""
BEGUN = """[Sat Nov 21 05:43:08 2026]
localrule {rule}:
    output: {outputs}
    log: {log}
    jobid: {number}
    benchmark: results/benchmarks/{rule}/x.tsv
    wildcards: dataset=d
Select jobs to execute...
"""
FAILED = """[Sat Nov 21 05:43:09 2026]
Error in rule {rule}:
    message: None
    jobid: {number}
    output: {outputs}
    log: {log} (check log file(s) for error details)
    shell:
        docmt …
        (command exited with non-zero exit code)
"""


@dataclass
class Folder:
    """A study folder, and methods to fill it."""

    path: Path
    plan: Plan

    @property
    def run(self):
        """First training in the plan."""
        return trained_runs(self.plan.study)[0]

    @property
    def stem(self):
        """Name of its log."""
        return f"{self.run.dataset}/{self.run.system}/seed{self.run.seed}"

    @property
    def run_folder(self):
        return self.path / run_folder(self.run.dataset, self.run.system, self.run.seed)

    @property
    def model(self):
        """Its model, relative to the folder."""
        return f"{run_folder(self.run.dataset, self.run.system, self.run.seed)}/model.pt"

    def write(self, name, text="", *, age=0.0):
        """Write a file that is `age` seconds old."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        os.utime(file, (time.time() - age,) * 2)
        return file

    def checkpoint(self, name, content, *, fingerprint="abc", age=0.0):
        """A checkpoint file of the first training."""
        return self.write(self.run_folder / "checkpoints" / fingerprint / name, content, age=age)

    def mark(self, output):
        """Mark a file as incomplete, as Snakemake does. Long names are split."""
        name = base64.urlsafe_b64encode(output.encode()).decode()
        parts = [name[i : i + 254] for i in range(0, len(name), 254)]
        parts = [f"@{part}" for part in parts[:-1]] + parts[-1:]
        self.write("/".join([".snakemake/incomplete", *parts]), {"external_jobid": None})

    def snakemake(self, *blocks, host=None, name="2026-11-21T054307.1.snakemake.log"):
        """Messages of Snakemake."""
        self.write(f".snakemake/log/{name}", HEAD.format(host=host or platform.node()) + "".join(blocks))

    def lock(self):
        """Lock of Snakemake."""
        self.write(".snakemake/locks/0.input.lock", "x\n")

    def status(self, *options):
        """Exit code of the command."""
        return main(["status", "--directory", str(self.path), "--configfile", str(SMOKE), *options])

    def read(self):
        """Trainings and failures."""
        return read_state(self.path, self.plan, read_workflow(self.path))

    def training(self):
        """State of the first training."""
        return self.read()[0][0]

    def failures(self):
        return self.read()[1]
