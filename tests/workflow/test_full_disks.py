"""Full and read-only disks in every stage lead to one clear line, and later to the same files as without a fault."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from disks import CONDITIONS

NAMESPACE = ("unshare", "--map-root-user", "--mount")


@pytest.fixture
def try_disks(finished, tmp_path):
    """Run the trials of `disks.py` with separate disks."""
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not available here")

    def run(name):
        command = [*NAMESPACE, sys.executable, str(Path(__file__).with_name("disks.py")), name]
        done = subprocess.run(
            [*command, str(finished.folder), str(tmp_path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_commands_without_room_or_permission(try_disks):
    trials = try_disks("commands")
    counts = Counter(trial["condition"] for trial in trials)
    assert set(counts) == set(CONDITIONS)
    assert min(counts.values()) > 25
    for trial in trials:
        (line,) = trial["lines"]
        words = "is read-only" if trial["condition"] == "read-only" else "(No space left on device): free some space"
        assert line.startswith("docmt: error: results/"), trial
        assert words in line, trial
        assert (trial["code"], trial["changed"], trial["is_equal"]) == (2, [], True), trial


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_study_on_a_growing_disk(try_disks):
    *trials, end = try_disks("study")
    codes = [trial["code"] for trial in trials[::2]]
    assert codes[0] == 1
    assert codes[-1] == 0
    assert codes.count(1) > 3, codes
    for trial in trials[::2]:
        assert trial["code"] == 0 or "No space left on device" in trial["text"]
    for trial in trials[1::2]:
        assert trial["code"] == 1
        assert "is read-only: run a copy of the study" in trial["text"]
    assert not any("Traceback" in trial["text"] for trial in trials)
    assert end["differing"] == []
