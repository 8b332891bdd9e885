"""Messages about failed jobs and removed inputs, and one line per job in the terminal."""

import logging

import pytest

from docmt.snakemake_messages import _Failures, _is_shown, _JobLines

LATENCY = "Missing files after 5 seconds. This might be due to filesystem latency. If that is the case:\n"


def record(message="", *, level=logging.INFO, **values):
    return logging.makeLogRecord({"msg": message, "levelno": level} | values)


def error(jobid, rule, log):
    return record(level=logging.ERROR, event="job_error", jobid=jobid, rule_name=rule, log=[log, "slurm.log"])


def group_error(*jobs):
    infos = [{"jobid": jobid, "rule_name": rule, "log": []} for jobid, rule in jobs]
    return record(level=logging.ERROR, event="group_error", job_error_info=infos)


@pytest.mark.parametrize(
    ("records", "jobs"),
    [
        ([], []),
        ([error(1, "train", "a.log"), error(2, "read", "b.log")], [("train", "a.log"), ("read", "b.log")]),
        ([error(1, "train", "a.log"), error(1, "train", "a.log")], [("train", "a.log")]),
        ([error(1, "train", "a.log"), record(event="job_finished", job_id=1)], []),
        ([record(event="job_finished", job_id=1), error(2, "read", "b.log")], [("read", "b.log")]),
        ([group_error((1, "train"), (2, "read"))], [("train", ""), ("read", "")]),
    ],
)
def test_failed_jobs_are_collected(records, jobs):
    failures = _Failures()
    for message in records:
        failures.read(message)
    assert list(failures.jobs.values()) == jobs
    assert failures.errors == []


@pytest.mark.parametrize(
    ("message", "paths"),
    [
        (f"OSError in rule x: {LATENCY}a b.de (missing locally, parent dir contents: c)", ["a b.de"]),
        (f"{LATENCY}a.de (missing locally)\nb.de (missing locally, parent dir not present)", ["a.de", "b.de"]),
        (f"MissingOutputException: some output files are missing. {LATENCY}results/a (missing locally)", []),
        ("At least one job did not complete successfully.", []),
    ],
)
def test_removed_inputs_are_named(message, paths):
    failures = _Failures()
    failures.read(record(message, level=logging.ERROR))
    failures.read(record(message))  # while Snakemake waits
    assert [line.split(": ")[1] for line in failures.errors] == paths


def test_jobs_are_counted_by_number():
    lines = _JobLines(logging.Formatter())
    lines.format(record("Job stats", event="run_info", stats={"train": 2, "all": 1, "total": 3}))
    starts = [
        (5, "train", ["logs/train/mine/a/seed1.log"]),
        (5, "train", ["logs/train/mine/a/seed1.log"]),
        (0, "all", []),
    ]
    texts = [lines.format(record(event="job_info", jobid=n, rule_name=rule, log=log)) for n, rule, log in starts]
    assert [text[9:] for text in texts] == ["[1/3] train mine/a/seed1", "[1/3] train mine/a/seed1", "[2/3] all"]
    assert lines.format(record("Nothing to be done")) == "Nothing to be done"
    assert lines.format(error(5, "train", "logs/train/mine/a/seed1.log"))[9:] == "failed: train mine/a/seed1"
    texts = lines.format(group_error((1, "train"), (2, "read"))).splitlines()
    assert [text[9:] for text in texts] == ["failed: train", "failed: read"]


@pytest.mark.parametrize(
    ("message", "values", "expected"),
    [
        ("", {"event": "job_info"}, True),
        ("Job stats: …", {"event": "run_info"}, True),
        ("Error", {"event": "job_error", "level": logging.ERROR}, True),
        ("RuleException:\nCalledProcessError in file x:\nCommand y", {"event": "error", "level": logging.ERROR}, False),
        ("Exiting because a job execution failed. Look above", {"level": logging.ERROR}, False),
        ("WorkflowError:\nAt least one job did not complete", {"event": "error", "level": logging.ERROR}, False),
        ("WorkflowError:\ndocmt: error: x", {"event": "error", "level": logging.ERROR}, True),
        ("RuleException:\nMissingOutputException in rule x", {"event": "error", "level": logging.ERROR}, True),
        ("Job 3 has been submitted with SLURM jobid 7", {}, True),
        ("Trying to restart job 3.", {}, True),
        ("Execute 2 jobs...", {}, False),
        ("Removing temporary output a.txt.", {}, False),
        ("Execute 2 jobs...", {"level": logging.WARNING}, True),
        (None, {"event": "progress"}, False),
        ("Finished jobid: 3", {"event": "job_finished"}, False),
    ],
)
def test_terminal_hides_only_progress(message, values, expected):
    assert _is_shown(record(message, **values)) == expected
