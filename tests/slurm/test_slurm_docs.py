"""The batch scripts in docs/slurm.md, and `snakemake --profile slurm`, as they are printed."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from slurm_fixtures import HERE, LONG, ROOT, STUDY, Call, slurm, trainers, wait_until

from docmt.cli.main import main
from docmt.config.loading import merge, read_config_file

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]

SCRATCH = "/scratch/$USER/my-study"
REPORT = "results/report/report.html"
AFTER_SEARCH = {"translate": 2, "evaluate_run": 2, "report_collect": 1, "report_render": 1, "report_reader": 1}
"""Jobs after a change of the search, for two systems and one test set."""


@pytest.fixture
def shell(study, tmp_path):
    """Environment of a user's shell. `$HOME/docmt/.venv/bin/activate` activates this Python."""
    activate = tmp_path / "home/docmt/.venv/bin/activate"
    activate.parent.mkdir(parents=True)
    paths = [f'export PATH="{Path(sys.executable).parent}:$PATH"', f'export PYTHONPATH="{ROOT}:{HERE / "polling"}"']
    activate.write_text("\n".join(paths) + "\n")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DOCMT"))}
    return variables | {"HOME": str(tmp_path / "home")}


@pytest.fixture
def folder(study, tmp_path):
    """The study with the workflow that `docmt init` copies, and its configuration `my.yaml`."""
    assert main(["init", str(tmp_path / "new")]) == 0
    shutil.copytree(tmp_path / "new", study.folder, dirs_exist_ok=True)
    study.config({}).rename(study.folder / "my.yaml")
    return study.folder


def printed_script(name, folder):
    """Batch script in docs/slurm.md for a study in a folder."""
    page = (ROOT / "docs/slurm.md").read_text(encoding="utf-8")
    (script,) = re.findall(rf"<!-- file: {re.escape(name)} -->\n```bash\n(.*?)```", page, flags=re.S)
    assert script.count(SCRATCH) == 1
    return script.replace(SCRATCH, str(folder))


def count_jobs(text):
    """Number of jobs by rule in Snakemake's messages, also in groups."""
    return Counter(re.findall(r"^ *(?:local)?rule (\w+):$", text, re.MULTILINE)) - Counter(["all"])


@dataclass
class BatchJob:
    """A submitted batch script.

    Attributes:
        number: job number.
        log: its output.
    """

    number: str
    log: Path

    @property
    def text(self):
        return self.log.read_text(encoding="utf-8")

    def finish(self):
        """Wait until the job has ended. Returns its state."""
        is_over = r"JobState=(?!PENDING|RUNNING|COMPLETING)(\w+)"
        job = wait_until(
            lambda: re.search(is_over, slurm("scontrol", "show", "job", self.number)), seconds=1500, what="the end"
        )
        return job[1]


def submit(script, folder, shell):
    """Submit a batch script as a user does."""
    file = folder / "study.sbatch"
    file.write_text(script, encoding="utf-8")
    command = ["sbatch", "--parsable", str(file)]
    done = subprocess.run(command, cwd=folder, env=shell, capture_output=True, text=True, check=True)
    number = done.stdout.strip()
    log = re.search(r"StdOut=(.*)", slurm("scontrol", "show", "job", number))[1]
    return BatchJob(number, Path(log))


def test_printed_commands_run_exactly_the_changes(study, folder, shell):
    job = submit(printed_script("study.sbatch", folder), folder, shell)
    assert job.finish() == "COMPLETED", job.text[-5000:]
    assert (folder / REPORT).exists(), job.text[-5000:]
    assert "[1/" in job.text, "`docmt run` prints one line per job"
    settings = (folder / "my.yaml").read_text(encoding="utf-8").replace("beam_size: 2", "beam_size: 3")
    (folder / "config/config.yaml").write_text(settings, encoding="utf-8")  # which `snakemake` reads by default
    log = folder / "snakemake.log"
    with open(log, "w") as file:
        process = subprocess.Popen(
            ["bash", "-c", 'source "$HOME/docmt/.venv/bin/activate" && exec snakemake --profile slurm'],
            cwd=folder,
            env=shell,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    call = Call(process, log, folder)
    assert call.finish(1500) == 0, call.text[-5000:]
    assert count_jobs(call.text) == AFTER_SEARCH
    assert len(call.jobs()) == 6, "all but `report_collect`"


SYSTEMS = ("sentence_transformer", "steady", "diverging", "killed")


def reserved_gpus(pids):
    """Lock files of GPUs that processes hold open."""
    names = []
    with contextlib.suppress(FileNotFoundError):  # a process has ended
        for pid in pids:
            names += [Path(os.readlink(file)).name for file in Path(f"/proc/{pid}/fd").iterdir()]
    return [name for name in names if name.startswith("docmt-gpu-")]


def training_log(folder, system):
    return (folder / f"logs/train/controlled/{system}/seed1.log").read_text(encoding="utf-8")


def test_trainings_share_a_node(study, folder, shell):
    """Four at once on four GPUs. One diverges, one is killed, and the others lose nothing."""
    (folder / "my.yaml").unlink()
    settings = merge(read_config_file(STUDY), LONG)
    row = settings["systems"]["sentence_transformer"]
    high = {"training": {"learning_rate": 1.0e11, "warmup_steps": 0}}
    settings["systems"] = {system: row | (high if system == "diverging" else {}) for system in SYSTEMS}
    (folder / "my.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    script = printed_script("node.sbatch", folder)
    script = script.replace("--keep-going", "--keep-going --cores 48")  # more than this machine has

    job = submit(script, folder, shell)
    gpus = wait_until(lambda: len(gpus := reserved_gpus(trainers(study))) >= 3 and gpus, what="three trainings at once")
    assert len(set(gpus)) == len(gpus)
    runs = folder / "results/controlled/runs"
    wait_until(lambda: list((runs / "killed").rglob("step-000000200.json")), what="a checkpoint")
    (pid,) = [pid for pid in trainers(study) if "/killed/" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(pid, signal.SIGKILL)
    assert job.finish() == "FAILED"
    assert {system for system in SYSTEMS if (runs / system / "seed1/model.pt").exists()} == {*SYSTEMS[:2]}
    assert all((runs / system / "seed1/scores.json").exists() for system in SYSTEMS[:2])
    assert all("resumed" not in training_log(folder, system) for system in SYSTEMS[:2])
    assert "lower learning_rate" in job.text
    models = {system: (runs / system / "seed1/model.pt").stat().st_mtime_ns for system in SYSTEMS[:2]}

    settings["systems"]["diverging"] = row
    (folder / "my.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    job = submit(script, folder, shell)
    assert job.finish() == "COMPLETED", job.text[-5000:]
    assert (folder / REPORT).exists()
    assert "resumed after update" in training_log(folder, "killed")
    assert models == {system: (runs / system / "seed1/model.pt").stat().st_mtime_ns for system in SYSTEMS[:2]}
