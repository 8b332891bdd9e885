"""Trainings on two nodes on this machine: one job, one model, and faults on one node."""

import os
import re
import signal

import pytest
from slurm_fixtures import LONG, MODEL, assert_same_model, environment, slurm, trainers, wait_until

from docmt.config.loading import merge
from docmt.files import read_json

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]

NODES = ("--set-resources", "train:nodes=2")


def ranks(study):
    """Training processes, by node and number on the node."""
    tasks = {pid: environment(pid) for pid in trainers(study)}
    return {(values["NODE_RANK"], values["LOCAL_RANK"]): pid for pid, values in tasks.items() if "LOCAL_RANK" in values}


def test_two_nodes_train_the_model_of_two_devices(study, expected_of_two):
    """With a signal and a second job during the training."""
    call = study.call(MODEL, options=NODES)
    call.wait_for_update(50)
    job = slurm("scontrol", "show", "job", call.job())
    assert re.search(r"NumNodes=2 NumCPUs=8 ", job), job
    assert re.search(r"TresPerJob=gres:gpu:2\s+TresPerNode=gres:gpu:1\s", job), job
    assert ranks(study).keys() == {("0", "0"), ("1", "0")}
    slurm("scancel", call.job())
    call.job(2)
    step = study.assert_saved_at_the_signal()
    assert study.checkpoints() == [step]
    assert 50 <= step < 600
    assert call.finish() == 0, call.text[-3000:]
    assert f"resumed after update {step}" in study.training_log()
    assert re.search(r"2 × cpu", study.training_log())
    assert_same_model(study, expected_of_two)
    facts = read_json((study.folder / MODEL).with_suffix(".job.json"))
    assert (facts["n_devices"], facts["n_nodes"]) == (2, 2)
    assert facts["cpu_seconds"] > 1, "`srun`, which Snakemake measures, needs next to nothing"


def test_requeue_and_kill_on_two_nodes(study, expected_of_two):
    call = study.call(MODEL, options=NODES)
    call.wait_for_update(50)
    slurm("scontrol", "requeue", call.job())
    wait_until(lambda: "resumed after update" in study.training_log(), what="the second start")
    assert len(call.jobs()) == 1, "Slurm starts the same job again"
    call.wait_for_update(250)
    started = ranks(study)
    pid = started["1", "0"]
    os.kill(pid, signal.SIGKILL)
    call.wait_until(lambda: "ERROR" in study.training_log(), what="a message")
    log = study.training_log()
    call.job(2)
    assert log.count("ERROR") == 1
    assert re.search(rf"ERROR training process 1 \(pid {pid} on \S+\) was killed by SIGKILL: all processes", log)
    assert "Traceback" not in log
    assert not set(started.values()) & set(trainers(study))
    assert call.finish() == 0, call.text[-3000:]
    assert "resumed after update 200" in study.training_log()
    assert_same_model(study, expected_of_two)


def test_time_limit_notice_reaches_both_nodes(study):
    endless = merge(LONG, {"training": {"scratch": {"max_steps": 1_000_000, "patience": None}}})
    resources = ("train:nodes=2", "train:gpu=0", "train:runtime=2", "train:slurm_extra=--signal=TERM@15")
    call = study.call(MODEL, changes=endless, options=("--retries", "0", "--set-resources", *resources))
    assert call.finish() == 1
    study.assert_saved_at_the_signal()
    log = study.training_log()
    assert log.count("SIGTERM: saving a checkpoint") == 1
    assert "ERROR" not in log
    assert not ranks(study)
