"""After a job fails, is interrupted or is killed with new settings, the next run updates everything that depends on it.

A failed run ends with docmt's lines.
"""

import os
import re
import signal

import pytest
from architectures import slow_but
from studies import start_snakemake
from test_workflow_kills import wait_until, working_in

FAILURES = {
    "controlled": {"corpora": {"controlled": {"smoke": {"seed": 2}}}},
    "text": {"text": {"bpe_merges": 80}},
    "discourse": {"discourse": {"segmenters": {"tiny": {"seed": 2}}}},
    "instances": {"instances": {"documents": {"max_tokens": 100}}},
    "train": {"systems": {"document_transformer": {"training": {"learning_rate": 2.0e-3}}}},
    "decode": {"decoding": {"beam_size": 3}},
    "evaluate": {"evaluation": {"metrics": ["s-BLEU", "d-BLEU (instances)"]}},
    "report": {"report": {"title": "Another"}},
}
"""Changes that begin in a stage, by first word of the stage's commands."""

HIDING_DOCMT = """#!/bin/sh
if [ "$1" = {word} ]; then echo "$DOCMT_LOCAL_JOBS" > {folder}/reached; {deed}; fi
PATH="${{PATH#*{folder}:}}" exec docmt "$@"
"""


@pytest.fixture
def break_commands(tmp_path):
    """Return a folder for PATH with a `docmt` that replaces the commands that begin with a word."""
    folder = tmp_path / "programs"
    folder.mkdir()

    def write(word, deed):
        program = folder / "docmt"
        program.write_text(HIDING_DOCMT.format(word=word, folder=folder, deed=deed))
        program.chmod(0o755)
        return folder

    return write


@pytest.mark.parametrize("word", slow_but(("train",), FAILURES))
def test_failed_job_reruns_what_depends_on_it(word, study, break_commands):
    changes = FAILURES[word]
    expected = study.jobs(changes)
    assert expected
    folder = break_commands(word, "echo 'docmt: error: a.en: is damaged: remove it' >&2; exit 2")
    failed = study.run("--keep-going", changes=changes, programs=[folder])
    assert failed.returncode != 0
    jobs = re.findall(r"^Error in rule (\w+):$", failed.stderr, re.MULTILINE)
    *_, last = lines = failed.stderr.splitlines()[-len(jobs) - 1 :]
    for rule, line in zip(jobs, lines, strict=False):
        start = f"docmt: {rule} failed: a.en: is damaged: remove it (logs/{rule}/"
        assert line.startswith(start)
        assert line.endswith(".log)")
    assert re.fullmatch(r"docmt: \d+ of \d+ results are made; the .* resumes; `docmt status` shows what failed", last)
    assert (folder / "reached").read_text() == "1\n", "jobs know that others run on this machine (docmt.gpu_locks)"
    assert study.jobs(changes) == expected


@pytest.mark.slow
@pytest.mark.parametrize("word", FAILURES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_interruption_reruns_what_depends_on_it(number, word, study, break_commands):
    changes = FAILURES[word]
    expected = study.jobs(changes)
    folder = break_commands(word, "exec sleep 600")
    process = start_snakemake(study.folder, "--cores", "1", config=study.config(changes), programs=[folder])
    wait_until((folder / "reached").exists)
    os.killpg(process.pid, number)
    process.communicate()
    wait_until(lambda: not list(working_in(study.folder)))
    assert process.returncode != 0
    study.run("--unlock", changes=changes)
    assert study.jobs(changes) == expected
