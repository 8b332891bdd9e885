"""After twenty times `kill -9` of Snakemake, a job, or both, in all stages, the study has the same files."""

import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from damage import lasting
from studies import Study, start_snakemake
from test_workflow_kills import wait_until, working_in

from docmt.cli.main import main

WHO = ("Snakemake", "a job", "both")
STAGES = ("corpora", "text", "discourse", "instances", "train", "decode", "evaluate", "report")
"""Groups of docmt's commands. They are killed at least twice."""
KILLS = [STAGES[number % len(STAGES)] for number in range(20)]


def commands(folder):
    """Running docmt commands: process and group of commands (`text`, `train`, …)."""
    for process in working_in(folder):
        with contextlib.suppress(OSError, StopIteration, IndexError):
            words = Path(f"/proc/{process}/cmdline").read_text(encoding="utf-8").split("\0")
            index = next(number for number, word in enumerate(words) if word.endswith("/docmt"))
            yield process, words[index + 1]


def content(file):
    """Content of a file. Provenance is left out, because it includes times and checksums of files with times."""
    if file.suffix != ".json":
        return lasting(file)
    value = json.loads(file.read_text(encoding="utf-8"))
    return {key: value[key] for key in value if key != "provenance"} if isinstance(value, dict) else value


def results(folder):
    """All lasting results of a study, without times. Drawings and pages that show times are left out."""
    left_out = (".checksums", "benchmarks", "report", "checkpoints", "tables", "figures", "against")
    files = [file for file in (folder / "results").rglob("*") if file.is_file() and not set(file.parts) & set(left_out)]
    candidates = [file for file in files if file.name != ".snakemake_timestamp" and not file.name.endswith(".job.json")]
    paths = {str(file.relative_to(folder)): file for file in candidates if file.name != "history.csv"}
    return {name: content(file) for name, file in paths.items()} | {
        "results/report/scores.csv": (folder / "results/report/scores.csv").read_bytes()
    }


def run_until(folder, config, stage, who, chance):
    """Start the study and kill it while a command of a stage runs. Returns False if there was none."""
    process = start_snakemake(folder, "--cores", "1", config=config)
    running = []
    while process.poll() is None and not running:
        running = [pid for pid, group in commands(folder) if group == stage]
        time.sleep(0.02)
    if not running:
        return False
    time.sleep(chance.random() / 2)
    if who == "a job":
        try:
            os.kill(running[0], signal.SIGKILL)
        except ProcessLookupError:
            process.kill()  # the job was faster
    elif who == "both":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()
    wait_until(lambda: not list(working_in(folder)))
    return True


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_twenty_kills_end_in_the_same_files(finished, tmp_path):
    study, chance, killed = Study(tmp_path), random.Random(1), []
    config = study.config()
    for number, stage in enumerate(sorted(KILLS, key=STAGES.index)):
        who = WHO[number % len(WHO)]
        if run_until(tmp_path, config, stage, who, chance):
            killed.append((stage, who))
            study.run("--unlock")
    assert len(killed) >= 16, killed
    done = study.run()
    assert done.returncode == 0, done.stderr
    assert main(["clean", "--directory", str(tmp_path), "--configfile", str(config), "--delete"]) == 0
    expected = results(finished.folder)
    assert len(expected) > 100
    contents = results(tmp_path)
    assert contents.keys() == expected.keys()
    assert [name for name in expected if contents[name] != expected[name]] == []
