"""Real faults on a cluster. Trainings resume and end with the same weights, and nothing fails silently."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from slurm_fixtures import LONG, MODEL, ROOT, Study, assert_same_model, slurm, trainers, wait_until

from docmt.config.loading import merge

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]


def test_scancel_saves_and_the_next_job_resumes(study, expected):
    call = study.call(MODEL)
    call.wait_for_update(50)
    slurm("scancel", call.job())
    call.job(2)
    step = study.assert_saved_at_the_signal()
    assert 50 <= step < 600
    assert call.finish() == 0, call.text[-3000:]
    assert f"resumed after update {step}" in study.training_log()
    assert_same_model(study, expected)


@pytest.mark.parametrize("nodes", [1, 2])
def test_long_update_is_saved_before_the_kill(study, nodes, alone):
    slow = {"max_batch_tokens": 4000, "validate_every_steps": 100}
    changes = merge(LONG, {"training": {"scratch": slow}})
    wide = {"model": {"width": 256, "feed_forward_width": 1024, "heads": 4}}
    changes["systems"] = {"sentence_transformer": wide, "g_transformer": wide}
    call = study.call(MODEL, changes=changes, options=("--retries", "0", "--set-resources", f"train:nodes={nodes}"))
    folder = study.folder / "results/controlled/runs/sentence_transformer/seed1/checkpoints"
    call.wait_until(lambda: list(folder.glob("*/running.json")), what="a trainer")
    time.sleep(8)
    assert not study.checkpoints()
    slurm("scancel", call.job())
    assert call.finish() == 1
    assert study.checkpoints(), "the running update was completed and saved"


def test_time_limit_notice_leads_to_resuming(study, prepared, tmp_path):
    endless = merge(LONG, {"training": {"scratch": {"max_steps": 1_000_000, "patience": None}}})
    resources = ("train:runtime=2", "train:slurm_extra=--signal=TERM@15")  # a minute may pass before it trains
    call = study.call(MODEL, changes=endless, options=("--retries", "0", "--set-resources", *resources))
    assert call.finish() == 1
    step = study.assert_saved_at_the_signal()
    longer = merge(endless, {"training": {"scratch": {"max_steps": step + 100}}})
    study.run(MODEL, changes=longer)
    assert f"resumed after update {step}" in study.training_log()
    shutil.copytree(prepared.folder, tmp_path / "whole")
    whole = Study(tmp_path / "whole")
    whole.run_here(MODEL, changes=longer)
    assert_same_model(study, whole)


def test_a_requeued_job_resumes(study, expected):
    call = study.call(MODEL)
    call.wait_for_update(50)
    slurm("scontrol", "requeue", call.job())
    assert call.finish() == 0, call.text[-3000:]
    assert len(call.jobs()) == 1, "Slurm starts the same job again"
    assert "resumed after update" in study.training_log()
    assert_same_model(study, expected)


def test_a_killed_trainer_is_started_again(study, expected):
    call = study.call(MODEL)
    call.wait_for_update(250)
    (pid,) = trainers(study)
    os.kill(pid, signal.SIGKILL)
    assert call.finish() == 0, call.text[-3000:]
    assert len(call.jobs()) == 2
    assert "resumed after update 200" in study.training_log(), "of the newest checkpoint"
    assert_same_model(study, expected)


def test_killed_snakemake_starts_no_second_trainer(study, expected):
    call = study.call(MODEL)
    call.wait_for_update(50)
    call.process.kill()
    call.finish()
    job = call.job()
    study.run("--unlock")
    again = study.call(MODEL)
    assert again.finish() == 1
    assert re.search(rf"has jobs \({job}, running, train .* from an earlier run.*scancel {job}", again.text), again.text
    assert not again.jobs()
    wait_until(lambda: not study.queue(), what="the end of the job")
    assert (study.folder / MODEL).exists(), "the job continued to its end"
    study.run(MODEL)
    assert_same_model(study, expected)


def test_two_interruptions_name_the_jobs_that_are_left(study):
    call = study.call(MODEL)
    call.wait_for_update(10)
    os.killpg(call.process.pid, signal.SIGINT)
    time.sleep(0.02)
    os.killpg(call.process.pid, signal.SIGINT)
    call.finish()
    jobs = study.queue("--states", "PENDING,RUNNING")
    assert not jobs or re.search(rf"Slurm still has jobs .*scancel {' '.join(jobs)}", call.text), call.text[-2000:]


def test_one_interruption_ends_the_jobs_after_they_saved(study, expected):
    call = study.call(MODEL)
    call.wait_for_update(50)
    os.killpg(call.process.pid, signal.SIGINT)
    assert call.finish() == 1
    wait_until(lambda: not study.queue(), what="the end of the job")
    assert study.checkpoints()[-1] >= 50
    study.run(MODEL)
    assert_same_model(study, expected)


def test_refused_submissions_and_restarts_are_survived(study, expected, cluster, alone):
    cluster.stop_controller()
    call = study.call(MODEL)
    call.wait_for("no place for job .* submitted again")
    cluster.start_controller()
    call.wait_for_update(50)
    cluster.stop_controller()
    time.sleep(30)
    cluster.start_controller()
    assert call.finish() == 0, call.text[-3000:]
    assert_same_model(study, expected)


def status_of(study):
    """Output of `docmt status`."""
    command = [sys.executable, "-m", "docmt", "status", "--directory", study.folder]
    command += ["--configfile", study.folder / "study.yaml"]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_refused_group_says_why(study):
    changes = merge(LONG, {"text": {"bpe_merges": 90}})
    call = study.call("text", changes=changes, options=("--default-resources", "slurm_partition=nowhere"))
    assert call.finish() == 1
    assert "Group job text_controlled" in call.text
    reason = "invalid partition specified: nowhere"
    assert any(reason in line for line in call.text.splitlines()[-15:]), call.text[-3000:]
    assert reason in status_of(study)
    assert not call.jobs()


def slurm_log(study, job):
    """Log of a failed job, from Slurm and from Snakemake inside the job."""
    (log,) = (study.folder / ".snakemake/slurm_logs").rglob(f"{job}.log")
    return log.read_text(encoding="utf-8", errors="replace")


def test_too_little_memory_is_retried_with_more(study, expected):
    call = study.call(MODEL, options=("--set-resources", "train:mem_mb=300 * attempt * attempt"))
    assert call.finish() == 0, call.text[-3000:]
    first, *others = call.jobs()
    assert "memory limit" in slurm_log(study, first).lower()
    assert others
    assert_same_model(study, expected)


def test_too_little_memory_at_every_attempt_is_reported(study):
    call = study.call(MODEL, options=("--set-resources", "train:mem_mb=40 * attempt"))
    assert call.finish() == 1
    jobs = call.jobs()
    assert len(jobs) == 3
    assert all("memory limit" in slurm_log(study, job).lower() for job in jobs)
    assert not (study.folder / MODEL).exists()
    status = status_of(study)
    assert re.search(r"(?i)sentence_transformer.*memory limit", status, re.DOTALL), status
