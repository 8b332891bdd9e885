"""Runs Snakemake in study folders, as users do."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import warm
import yaml

from docmt.config.loading import merge, read_config_file
from docmt.config.plan import Plan

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "config/examples/smoke.yaml"
RECORDER = Path(__file__).parent / "recorder"
RUN = ("--cores", "2", "--show-failed-logs")
FIRST_IS_COLD = """#!/bin/bash
command=$1
[[ $2 == -* ]] || command="$1 $2"
if mkdir "$IMPORTS_FOLDER/$command" 2> /dev/null; then exec {cold} "$@"; fi
exec {warm} "$@"
"""
"""A docmt with a new Python process for the first call of a command, and `warm.py` for other calls."""


def snakemake(folder, *arguments, config=SMOKE, programs=()):
    """Run Snakemake on this repository in a separate folder, with one config file or a list, or the demo's (None)."""
    call = call_of(folder, arguments, config)
    return warm.run("snakemake", call, environment=clean_environment(), programs=programs)


def start_snakemake(folder, *arguments, config=SMOKE, imports=None, programs=()):
    """Start Snakemake as `snakemake` does, in a process group that a test can kill."""
    environment = clean_environment(imports)
    environment["PATH"] = os.pathsep.join([*map(str, programs), environment["PATH"]])
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", *call_of(folder, arguments, config)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Where the tests run in the background, Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def call_of(folder, arguments, config):
    """Arguments of Snakemake."""
    files = config if isinstance(config, list) else [config] if config else []
    options = ["--configfile", *map(str, files)] if files else []
    return [*arguments, "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder), *options]


def clean_environment(imports=None):
    """Environment without variables that change the behavior of Snakemake or docmt.

    In new Python processes, commands record their imports in the folder `imports` (recorder/sitecustomize.py).
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SNAKEMAKE", "DOCMT"))}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    if imports is not None:
        environment["IMPORTS_FOLDER"] = str(imports)
        environment["PYTHONPATH"] = os.pathsep.join([str(RECORDER), environment.get("PYTHONPATH", "")])
        environment["PATH"] = os.pathsep.join([str(imports / "bin"), environment["PATH"]])
    return environment


@dataclass
class Study:
    """A study in a folder: the smoke config with changes."""

    folder: Path

    def config(self, changes=None):
        """A config file with changes."""
        file = self.folder / "study.yaml"
        file.write_text(yaml.safe_dump(merge(read_config_file(SMOKE), changes or {})), encoding="utf-8")
        return file

    @property
    def imports(self):
        """Folder with recorded imports in the first run."""
        return self.folder / "imports"

    def run(self, *arguments, changes=None, programs=()):
        """Run the requested targets."""
        return snakemake(self.folder, *RUN, *arguments, config=self.config(changes), programs=programs)

    def make(self):
        """Run it as users do, with every command at least once in a new Python process, and record imports."""
        (self.imports / "bin").mkdir(parents=True)
        program = self.imports / "bin/docmt"
        cold = Path(sys.executable).with_name("docmt")
        program.write_text(FIRST_IS_COLD.format(cold=cold, warm=warm.docmt()))
        program.chmod(0o755)
        process = start_snakemake(self.folder, *RUN, config=self.config(), imports=self.imports)
        _, stderr = process.communicate()
        assert process.returncode == 0, stderr[-5000:]

    def jobs(self, changes=None):
        """Jobs that would run: rule and important wildcards, for example `train sentence_transformer`."""
        done = snakemake(self.folder, "--dry-run", config=self.config(changes))
        assert done.returncode == 0, done.stderr
        return set(read_jobs(done.stdout + done.stderr))

    def plan(self, changes=None):
        """Plan in the Snakefile."""
        return Plan.load(merge(read_config_file(SMOKE), changes or {}), files=[])


def read_jobs(text):
    """Rule and wildcard values of all jobs in a dry run's messages. The target rule is left out."""
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
