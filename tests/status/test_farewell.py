"""The line after Ctrl-C."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from docmt.status.study import farewell


def test_the_line_after_ctrl_c_says_what_is_saved(folder):
    n_all = sum(map(len, folder.plan.targets().values()))
    line = farewell(folder.path, folder.plan)
    assert line == f"docmt: stopped: 0 of {n_all} results are made and stay; the same command makes the rest"
    folder.checkpoint("progress.json", {"step": 4, "seconds": 2.0})
    line = farewell(folder.path, folder.plan)
    assert f"saved: {folder.run.system}/seed1 after update 4 of 6; the same command resumes" in line
    assert "\n" not in line


SNAKEFILE = """
from docmt.snakemake import note_farewell

say = note_farewell(workflow, lambda: "docmt: farewell")

onerror:
    say()

rule all:
    output: "x"
    shell: "{command}"
"""


CTRL_C = "kill -INT $PPID; sleep 1; "


@pytest.mark.parametrize(
    ("command", "lines"),
    [pytest.param(CTRL_C + "exit 1", 1, marks=pytest.mark.slow), (CTRL_C * 2 + "exit 1", 1), ("exit 1", 0)],
)
def test_only_ctrl_c_makes_snakemake_say_farewell(command, lines, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("{command}", command))
    arguments = [str(Path(sys.executable).with_name("snakemake")), "--cores", "1"]
    # Where the tests run in the background, Ctrl-C is ignored.
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    # On a busy machine the signal may come while Snakemake closes one of its event loops, where nobody can catch it.
    for _attempt in range(3):
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=120, preexec_fn=heeding)
        if "asyncio/runners.py" not in done.stderr:
            break
    assert done.returncode != 0
    assert done.stderr.splitlines().count("docmt: farewell") == lines
    assert "Traceback" not in done.stderr
    assert done.stderr.count("already stopping") == (command.count(CTRL_C) == 2)
