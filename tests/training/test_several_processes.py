"""`docmt train --devices 2` on the CPU, with real processes: losses, signals, and processes that die."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pandas as pd
import pytest
from core_fixtures import RECIPE, model_settings, run_training, train_arguments

from docmt.errors import UserError

RTOL = 1e-5  # two devices add float32 numbers in another order than one does
ATOL = 1e-6  # of differences of entropies, which are small
VALUES = {"word_dropout": 0.3, "drop_rst": 0.5, "accumulation_steps": 2, "log_every_steps": 1, "max_steps": 8}


def start(study, folder, recipe, **options):
    model = model_settings("rst_mix", dropout=0.0).model_dump()
    settings = {"model": model, "training": RECIPE | recipe}
    trees = study.instances("trees")
    arguments = train_arguments(study, folder, settings, train=trees, dev=trees, **({"devices": 2} | options))
    return subprocess.Popen(
        [sys.executable, "-m", "docmt.cli.main", *arguments], stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(folder, pattern, process):
    deadline = time.monotonic() + 300
    while not list((folder / "checkpoints").glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def without_times(history):
    return history.drop(columns=["seconds", "tokens_per_second"])


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(study_files, tmp_path):
    """With dropped words and trees. Then one process resumes from the checkpoint of both."""
    one, expected = run_training(
        study_files, tmp_path / "one", architecture="rst_mix", model={"dropout": 0.0}, training=VALUES
    )
    two = tmp_path / "two"
    two.mkdir()
    process = start(study_files, two, VALUES | {"max_steps": 6})
    _, messages = process.communicate(timeout=300)
    assert process.returncode == 0, messages
    assert "2 devices share every update" in messages
    assert messages.count("update 4  epoch") == 1
    short_history = pd.read_csv(two / "history.csv")
    assert short_history["step"].tolist() == list(range(1, 7))
    (folder,) = (two / "checkpoints").iterdir()
    assert json.loads((folder / "progress.json").read_text())["step"] == 6
    assert not (folder / "running.json").exists()
    assert json.loads((two / "model.job.json").read_text())["n_devices"] == 2
    pd.testing.assert_frame_equal(
        without_times(short_history.iloc[:5]), without_times(expected.iloc[:5]), rtol=RTOL, atol=ATOL, check_exact=False
    )
    resumed, history = run_training(study_files, two, architecture="rst_mix", model={"dropout": 0.0}, training=VALUES)
    # The shorter training was validated at its end.
    validated = ["dev_loss", "dev_nll", *(name for name in history if name.startswith(("entropy", "below_uniform")))]
    history.loc[history["step"] == 6, validated] = float("nan")
    pd.testing.assert_frame_equal(without_times(history), without_times(expected), rtol=RTOL, atol=ATOL)
    assert resumed.provenance["best_step"] == one.provenance["best_step"]


PROCESS = """
import os, sys, torch
from docmt.training import devices
rank = int(os.environ["LOCAL_RANK"])
devices.cpu_has_bfloat16 = lambda: True
devices.fastest_precision = lambda steps: "float32" if rank else "bfloat16"
fabric = devices.make_fabric("fastest", "cpu", width=512, devices=2)
print(rank, devices.DTYPES[fabric.strategy.precision.precision], fabric.broadcast(rank))
"""


@pytest.mark.slow
def test_processes_agree_on_the_fastest_precision():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": "0", "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS],
            env=os.environ | address | {"LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [process.communicate(timeout=120)[0].strip() for process in ranks]
    assert outputs == ["0 torch.bfloat16 0", "1 torch.bfloat16 0"]


@pytest.mark.slow
def test_signal_reaches_all_processes(study_files, tmp_path):
    process = start(study_files, tmp_path, {"max_steps": 100_000})
    wait_for(tmp_path, "*/step-*.json", process)
    workers = children(process)
    with pytest.raises(UserError, match=f"another training is running here: host .*, process {workers[0]}, job"):
        run_training(study_files, tmp_path, architecture="rst_mix", model={"dropout": 0.0})
    process.send_signal(signal.SIGUSR1)
    _, messages = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGUSR1, messages
    assert len(workers) == 2
    assert not any(map(is_alive, workers))
    assert messages.count("saving a checkpoint") == 1
    assert "error" not in messages
    assert not (tmp_path / "model.pt").exists()

    # Then one of the processes is killed, and in the next training the one that watches them.
    process = start(study_files, tmp_path, {"max_steps": 100_000})
    wait_for(tmp_path, "*/running.json", process)
    workers = children(process)
    os.kill(workers[1], signal.SIGKILL)
    _, messages = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGKILL
    errors = [line for line in messages.splitlines() if "ERROR" in line]
    assert len(errors) == 1
    assert re.search(rf"process 1 \(pid {workers[1]}\) was killed by SIGKILL: all", errors[0])
    assert "Traceback" not in messages
    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_no_process_outlives_the_one_that_started_them(study_files, tmp_path):
    process = start(study_files, tmp_path, {"max_steps": 100_000})
    wait_for(tmp_path, "*/step-*.json", process)
    workers = children(process)
    process.kill()
    process.communicate(timeout=300)
    deadline = time.monotonic() + 20
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) == 2
    assert not any(map(is_alive, workers))


@pytest.mark.slow
def test_slurm_variables_connect_two_nodes(study_files, tmp_path, monkeypatch):
    """As `srun --nodes=2 --ntasks-per-node=1` starts them. Both nodes are this machine."""
    values = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost", "SLURM_LOCALID": "0"}
    for name, value in (values | {"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0"}).items():
        monkeypatch.setenv(name, value)
    tasks = []
    for number in ("0", "1"):
        monkeypatch.setenv("SLURM_NODEID", number)
        tasks.append(start(study_files, tmp_path, VALUES | {"max_steps": 2}, devices=1, nodes=2))
    messages = [task.communicate(timeout=300)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], messages
    assert "2 × cpu" in messages[0]
    assert "update 2" in messages[0]
    assert "update" not in messages[1]
    assert json.loads((tmp_path / "model.job.json").read_text())["n_devices"] == 2
