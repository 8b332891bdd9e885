"""Failed jobs, Snakemake's lock and marks, and a Slurm that does not answer."""

import subprocess
import sys

import pytest
from study_folders import BEGUN, FAILED, HEAD

from docmt.snakemake import SLURM_LOGS, read_jobs, read_workflow
from docmt.status import cluster
from docmt.status.cluster import read_queue
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


def test_log_older_than_its_benchmark_is_of_a_job_that_ended_well(folder):
    folder.write("logs/learn_bpe/d.log", "ValueError: bad\n", age=20)
    folder.write("results/benchmarks/learn_bpe/d.tsv", "s\n", age=10)
    assert folder.read().failures == []
    folder.write("results/benchmarks/learn_bpe/d.tsv", "s\n", age=30)
    (failure,) = folder.read().failures
    assert (failure.rule, failure.stage, failure.name, failure.job) == ("learn_bpe", "text", "d", None)


def test_failure_that_was_begun_again_is_running(folder):
    log = "logs/learn_bpe/d.log"
    values = {"rule": "learn_bpe", "outputs": "a, b", "log": log, "number": "4"}
    folder.write(log, "ValueError: of the attempt before\n")
    folder.lock()
    folder.snakemake(BEGUN.format(**values), FAILED.format(**values), BEGUN.format(**values), host="elsewhere")
    folder.mark("b", job="9")
    status = folder.read()
    assert status.failures == []
    assert [(job.rule, job.name, job.job) for job in status.workflow.running()] == [("learn_bpe", "d", "9")]


def test_failures_of_finished_stages_and_other_runs_do_not_matter(folder):
    folder.write("logs/translate/gone_system_seed1_test.log", "ValueError: bad\n")
    assert folder.read().failures == []
    folder.write("logs/render/render.log", "ValueError: bad\n")
    assert [failure.rule for failure in folder.read().failures] == ["render"]
    folder.write("results/report/report.html")
    folder.write("results/report/reader.html")
    assert folder.read().failures == []
    folder.write("logs/mine/x.log", "ValueError: bad\n")
    assert [failure.stage for failure in folder.read().failures] == ["other"]


@pytest.mark.parametrize(
    ("log", "is_shown"),
    [
        ("compare_translation/controlled_rst_mix_sentence_transformer_test_controlled", True),
        ("compare_translation/controlled_gone_sentence_transformer_test_controlled", False),
        ("compare_translation/controlled_rst_mix_gone_test_controlled", False),
        ("gather_system/controlled_rst_mix", True),
        ("gather_system/controlled_rst_mix_gone", False),
        ("gather_dataset/controlled", True),
        ("gather_dataset/gone", False),
    ],
)
def test_comparisons_and_tables_fail_too(log, is_shown, folder):
    folder.write(f"logs/{log}.log", "ValueError: bad\n")
    assert bool(folder.read().failures) == is_shown


def test_the_files_of_the_last_configuration_have_any_name(folder):
    head = HEAD.format(host="x").replace(
        "('/somewhere/smoke.yaml')", """("it's (1), a.yaml"), PosixPath('b\\n.yaml')"""
    )
    folder.write(".snakemake/log/1.snakemake.log", head)
    assert read_workflow(folder.path).configfiles == ("it's (1), a.yaml", "b\n.yaml")


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
    folder.mark(long, job=5)
    folder.write(".snakemake/incomplete/migration_underway")
    assert read_workflow(folder.path).started == {long: "5"}


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
    assert (workflow.state, workflow.pid) == ("running", process.pid)


def test_no_slurm_is_no_problem(folder):
    queue = read_queue(folder.path)
    assert queue.jobs == ()
    assert queue.problem is None
    assert not queue.is_known


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "Unable to contact"),
        ("exec sleep 30", "did not answer within"),
    ],
)
def test_slurm_that_does_not_answer_is_said_and_nothing_more(folder, squeue, monkeypatch, script, problem):
    monkeypatch.setattr(cluster, "TIMEOUT_SECONDS", 0.3)
    squeue(script)
    assert read_queue(folder.path).problem is None  # a study that submitted nothing misses nothing
    (folder.path / SLURM_LOGS).mkdir(parents=True)
    status = folder.read()
    assert problem in status.queue.problem
    assert not status.queue.is_known
    assert {training.state for training in status.trainings} == {"waiting"}


def test_reading_changes_nothing(folder):
    folder.checkpoint("running.json", {"host": "elsewhere"}, age=100)
    folder.mark(folder.model)
    folder.lock()
    before = {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")}
    folder.read()
    assert {path: path.stat().st_mtime_ns for path in folder.path.rglob("*")} == before
