"""Jobs from an earlier run, with a replacement for `squeue`. tests/slurm uses a real Slurm."""

import re
import subprocess
import sys

import pytest
from smoke_study import smoke_config

from docmt.config.plan import Plan
from docmt.errors import UserError
from docmt.slurm import QueueError, list_jobs, watch_jobs
from docmt.status.study import show_queue, show_study


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Make `squeue` print lines and exit with a code."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")

    def arrange(*lines, code=0):
        program = tmp_path / "bin/squeue"
        text = "".join(f"echo '{line}'\n" for line in lines)
        program.write_text(f"#!/bin/sh\n{text}[ {code} = 0 ] || echo 'squeue: error: no controller' >&2\nexit {code}\n")
        program.chmod(0o755)

    return arrange


def line(folder, number, state="RUNNING", comment="rule_train_wildcards_ted_1"):
    log = f"{folder}/.snakemake/slurm_logs/rule_train/x/%j.log"
    return f"{number}|{state}|{comment}|{log}|Priority|1:59:00|"


def test_jobs_are_those_of_this_study(squeue, tmp_path):
    lines = line(tmp_path, 7), line(tmp_path, 9, "PENDING", "rule_report_collect")
    squeue(lines[0], line(tmp_path / "other", 8), lines[1], "1|RUNNING|||||")
    jobs = list_jobs(tmp_path)
    assert [(job.id, job.state, job.label) for job in jobs] == [
        ("7", "RUNNING", "train ted_1"),
        ("9", "PENDING", "report_collect"),
    ]


def test_without_slurm_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list_jobs(tmp_path) == []


def test_absent_controller_is_no_empty_queue(squeue, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("atexit.register", lambda *_: None)
    squeue(code=1)
    with pytest.raises(QueueError, match="no controller"):
        list_jobs(tmp_path)
    watch_jobs(tmp_path)
    assert "jobs from an earlier run may still be running" in caplog.text


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("", "returned non-zero exit status 3"),
        ("\\n \\n", "returned non-zero exit status 3"),
        ("slow\\ncontroller down\\n \\n", "controller down"),
    ],
)
def test_a_blank_error_of_squeue_is_one(squeue, tmp_path, message, reason):
    squeue()
    (tmp_path / "bin/squeue").write_text(f"#!/bin/sh\nprintf '{message}' >&2\nexit 3\n")
    with pytest.raises(QueueError, match=rf"squeue failed \(.*{reason}"):
        list_jobs(tmp_path)


def test_lines_of_another_form_are_no_jobs(squeue, tmp_path):
    squeue("slurm is being maintained")
    with pytest.raises(QueueError, match="being maintained"):
        list_jobs(tmp_path)


def test_jobs_from_an_earlier_run_are_refused(squeue, tmp_path):
    squeue(*(line(tmp_path, number) for number in range(10, 17)))
    with pytest.raises(
        UserError, match=r"has jobs \(10, running, train ted_1; 11.*; …\) from an earlier.*scancel 10 11"
    ):
        watch_jobs(tmp_path)


def test_remaining_jobs_are_named(squeue, tmp_path):
    squeue()
    code = (
        "from pathlib import Path; from docmt.slurm import watch_jobs\n"
        f"watch_jobs(Path({str(tmp_path)!r}))\n"
        f"squeue = Path({str(tmp_path / 'bin/squeue')!r})\n"
        f"squeue.write_text('#!/bin/sh\\necho \"{line(tmp_path, 5)}\"\\n')\n"
        "raise KeyboardInterrupt"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Slurm still has jobs (5, running, train ted_1) from this run" in done.stderr
    assert "`scancel 5` cancels them" in done.stderr


def test_status_lists_the_queue(squeue, tmp_path):
    squeue(line(tmp_path, 7), line(tmp_path, 9, "PENDING", "rule_report_collect"))
    text = show_queue(tmp_path)
    assert re.search(r"^7 +running +train ted_1 +1:59:00$", text, re.MULTILINE)
    assert re.search(r"^9 +pending +report_collect +Priority$", text, re.MULTILINE)
    squeue(code=1)
    assert show_queue(tmp_path) == "Slurm's queue is unknown: squeue failed (squeue: error: no controller)"
    squeue()
    assert show_queue(tmp_path) == ""


SUBMITTED = "Job 4 has been submitted with SLURM jobid 7 (log: x.log).\n"
ARRAY = "Submitted array job with Snakemake IDs 4,5 and SLURM job ID 7. The individual task IDs are 1-2.\n"


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        (None, False),
        ("Building DAG of jobs...\n", False),
        (f"echo {SUBMITTED}", False),
        (f"Begun\n{SUBMITTED}", True),
        (f"Begun\n{ARRAY}", True),
    ],
)
def test_only_cluster_runs_have_a_queue(text, is_asked, squeue, tmp_path):
    squeue(code=1)
    if text is not None:
        (tmp_path / ".snakemake/log").mkdir(parents=True)
        (tmp_path / ".snakemake/log/1.snakemake.log").write_text(f"SNAKEMAKE\n{text}")
    plan = Plan(smoke_config())
    assert ("Slurm's queue is unknown" in show_study(tmp_path, plan)) is is_asked
