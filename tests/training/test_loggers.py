"""Loggers of Lightning in addition to the history. They get the right input, and their failures stop no training."""

import csv
import math
import sys
import types

import pytest
import torch
from core_fixtures import run_training

from docmt.training.loggers import CLASSES, Loggers, make_loggers


class Recorder:
    """A logger that records its input."""

    def __init__(self, **options):
        self.options, self.rows, self.ends = options, [], 0

    def log_metrics(self, metrics, step):
        self.rows.append((step, metrics))

    def save(self):
        pass

    def finalize(self, status):
        assert status == "success"
        self.ends += 1


class Broken(Recorder):
    def log_metrics(self, metrics, step):
        raise RuntimeError("disk full")


def test_broken_logger_is_left_out(caplog):
    fine, broken = Recorder(), Broken()
    loggers = Loggers({"broken": broken, "fine": fine})
    for step in (1, 2):
        loggers.log({"step": step, "train_loss": 2.5, "dev_loss": None, "entropy_cross": math.nan, "epoch": 1}, step)
    loggers.close()
    assert fine.rows == [(step, {"train_loss": 2.5, "epoch": 1.0}) for step in (1, 2)]
    assert (fine.ends, broken.ends) == (1, 0)
    assert caplog.text.count("logger broken stops: disk full") == 1


@pytest.mark.slow
def test_csv_follows_a_training_and_changes_nothing(study_files, tmp_path):
    plain, history = run_training(study_files, tmp_path / "plain", training={"log_every_steps": 3})
    logged, _ = run_training(study_files, tmp_path / "logged", training={"log_every_steps": 3}, loggers=["csv"])
    assert torch.equal(plain.model.embedding.weight, logged.model.embedding.weight)
    assert plain.provenance["settings"] == logged.provenance["settings"]
    (path,) = (tmp_path / "logged").rglob("loggers/csv/version_0/metrics.csv")
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["train_loss"]]
    assert [int(row["step"]) for row in rows] == [3, 6, 9, 12]
    expected = history["train_loss"].dropna().tolist()
    assert [float(row["train_loss"]) for row in rows] == pytest.approx(expected)
    assert [path.name for path in (tmp_path / "plain").rglob("loggers")] == []


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_servers_are_never_asked(name, tmp_path, monkeypatch):
    module, cls, _ = CLASSES[name]
    monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**{cls: Recorder}))
    loggers = make_loggers([name], tmp_path, run="runs/s/seed1")
    options = loggers._loggers[name].options
    assert options.get("offline") is True or options["tracking_uri"] == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert "runs/s/seed1" in options.values()


class Unwilling:
    def __init__(self, **options):
        raise ValueError("\n\x1b[1mno permission\nfor this folder")


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (None, "wandb is left out: pip install pytorch-lightning wandb: "),
        (types.SimpleNamespace(), "wandb is left out: 'types.SimpleNamespace' object has no"),
        (types.SimpleNamespace(WandbLogger=Unwilling), "wandb is left out: \x1b[1mno permission"),
    ],
)
def test_no_logger_prevents_a_training(tmp_path, monkeypatch, caplog, package, message):
    monkeypatch.setitem(sys.modules, "pytorch_lightning.loggers", package)
    loggers = make_loggers(["wandb", "csv"], tmp_path, run="x")
    assert list(loggers._loggers) == ["csv"]
    (record,) = caplog.records
    assert message in record.getMessage()
    assert "folder" not in record.getMessage()


def test_unwritable_folder_stops_no_training(tmp_path, caplog):
    (tmp_path / "loggers").touch()
    assert not make_loggers(["csv"], tmp_path / "loggers", run="x")._loggers
    assert "csv is left out" in caplog.text
