"""Results without Snakemake's records are refused, and replaced models are named."""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from snakemake.persistence.file import FilePersistence

from docmt.errors import UserError
from docmt.replaced_models import describe_trainings
from docmt.snakemake_records import STARTED, check_records, read_record, record_path

MODEL = "results/mine/runs/long/seed1/model.pt"
HISTORY = "results/mine/runs/long/seed1/history.csv"
LONG = f"results/{'long_name/' * 60}model.pt"
FETCHED = "resources/corpora/news/1/test.fetched"


@dataclass
class Artifact:
    fingerprint: str


def outputs(*paths):
    """Outputs of different jobs, except for a model and its history."""
    return {path: Artifact(path.replace("history.csv", "model.pt")) for path in paths}


def write_output(path, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


@pytest.fixture
def persistence(tmp_path, monkeypatch):
    """Snakemake's records in a study folder with results."""
    monkeypatch.chdir(tmp_path)
    persistence = FilePersistence()
    for path in (MODEL, HISTORY, LONG, FETCHED):
        write_output(tmp_path / path, "step,dev_loss\n1,2.0\n900,1.5\n" if path == HISTORY else "")
        if path != FETCHED:
            persistence._io_write(persistence._metadata_path, {"rule": "train", "params": ["'abc'"]}, path)
    return persistence


@pytest.mark.parametrize("path", [MODEL, LONG])
def test_records_are_where_snakemake_writes_them(path, persistence):
    assert str(record_path(STARTED, path).absolute()) == persistence._record_path(persistence._incomplete_path, path)
    assert read_record(path)["params"] == ["'abc'"]


def replace_by_folder(record):
    record.unlink()
    record.mkdir()


WAYS = {
    "missing": lambda record: record.unlink(),
    "empty": lambda record: record.write_bytes(b""),
    "truncated": lambda record: record.write_bytes(record.read_bytes()[:20]),
    "zeros": lambda record: record.write_bytes(bytes(100)),
    "random": lambda record: record.write_bytes(bytes(range(256))),
    "empty object": lambda record: record.write_text("{}"),
    "list": lambda record: record.write_text("[1]"),
    "null": lambda record: record.write_text("null"),
    "no parameters": lambda record: record.write_text('{"rule": "train", "params": null}'),
    "deep": lambda record: record.write_text("[" * 100_000),
    "folder": replace_by_folder,
    "dangling link": lambda record: (record.unlink(), record.symlink_to("nowhere")),
}


@pytest.mark.parametrize("lose", WAYS.values(), ids=WAYS)
def test_results_without_records_are_refused(lose, persistence, tmp_path):
    paths = outputs(MODEL, HISTORY, LONG, FETCHED, "results/not_made")
    check_records(paths)
    lose(record_path(tmp_path / ".snakemake/metadata", MODEL))
    with pytest.raises(UserError) as refusal:
        check_records(paths)
    message = str(refusal.value)
    assert message.startswith(f"{tmp_path}: 1 of 3 results have no readable Snakemake records")
    assert f"their settings are unknown: {MODEL}. Restore" in message
    assert "touch" not in message  # would record the settings of now
    assert "\n" not in message
    persistence._mark_incomplete(LONG, None)  # another job
    with pytest.raises(UserError):
        check_records(paths)
    persistence._mark_incomplete(HISTORY, None)  # this job was killed, maybe before it was marked at all outputs
    check_records(paths)


def test_many_lost_records_are_counted(persistence, tmp_path):
    paths = [f"results/{number}" for number in range(9)]
    for path in paths:
        write_output(tmp_path / path)
    with pytest.raises(UserError, match=r"9 of 10 results .*: results/0, results/1, results/2, …\. Restore"):
        check_records(outputs(*paths, MODEL))
    with pytest.raises(UserError, match=r"9 of 9 results .*\. Copy a study as a whole folder"):
        check_records(outputs(*paths))


@pytest.mark.parametrize("option", ["--touch", "-t", "--unlock", "--cleanup-metadata"])
def test_options_that_run_nothing_are_not_refused(option, persistence, tmp_path, monkeypatch):
    write_output(tmp_path / "results/a")
    monkeypatch.setattr("sys.argv", ["snakemake", "all", option])
    check_records(outputs("results/a"))


def training(path, fingerprint="new"):
    return SimpleNamespace(output=[path], params={"fingerprint": fingerprint})


@pytest.mark.parametrize(
    ("jobs", "line"),
    [
        ([], ""),
        ([training("results/mine/instances/documents/train/manifest.json")], ""),
        ([training("results/mine/runs/new/seed1/model.pt")], ""),
        ([training(MODEL)], "docmt: this run replaces 1 existing model: mine/long seed 1 (900 updates)"),
        (
            [training("results/mine/runs/new/seed1/model.pt", "abc")],
            "docmt: this run trains models again that exist under another name: mine/new seed 1 as " + MODEL,
        ),
        ([training("results/mine/runs/new/seed1/model.pt", "ab")], ""),
    ],
)
def test_replaced_and_renamed_models_are_named(jobs, line, persistence):
    assert describe_trainings(iter(jobs), []) == line


def test_many_replaced_models_are_counted(persistence, tmp_path):
    paths = [f"results/mine/runs/system/seed{number}/model.pt" for number in range(25)]
    for path in paths:
        write_output(tmp_path / path)
    write_output(tmp_path / "results/mine/runs/system/seed3/history.csv", "step,dev_loss\nx,\n")
    line = describe_trainings([*map(training, paths)], [])
    assert line.startswith(
        "docmt: this run replaces 25 existing models: mine/system seed 0 (unknown number of updates)"
    )
    assert line.endswith(" and 15 more")
    assert len(re.findall("seed", line)) == 10
