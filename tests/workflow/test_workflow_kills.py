"""After `kill -9` in a study, the commands in the documentation lead to the same files."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from studies import Study, start_snakemake

from docmt.config.references import CONTROLLED_SUITES
from docmt.snakemake_records import STARTED, record_path

TARGET = "results/smoke/corpora/en-de/train.documents.tsv"
FIRST_JOB = "results/corpora/smoke/en-de"


def working_in(folder):
    """Processes whose working directory is a folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cwd").resolve() == folder.resolve():
                yield int(entry.name)


def wait_until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("alone", [True, False], ids=["Snakemake alone", "Snakemake and its jobs"])
def test_killed_run_ends_in_the_same_files(alone, finished, tmp_path):
    study = Study(tmp_path)
    process = start_snakemake(tmp_path, "--cores", "1", TARGET, config=study.config())
    # Snakemake starts a job, then marks its outputs in their order. Results of a job without marks are refused.
    last_mark = record_path(tmp_path / STARTED, f"{FIRST_JOB}/suites/discourse/{CONTROLLED_SUITES[-1]}.jsonl")
    wait_until(lambda: process.poll() is not None or last_mark.exists())
    wait_until(lambda: process.poll() is not None or set(working_in(tmp_path)) - {process.pid})  # the job itself
    if alone:
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not list(working_in(tmp_path)))
    assert alone == (tmp_path / FIRST_JOB / "train.en").exists(), "the job continued to its end"

    assert study.run(TARGET).returncode != 0, "the folder is locked"
    assert study.run("--unlock").returncode == 0
    again = study.run(TARGET)
    assert again.returncode == 0, again.stderr
    folder = tmp_path / "results/smoke/corpora"
    files = [file.relative_to(tmp_path) for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 4
    for file in files:
        assert (tmp_path / file).read_bytes() == (finished.folder / file).read_bytes(), file
