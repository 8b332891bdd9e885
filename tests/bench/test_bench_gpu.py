"""`docmt bench gpu` where there is no GPU; `tests/standin` runs it on the stand-in, with faults that it must find."""

import json
import math

import pytest
import torch

from docmt.bench import commands, environment
from docmt.bench.correctness import Correctness
from docmt.bench.dense import DenseTransformer
from docmt.bench.rows import BenchRow, Outcome, judge, relative_difference, run_checks
from docmt.bench.workload import Workload, model_settings, random_model
from docmt.cli.main import main
from docmt.training.loss import LossModule

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [({"a": 1.0, "b": 0.0}, "ok"), ({"a": 1.1, "b": 0.0}, "FAILED"), ({"a": math.nan, "b": 0.0}, "FAILED")],
)
def test_figures_are_judged_by_their_limits(numbers, verdict):
    found = judge(numbers, {"a": 1.0, "b": 0.0})
    assert found.verdict == verdict
    assert found.value.startswith("a ")


def test_differences_of_lists():
    assert relative_difference([1.0, 2.2], [1.0, 2.0]) == pytest.approx(0.1)
    assert relative_difference([1.0], [1.0, 2.0]) == math.inf
    assert relative_difference([math.nan], [1.0]) == math.inf


def test_a_failing_row_stops_no_other_and_all_are_written(tmp_path, capsys):
    def fail():
        raise RuntimeError("no such\nkernel")

    rows = {}
    checks = {"first": fail, "second": lambda: Outcome("1 ms")}
    run_checks(checks, rows, out=tmp_path / "rows.json", provenance={"commit": "c"}, minutes=1)
    run_checks({"late": fail}, rows, out=tmp_path / "rows.json", provenance={}, minutes=-1)
    written = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["verdict"] for row in written] == ["FAILED", "measured", "not run"]
    assert written[0]["value"].startswith("RuntimeError: no such kernel (test_bench_gpu.py:")
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_budgets_exist_once_a_gpu_was_measured(monkeypatch):
    rows = {"speed/eager": BenchRow("speed/eager", "", "measured", {"tokens_per_second": 80.0}, 1.0)}
    assert commands.compare("A", rows).verdict == "not measured yet"
    for budget, verdict in ((100.0, "FAILED"), (85.0, "ok")):
        monkeypatch.setitem(commands.BUDGETS, "A", {"speed/eager.tokens_per_second": budget})
        assert commands.compare("A", rows).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("580.65, 0, 41, 700.00 W, 1980 MHz, Not Active", "ok"),
        ("580.65, [N/A], 41, 700.00 W, 1980 MHz, [N/A]", "ok"),
        ("580.65, 3, 41, 700.00 W, 1980 MHz, Not Active", "FAILED"),
        ("580.65, 0, 93, 700.00 W, 1980 MHz, Active", "FAILED"),
        ("", "not run"),
    ],
)
def test_nvidia_smi_is_asked_for_defects(monkeypatch, tmp_path, answer, verdict):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{f'echo {answer!r}' if answer else 'exit 9'}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: object())
    assert environment.health().verdict == verdict


def test_the_command_says_what_is_wrong(capsys, tmp_path):
    assert main(["bench", "gpu", "--device", "cpu", "--only", "nothing"]) == 2
    assert "--only nothing: no such row" in capsys.readouterr().err
    assert main(["bench", "gpu", "--size", "huge"]) == 2
    if not torch.cuda.is_available():
        assert main(["bench", "gpu"]) == 2
        assert "--device cpu" in capsys.readouterr().err


def test_a_trial_on_a_cpu_is_labelled(capsys, tmp_path):
    out = tmp_path / "trial.json"
    assert main(["bench", "gpu", "--device", "cpu", "--only", "environment", "update/rst_mix", "--out", str(out)]) == 0
    assert "CPU (a trial)" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert [row["verdict"] for row in content["rows"]] == ["measured", "ok", "not measured yet"]
    assert content["provenance"]["device"] == "CPU (a trial)"
    assert content["provenance"]["versions"]["torch"]


def test_the_published_computation_has_the_loss_of_ours(tmp_path):
    workload = Workload.make(tmp_path, [3, 1, 4], shortest=0, longest=8, n_symbols=32)
    model = random_model(model_settings("g_transformer"), 32)
    batch = workload.batch(model.settings, CPU, torch.float32)
    ours, theirs = LossModule(model, 0.1)(batch), DenseTransformer(model, with_entropies=True).loss(batch, 0.1)
    torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=0)


def test_weights_that_differ_fail(monkeypatch, tmp_path):
    """A model that computes something else on the second call: what a device with a wrong kernel does."""
    correctness, calls, forward = Correctness(CPU, tmp_path), [], LossModule.forward

    def drifting(self, batch):
        calls.append(1)
        return forward(self, batch) * (1 + 0.1 * (len(calls) > 1))

    monkeypatch.setattr(LossModule, "forward", drifting)
    assert correctness.update("sentence_transformer").verdict == "FAILED"
