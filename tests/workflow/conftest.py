"""A small study that is really run, once for all tests of the workflow."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from own_suites import write_config

from docmt.config.loading import merge, read_config_file
from docmt.config.plan import Plan

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "config/examples/smoke.yaml"
RECORDER = Path(__file__).parent / "recorder"


def snakemake(folder, *arguments, config=SMOKE, imports=None):
    """Run Snakemake on this repository in a separate folder, with one config file or a list, or the demo's (None).

    Commands note what they import in the folder `imports` (recorder/sitecustomize.py).
    """
    process = start_snakemake(folder, *arguments, config=config, imports=imports)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start_snakemake(folder, *arguments, config=SMOKE, imports=None):
    """Start Snakemake as `snakemake` does, in a process group that a test can kill."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DOCMT"))}
    if imports is not None:
        environment["IMPORTS_FOLDER"] = str(imports)
        environment["PYTHONPATH"] = os.pathsep.join([str(RECORDER), environment.get("PYTHONPATH", "")])
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    command = [sys.executable, "-m", "snakemake", *arguments, "--snakefile", str(ROOT / "Snakefile")]
    command += ["--directory", str(folder)]
    if config is not None:
        command += ["--configfile", *map(str, config if isinstance(config, list) else [config])]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@dataclass
class Study:
    """A study in a folder: what the smoke config says, with changes on top."""

    folder: Path

    def config(self, changes=None):
        """A config file with changes on top."""
        file = self.folder / "study.yaml"
        file.write_text(yaml.safe_dump(merge(read_config_file(SMOKE), changes or {})), encoding="utf-8")
        return file

    @property
    def imports(self):
        """What the commands of the first run imported."""
        return self.folder / "imports"

    def run(self, *arguments, changes=None, imports=None):
        """Run what is asked for."""
        options = ("--cores", "2", "--show-failed-logs", *arguments)
        return snakemake(self.folder, *options, config=self.config(changes), imports=imports)

    def jobs(self, changes=None):
        """The jobs that would run: rule with the wildcards that matter, as `train sentence_transformer`."""
        done = snakemake(self.folder, "--dry-run", config=self.config(changes))
        assert done.returncode == 0, done.stderr
        return set(read_jobs(done.stdout + done.stderr))

    def plan(self, changes=None):
        """The plan that the Snakefile sees."""
        return Plan.load(merge(read_config_file(SMOKE), changes or {}), files=[])


def read_jobs(text):
    """Rule and the values of its wildcards, of each job in the messages of a dry run; the target rule is left out."""
    rule = None
    for line in text.splitlines():
        if match := re.fullmatch(r"(?:local)?rule (\w+):", line):
            if rule not in (None, "all"):
                yield rule
            rule = match[1]
        elif match := re.fullmatch(r"    wildcards: (.*)", line):
            values = dict(pair.split("=") for pair in match[1].split(", "))
            yield " ".join([rule, *(value for key, value in values.items() if key not in ("dataset", "seed"))])
            rule = None
    if rule not in (None, "all"):
        yield rule


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The smoke study, run to its end. Tests that change files take `study`, a copy."""
    study = Study(tmp_path_factory.mktemp("finished"))
    study.imports.mkdir()
    done = study.run(imports=study.imports)
    assert done.returncode == 0, done.stderr[-5000:]
    return study


@pytest.fixture(scope="session")
def suites(tmp_path_factory):
    """A study on suites in the user's own files, run up to the report. Tests only read it."""
    study = Study(tmp_path_factory.mktemp("suites"))
    study.imports.mkdir()
    targets = ["results/report/report.html", "results/report/reader.html"]
    config = write_config(study.folder, SMOKE)
    options = ("--cores", "2", "--show-failed-logs", *targets)
    done = snakemake(study.folder, *options, config=config, imports=study.imports)
    assert done.returncode == 0, done.stderr[-5000:]
    return study


@pytest.fixture
def study(finished, tmp_path):
    """A copy of the finished study, times of files included."""
    shutil.copytree(finished.folder, tmp_path / "study")
    return Study(tmp_path / "study")
