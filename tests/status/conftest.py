"""An empty folder of a study, and a `squeue` that answers what a test wants."""

import pytest
from smoke_study import smoke_config
from study_folders import Folder

from docmt.config.plan import Plan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The empty folder of the smoke study, on a machine without Slurm."""
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    (tmp_path / "study").mkdir()
    return Folder(tmp_path / "study", Plan(smoke_config()))


@pytest.fixture
def squeue(folder, tmp_path):
    """Write a `squeue` that runs a shell script."""

    def write(script):
        program = tmp_path / "bin/squeue"
        program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        program.chmod(0o755)

    def answer(*jobs):
        """Jobs as (id, state, reason, node, comment); of this study unless a folder is given last."""
        lines = []
        for number, state, reason, node, comment, *other in jobs:
            home = other[0] if other else folder.path
            log = f"{home}/.snakemake/slurm_logs/rule_x/%j.log"
            lines.append("|".join([number, "uuid", state, reason, node, comment, log, ""]))
        write("\n".join(["cat <<'END'", *lines, "END"]))

    write.answer = answer
    return write
