"""One trainer per folder, with real processes."""

import errno
import fcntl
import json
import logging
import os
import re
import signal
import subprocess
import sys

import pytest

from docmt.errors import UserError
from docmt.training import lock
from docmt.training.lock import FolderLock, is_running, read_status

HOLD = """
import sys, time
from pathlib import Path
from docmt.training.lock import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path, monkeypatch):
    """A process in Slurm job 77 that holds `tmp_path / "run"`."""
    environment = os.environ | {"SLURM_JOB_ID": "77"}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout.readline() == "held\n"
    monkeypatch.setattr(lock, "SECONDS_BETWEEN_TRIES", 0.001)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    yield process
    process.kill()
    process.communicate()


def test_second_trainer_learns_of_the_first(holder, tmp_path):
    running = read_status(tmp_path / "run")
    assert is_running(tmp_path / "run")
    assert running == running | {"pid": holder.pid, "job": "77"}
    expected = f"host {re.escape(running['host'])}, process {holder.pid}, job 77, .*scancel 77"
    with pytest.raises(UserError, match=expected), FolderLock(tmp_path / "run"):
        pass
    assert read_status(tmp_path / "run") == running
    (tmp_path / "run/running.json").write_text("")
    with (
        pytest.raises(UserError, match=r"host unknown, process unknown, job none.*or stop it; it saves"),
        FolderLock(tmp_path / "run"),
    ):
        pass


def test_a_killed_trainer_leaves_nothing_to_remove(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run/running.json").exists()
    assert not is_running(tmp_path / "run")
    with FolderLock(tmp_path / "run"):
        assert read_status(tmp_path / "run")["pid"] == os.getpid()
        assert read_status(tmp_path / "run")["job"] is None
    assert list((tmp_path / "run").iterdir()) == []


def test_a_trainer_that_ends_makes_room(holder, tmp_path):
    holder.communicate("", timeout=20)
    assert not (tmp_path / "run/running.json").exists()
    assert not is_running(tmp_path / "run")
    with FolderLock(tmp_path / "run"):
        assert is_running(tmp_path / "run")


def test_removed_file_is_no_lock(tmp_path, monkeypatch):
    """The first trainer removes its file after the second one has opened it. The second trainer uses a new file."""
    path = tmp_path / "running.json"
    flock = fcntl.flock

    def remove_and_lock(file, how):
        if not calls:
            path.unlink()
        calls.append(file)
        flock(file, how)

    calls = []
    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    with FolderLock(tmp_path):
        assert len(calls) == 2
        assert path.exists()


def test_without_locks_there_is_a_warning(tmp_path, monkeypatch, caplog):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with caplog.at_level(logging.WARNING), FolderLock(tmp_path):
        assert json.loads((tmp_path / "running.json").read_text())["pid"] == os.getpid()
        assert is_running(tmp_path)
    assert "does not support locks" in caplog.text
    assert not is_running(tmp_path)


def test_full_disk_is_named(small_disk):
    disk = small_disk(16)
    (disk / "filler").write_bytes(bytes(16 << 10))
    with pytest.raises(UserError, match=r"running\.json: cannot be written \(No space left"), FolderLock(disk):
        pytest.fail("locked")
