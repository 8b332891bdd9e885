"""The batch script in docs/slurm.md, and `snakemake --profile slurm`, as they are printed."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from slurm_fixtures import HERE, ROOT, Call, slurm, wait_until

from docmt.cli.main import main

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


def printed_script():
    page = (ROOT / "docs/slurm.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"<!-- file: study\.sbatch -->\n```bash\n(.*?)```", page, flags=re.S)
    assert script.count(SCRATCH) == 1
    return script


def count_jobs(text):
    """Number of jobs by rule in Snakemake's messages, also in groups."""
    return Counter(re.findall(r"^ *(?:local)?rule (\w+):$", text, re.MULTILINE)) - Counter(["all"])


def submit(script, folder, shell):
    """Submit the batch script as a user does. Returns the log of Snakemake when the job has ended."""
    file = folder / "study.sbatch"
    file.write_text(script, encoding="utf-8")
    command = ["sbatch", "--parsable", str(file)]
    job = subprocess.run(command, cwd=folder, env=shell, capture_output=True, text=True, check=True).stdout.strip()
    is_over = r"JobState=(?!PENDING|RUNNING|COMPLETING)(\w+)"
    state = wait_until(lambda: re.search(is_over, slurm("scontrol", "show", "job", job)), seconds=1500, what="the end")
    text = (folder / f"snakemake-{job}.log").read_text(encoding="utf-8")
    assert state[1] == "COMPLETED", text[-5000:]
    return text


def test_printed_commands_run_exactly_the_changes(study, folder, shell):
    text = submit(printed_script().replace(SCRATCH, str(folder)), folder, shell)
    assert (folder / REPORT).exists(), text[-5000:]
    assert "[1/" in text, "`docmt run` prints one line per job"
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
