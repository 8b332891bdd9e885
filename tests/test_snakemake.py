"""Snakemake itself, on a Snakefile of two rules: what makes it rerun jobs."""

import re
import subprocess
import sys
from importlib import metadata

import pytest

from docmt.snakemake import TESTED

SNAKEFILE = """
from docmt.snakemake import ignore_code_changes

ignore_code_changes(workflow)


rule all:
    input:
        "made/b.txt",


rule first:
    output:
        "made/a.txt",
    params:
        word="one",
    shell:
        "echo {params.word} > {output}"


rule second:
    input:
        "made/a.txt",
    output:
        "made/b.txt",
    shell:
        "cat {input} > {output}"
"""


@pytest.fixture
def snakemake(tmp_path):
    """Runs Snakemake on `SNAKEFILE`, after a change; returns the rules whose jobs it runs or would run."""

    def run(*options, change=("", "")):
        assert change[0] in SNAKEFILE
        (tmp_path / "Snakefile").write_text(SNAKEFILE.replace(*change))
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--nocolor", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return {name for name in re.findall(r"^(?:local)?rule (\w+):", done.stdout + done.stderr, re.MULTILINE)} - {
            "all"
        }

    return run


REWORDED = ("echo {params.word}", "echo  {params.word}")


def test_a_reworded_command_reruns_nothing_and_a_changed_parameter_does(snakemake):
    assert snakemake() == {"first", "second"}
    assert snakemake(change=REWORDED) == set()
    assert snakemake("--dry-run", "--rerun-triggers", "code", change=REWORDED) == {"first", "second"}
    assert snakemake("--dry-run", change=("one", "two")) == {"first", "second"}


def test_a_job_in_a_second_snakemake_reads_the_snakefile(snakemake):
    as_python = ('shell:\n        "cat {input} > {output}"', 'run:\n        open(output[0], "w").write("b")')
    assert snakemake(change=as_python) == {"first", "second"}


def test_the_linter_reads_the_snakefile(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Lints for rule first" in done.stdout + done.stderr


def test_the_installed_versions_are_those_that_were_tested():
    assert {name: metadata.version(name) for name in TESTED} == TESTED
