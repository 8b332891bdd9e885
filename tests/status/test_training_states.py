"""Training states, derived from files."""

import platform
import subprocess
import sys

import pytest
from study_folders import BEGUN, FAILED

from docmt.status.study import describe_failures

PROGRESS = {"step": 5, "max_steps": 20, "epoch": 1, "tokens_per_second": 100, "dev_loss": 2.5, "best_loss": 2.0,
            "seconds": 10.0, "updated": "2026-11-21T05:43:08+00:00"}  # fmt: skip
HISTORY = "step,epoch,seconds,tokens_per_second,dev_loss\n2,0,4,90,3.5\n4,0,8,95,3.0\n5,,10,,\n"
HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Lock a file in another process, as a trainer does. Call the result to release it."""
    holders = []

    def start(path):
        command = [sys.executable, "-c", HOLDER, str(path)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        holders.append(holder)
        assert holder.stdout.readline() == "held\n"
        return holder

    yield start
    for holder in holders:
        holder.kill()
        holder.communicate()


def note(host=None, **more):
    return {"host": host or platform.node(), "pid": 77, "job": None, "started": "2026-11-21T05:43:08+00:00", **more}


def blocks(folder):
    values = {"rule": "train", "outputs": folder.model, "log": f"logs/train/{folder.stem}.log", "number": "4"}
    return BEGUN.format(**values), FAILED.format(**values)


def test_running_while_the_trainer_holds_its_note(folder, hold):
    path = folder.checkpoint("running.json", note())
    folder.checkpoint("progress.json", PROGRESS)
    holder = hold(path)
    training = folder.training()
    assert training.state == "running"
    assert (training.step, training.tokens_per_second, training.dev_loss) == (5, 100, 2.5)
    assert training.eta_seconds == pytest.approx((training.max_steps - 5) * 2)
    holder.kill()
    holder.wait()
    training = folder.training()
    assert training.state == "interrupted"
    assert training.eta_seconds is None
    assert training.step == 5


@pytest.mark.parametrize(
    ("started", "age", "state"), [(9000, 5, "running"), (9000, 5000, "interrupted"), (0, None, "interrupted")]
)
def test_remote_trainer_lives_while_it_progresses(folder, started, age, state):
    folder.checkpoint("running.json", note(host="elsewhere"), age=started)
    if age is not None:
        folder.checkpoint("progress.json", PROGRESS, age=age)
    assert folder.training().state == state


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"step": "many", "seconds": null}'])
def test_damaged_notes_are_no_obstacle(folder, text):
    folder.checkpoint("running.json", text)
    folder.checkpoint("progress.json", text)
    training = folder.training()
    assert training.state == "interrupted"
    assert training.step is None


def test_history_stands_in_for_progress(folder):
    folder.checkpoint("history.csv", HISTORY)
    training = folder.training()
    assert training.state == "interrupted"
    assert (training.step, training.tokens_per_second, training.dev_loss) == (5, 95, 3.0)


def test_newest_settings_count(folder):
    folder.checkpoint("progress.json", PROGRESS | {"step": 19}, fingerprint="old", age=500)
    folder.checkpoint("progress.json", PROGRESS | {"step": 3}, fingerprint="new")
    assert folder.training().step == 3


def test_done_with_the_model(folder):
    folder.write(folder.model)
    folder.write(folder.run_folder / "history.csv", HISTORY)
    folder.write(f"logs/train/{folder.stem}.log", "docmt: error: of an earlier attempt\n", age=100)
    assert folder.training().state == "done"
    assert folder.training().step == 5
    assert folder.failures() == []


def test_marked_model_is_not_done(folder):
    folder.write(folder.model)
    folder.mark(folder.model)
    assert folder.training().state == "waiting"


def test_failed_with_the_last_line_of_its_log(folder):
    folder.checkpoint("progress.json", PROGRESS)
    log = "05:31:30 INFO 1.07M parameters, cpu, 32-true\rbar\ndocmt: error: training: the loss is nan at update 7\n"
    folder.write(f"logs/train/{folder.stem}.log", log)
    assert folder.training().state == "failed"
    (failure,) = folder.failures()
    assert failure.line == "docmt: error: training: the loss is nan at update 7"


def test_begun_again_after_a_failure_is_running(folder, hold):
    folder.write(f"logs/train/{folder.stem}.log", "docmt: error: no luck\n")
    hold(folder.checkpoint("running.json", note()))
    assert folder.training().state == "running"
    assert folder.failures() == []


def test_killed_without_a_word_is_named_by_snakemake(folder):
    begun, failed = blocks(folder)
    folder.write(f"logs/train/{folder.stem}.log", "05:31:30 INFO update 3\n")
    folder.snakemake(begun)
    assert folder.training().state == "waiting"
    folder.snakemake(begun, failed)
    assert folder.training().state == "failed"
    assert folder.failures()[0].line.startswith("no error in the log (killed? disk full?)")
    assert "update 3" in folder.failures()[0].line


def test_asked_to_stop_is_interrupted_not_failed(folder):
    folder.checkpoint("progress.json", PROGRESS)
    warning = "05:31:30 WARNING SIGTERM: saving a checkpoint after the running update\n"
    folder.write(f"logs/train/{folder.stem}.log", warning)
    folder.snakemake(*blocks(folder))
    assert folder.training().state == "interrupted"
    assert folder.failures() == []
    log = f"logs/train/{folder.stem}.log"
    line = f"train interrupted: it will resume from its checkpoint ({log})"
    assert describe_failures(folder.path, [("train", log)]) == [line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("05:31:30 WARNING SIGTERM: saving a checkpoint\ndocmt: error: disk full\n", "train failed: disk full"),
        ("05:31:30 INFO update 3\n", "train failed: no error in its log"),
    ],
)
def test_other_ends_are_failures(text, line, folder):
    log = f"logs/train/{folder.stem}.log"
    folder.write(log, text)
    assert describe_failures(folder.path, [("train", log)]) == [f"{line} ({log})"]


def test_on_its_way_to_the_first_note(folder):
    folder.mark(folder.model)
    folder.lock()
    folder.snakemake(blocks(folder)[0], host="elsewhere")
    assert folder.training().state == "started"
    folder.snakemake(blocks(folder)[0])  # this host, where no Snakemake lives
    assert folder.training().state == "waiting"


def test_job_number_from_the_logs_of_slurm(folder):
    run = folder.run
    logs = f".snakemake/slurm_logs/rule_train/{run.dataset}_{run.system}_{run.seed}"
    folder.write(f"{logs}/7.log", "", age=50)
    folder.write(f"{logs}/12.log", "slurmstepd-node7: error: *** JOB 12 ON n1 CANCELLED AT … DUE TO TIME LIMIT ***\n")
    folder.write(f"logs/train/{folder.stem}.log", "05:31:30 INFO update 3\n")
    folder.snakemake(*blocks(folder))
    (failure,) = folder.failures()
    assert failure.job == "12"
    assert "DUE TO TIME LIMIT" in failure.line


def test_word_of_slurm_when_nothing_else_is_known(folder):
    message = "SLURM-job '53' failed, SLURM status is: 'CANCELLED'. Detailed failure reason unavailable (…)."
    begun, failed = blocks(folder)
    folder.write(f"logs/train/{folder.stem}.log", "05:31:30 INFO update 3\n")
    logs = f".snakemake/slurm_logs/rule_train/{folder.stem.replace('/', '_')}"
    folder.write(f"{logs}/53.log", "WorkflowError:\nsrun: error: n1: exit code 1\n")
    folder.snakemake(begun, failed.replace("message: None", f"message: {message}"))
    (failure,) = folder.failures()
    assert failure.line == "SLURM-job '53' failed, SLURM status is: 'CANCELLED'."
    assert failure.job == "53"
