"""Failed jobs, and locks and marks of Snakemake."""

import subprocess
import sys
from textwrap import indent

import pytest
from study_folders import BEGUN, FAILED

from docmt.snakemake import read_jobs, read_workflow
from docmt.status.failures import last_error


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("05:31:30 INFO fine\n", None),
        ("docmt: error: no such file\n", "docmt: error: no such file"),
        ("docmt train: error: unrecognized arguments: --x\n", "docmt train: error: unrecognized arguments: --x"),
        ("docmt: error: old\n05:31:30 INFO began again\n", None),
        ("Traceback (most recent call last):\n  File …\nValueError: bad\n", "ValueError: bad"),
        ("torch.OutOfMemoryError: CUDA out of memory.\nmore\n", "torch.OutOfMemoryError: CUDA out of memory."),
        ("x.py:3: UserWarning: careful\n", None),
        ("/usr/bin/bash: line 1: docmt: command not found\n", "/usr/bin/bash: line 1: docmt: command not found"),
        ("05:31:30 ERROR broken\n", "05:31:30 ERROR broken"),
        ("train:  50%|###\rtrain: 51%\rKilled\n", "Killed"),
        ("a" * 20000 + "\nMemoryError\n", "MemoryError"),
    ],
)
def test_last_error(tmp_path, text, line):
    path = tmp_path / "x.log"
    path.write_text(text)
    assert last_error(path) == line
    path.write_bytes(b"\xff\xfe\n" + text.encode())
    assert last_error(path) == line


def test_log_before_its_benchmark_is_fine(folder):
    folder.write("logs/learn_bpe/d.log", "ValueError: bad\n", age=20)
    folder.write("results/benchmarks/learn_bpe/d.tsv", "s\n", age=10)
    assert folder.failures() == []
    folder.write("results/benchmarks/learn_bpe/d.tsv", "s\n", age=30)
    (failure,) = folder.failures()
    assert (failure.rule, failure.name, failure.job) == ("learn_bpe", "d", None)


def test_failure_that_was_begun_again_is_none(folder):
    log = "logs/learn_bpe/d.log"
    values = {"rule": "learn_bpe", "outputs": "a, b", "log": log, "number": "4"}
    folder.write(log, "ValueError: of the attempt before\n")
    folder.lock()
    folder.snakemake(BEGUN.format(**values), FAILED.format(**values), BEGUN.format(**values), host="elsewhere")
    folder.mark("b")
    assert folder.failures() == []


def test_job_of_a_failed_group_is_named(folder):
    """Jobs in a group share a submission. Snakemake prints them below its name."""
    log = f"logs/evaluate_run/{folder.stem}.log"
    values = {"rule": "evaluate_run", "outputs": "a", "log": log, "number": "4"}
    begun = "Group job scores_d_s (jobs in lexicogr. order):\n\n" + indent(BEGUN.format(**values), "    ")
    summary = f"[Sat]\n    jobs:\n        rule evaluate_run:\n            jobid: 4\n            log: {log}\n"
    folder.write(log, "05:31:30 INFO scored\n")
    folder.snakemake(begun)
    assert folder.failures() == []
    folder.snakemake(begun, summary, indent(FAILED.format(**values), "    "))
    (failure,) = folder.failures()
    assert (failure.rule, failure.name) == ("evaluate_run", folder.stem)
    assert failure.line.startswith("no error in the log (killed? disk full?)")


def test_other_failures_do_not_matter(folder):
    folder.write("logs/translate/smoke/gone_system/seed1/test.log", "ValueError: bad\n")
    assert folder.failures() == []
    folder.write("logs/report_render/report_render.log", "ValueError: bad\n")
    assert [failure.rule for failure in folder.failures()] == ["report_render"]
    for name in ("report.html", "summary.txt", "tables", "figures", "reader.html"):
        folder.write(f"results/report/{name}")
    assert folder.failures() == []
    folder.write("logs/mine/x.log", "ValueError: bad\n")
    assert [failure.rule for failure in folder.failures()] == ["mine"]


@pytest.mark.parametrize(
    ("log", "is_shown"),
    [
        ("evaluate_run/smoke/rst_mix/seed1", True),
        ("evaluate_difference/smoke/rst_mix/sentence_transformer", True),
        ("evaluate_difference/smoke/gone/sentence_transformer", False),
        ("evaluate_difference/smoke/rst_mix/gone", False),
        ("report_collect/smoke/runs/rst_mix", True),
        ("report_collect/smoke/runs/gone", False),
        ("report_collect/smoke", True),
    ],
)
def test_comparisons_and_tables_fail_too(log, is_shown, folder):
    folder.write(f"logs/{log}.log", "ValueError: bad\n")
    assert bool(folder.failures()) == is_shown


def test_jobs_in_snakemakes_messages():
    values = {"rule": "train", "outputs": "m.pt, h.csv", "log": "logs/train/x.log", "number": "4"}
    text = BEGUN.format(**values)
    text += "Job 4 has been submitted with SLURM jobid 17 (log: /x/17.log).\n"
    text += FAILED.format(**values).replace("    shell:", "    external_jobid: 17\n    shell:")
    begun, failed = read_jobs(text)
    assert (begun.outputs, begun.log, begun.is_failed) == (("m.pt", "h.csv"), "logs/train/x.log", False)
    assert (failed.log, failed.is_failed, failed.job) == ("logs/train/x.log", True, "17")
    assert list(read_jobs("")) == []
    assert [job.job for job in read_jobs(text.replace("    external_jobid: 17\n", "") * 2)] == [None, "17"] * 2


def test_marks_of_long_names_and_foreign_files(folder):
    long = "results/" + "x" * 300
    folder.mark(long)
    folder.write(".snakemake/incomplete/migration_underway")
    assert read_workflow(folder.path).started == {long}


def test_lock_with_and_without_a_living_snakemake(folder):
    folder.lock()
    folder.snakemake(host="elsewhere")
    assert read_workflow(folder.path).state == "locked"
    folder.snakemake()
    assert read_workflow(folder.path).state == "killed"
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "snakemake"]
    with subprocess.Popen(command, cwd=folder.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        workflow = read_workflow(folder.path)
        process.stdin.close()
    assert workflow.state == "running"


def test_reading_changes_nothing(folder):
    folder.checkpoint("running.json", {"host": "elsewhere"}, age=100)
    folder.mark(folder.model)
    folder.lock()
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    assert folder.status() == 0
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before
