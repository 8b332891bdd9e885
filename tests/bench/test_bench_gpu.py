"""`docmt bench gpu` without a GPU. `tests/standin` runs it on the stand-in, with faults that it must find."""

import json
import math
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks.gpu import acceptance, comparisons, environment
from benchmarks.gpu.dense import dense_loss
from benchmarks.gpu.outcomes import Outcome
from benchmarks.gpu.rows import Workers, run_checks
from benchmarks.gpu.speed import Speed
from benchmarks.gpu.workload import Workload, model_settings, random_model
from docmt.cli.main import main
from docmt.decoding.incremental_decoder import IncrementalDecoder
from docmt.decoding.settings import DecodingSettings
from docmt.decoding.translation import GPU_BATCH_TOKENS, Translator
from docmt.training.agreement import Interrupted
from docmt.training.loss import LossModule

CPU = torch.device("cpu")


@pytest.mark.slow
def test_failing_row_stops_no_other(tmp_path, capsys):
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


def dying(folder):
    """A function of names. One of the checks ends its process."""

    def run(name):
        if name == "worker/killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "worker/broken":
            raise RuntimeError("an illegal memory access")
        return Outcome(f"{os.getpid()}", "ok", {"folder": str(folder)})

    return run


@pytest.mark.slow
def test_processes_share_rows_and_may_die(tmp_path, capsys):
    names = [f"worker/{name}" for name in ("1", "killed", "2", "broken", "3", "4")]
    checks = dict.fromkeys(["speed/a", *names, "several/b", "worker/5"], lambda: Outcome("alone"))
    workers, rows = Workers(2, {*names, "worker/5"}, dying, tmp_path), {}
    run_checks(checks, rows, out=tmp_path / "rows.json", provenance={}, minutes=30, workers=workers)
    written = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["name"] for row in written] == list(rows)
    assert set(rows) == set(checks)
    assert [list(rows).index(name) for name in ("speed/a", "several/b", "worker/5")] == [0, 7, 8]
    assert rows["worker/killed"].value == "its process ended with exit code -9"
    assert rows["worker/broken"].value.startswith("RuntimeError: an illegal memory access")
    assert {name for name, row in rows.items() if row.verdict == "FAILED"} == {"worker/killed", "worker/broken"}
    sound = [rows[f"worker/{n}"] for n in (1, 2, 3, 4, 5)]
    assert str(os.getpid()) not in {row.value for row in sound}
    assert all(Path(row.numbers["folder"]).parent == tmp_path for row in sound)
    assert len(capsys.readouterr().out.splitlines()) == len(checks)
    late = {}
    run_checks(checks, late, out=tmp_path / "rows.json", provenance={}, minutes=-1, workers=workers)
    assert {row.verdict for row in late.values()} == {"not run"}


@pytest.mark.slow
def test_signal_during_a_training_ends_the_command(tmp_path):
    def stop():
        raise Interrupted(signal.SIGTERM)

    rows, options = {}, {"out": tmp_path / "rows.json", "provenance": {}, "minutes": 1}
    with pytest.raises(SystemExit) as end:
        run_checks({"first": lambda: Outcome("1 ms"), "second": stop, "third": stop}, rows, **options)
    assert end.value.code == 128 + signal.SIGTERM
    assert list(rows) == ["first"]
    assert json.loads(options["out"].read_text())["rows"][0]["name"] == "first"


@pytest.mark.slow
def test_the_file_is_json_and_names_no_users(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/alice")
    gpu = "GPU-10bf21fc-51c8-dd37-9ec3-f4571f8a9a5d"

    def fail():
        raise RuntimeError(f"/home/alice/a.so, {sys.prefix}/b.py, '-i', '{gpu}', {Path(comparisons.__file__)}")

    checks = {"first": fail, "second": lambda: Outcome("", numbers={"a": math.inf, "b": math.nan, "c": 1.5, "d": 2})}
    run_checks(checks, {}, out=tmp_path / "rows.json", provenance={}, minutes=1)
    text = (tmp_path / "rows.json").read_text()
    assert not [name for name in ("alice", sys.prefix, "f4571f8a9a5d", str(Path(__file__).parents[2])) if name in text]
    first, second = (row for row in json.loads(text, parse_constant=pytest.fail)["rows"])
    assert first["value"].startswith("RuntimeError: …/a.so, …/b.py, '-i', 'GPU-…', …/benchmarks/gpu/comparisons.py (")
    assert 'File "…/benchmarks/gpu/rows.py"' in first["numbers"]["traceback"]
    assert second["numbers"] == {"a": "inf", "b": "nan", "c": 1.5, "d": 2}


def test_budgets_exist_once_a_gpu_was_measured(monkeypatch):
    rows = {"speed/eager": Outcome("", numbers={"tokens_per_second": 80.0}, name="speed/eager", seconds=1.0)}
    assert acceptance.compare("A", rows).verdict == "not measured yet"
    for budget, verdict in ((100.0, "FAILED"), (85.0, "ok")):
        monkeypatch.setitem(acceptance.BUDGETS, "A", {"speed/eager.tokens_per_second": budget})
        assert acceptance.compare("A", rows).verdict == verdict
    monkeypatch.setitem(acceptance.BUDGETS["A"], "probe.ms", 1.0)
    assert acceptance.compare("A", rows) == Outcome(
        "not measured: probe.ms", "not run", {next(iter(acceptance.BUDGETS["A"])): 80 / 85}
    )
    assert acceptance.compare("A", {}).verdict == "not run"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("580.65, 0, 41, 700.00 W, 1980 MHz, Not Active", "ok"),
        ("580.65, [N/A], 41, 700.00 W, 1980 MHz, [N/A]", "ok"),
        ("580.65, [Not Supported], 41, 700.00 W, 1980 MHz, [Not Supported]", "ok"),
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
    assert environment.gpu_status().verdict == verdict


def test_the_command_says_what_is_wrong(capsys, tmp_path):
    assert main(["bench", "gpu", "--device", "cpu", "--only", "nothing"]) == 2
    assert "--only nothing: unknown row" in capsys.readouterr().err
    assert main(["bench", "gpu", "--device", "cpu", "--only", "environment", "speed/egaer"]) == 2
    assert "--only speed/egaer: unknown row" in capsys.readouterr().err
    out = tmp_path / "budgets.json"
    assert main(["bench", "gpu", "--device", "cpu", "--only", "budgets", "--out", str(out)]) == 0
    assert [row["name"] for row in json.loads(out.read_text())["rows"]] == ["budgets"]
    assert main(["bench", "gpu", "--size", "huge"]) == 2
    if not torch.cuda.is_available():
        assert main(["bench", "gpu"]) == 2
        assert "--device cpu" in capsys.readouterr().err


def test_the_package_alone_asks_for_a_clone(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("docmt.cli.bench.ROOT", tmp_path)
    assert main(["bench", "gpu", "--device", "cpu", "--out", str(tmp_path / "rows.json")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "clone the repository" in line
    assert list(tmp_path.iterdir()) == []


def test_rows_come_in_the_order_of_their_worth(monkeypatch, tmp_path):
    first, last = comparisons.scenario_names(on_gpu=True)
    kinds = list(dict.fromkeys(name.split("/")[0] for name in first))
    assert kinds == ["update", "contrast", "search", "no-waiting", "probe", "compiled", "training"]
    assert sum(name.startswith("compiled/") for name in first) == 5
    assert {name.split("/")[0] for name in last} == {"compiled"}
    assert len({*first, *last}) == len(first) + len(last) == 6 * len(comparisons.PRESETS) + 1
    monkeypatch.setattr("benchmarks.gpu.rows._outcome", lambda name, *_: Outcome("", name=name))
    out = tmp_path / "rows.json"
    assert main(["bench", "gpu", "--device", "cpu", "--tokens", "60", "--out", str(out)]) == 0
    names = [row["name"] for row in json.loads(out.read_text())["rows"]]
    kinds = ["environment", "speed", "update", "contrast", "search", "training", "several", "budgets"]
    assert list(dict.fromkeys(name.split("/")[0] for name in names)) == kinds
    assert [name for name in names if name.startswith("speed/")][-1] == "speed/published"


@pytest.mark.parametrize(("size", "is_cuda"), [("tiny", True), ("base", True), ("base", False)])
def test_a_gpu_decodes_a_full_batch(monkeypatch, tmp_path, size, is_cuda):
    """The batch is as large as in `docmt translate`. On a CPU or for a tiny model, it is as large as in an update."""
    speed = Speed(CPU, tmp_path, size=size, tokens=600, rows={})
    speed.is_cuda = is_cuda
    monkeypatch.setattr(speed, "_wait", lambda: None)
    settings = model_settings("g_transformer", "tiny")
    monkeypatch.setattr(speed, "settings", settings)
    batches = []

    def search(self, sources):
        batches.append(sources)
        IncrementalDecoder.step(None)
        return [SimpleNamespace(sentences=source.sentences) for source in sources]

    monkeypatch.setattr(IncrementalDecoder, "step", lambda self: None)
    monkeypatch.setattr(Translator, "_search", search)
    make = Translator.__init__
    cuda = {"batch_tokens": GPU_BATCH_TOKENS} if is_cuda else {}
    monkeypatch.setattr(Translator, "__init__", lambda self, *a, **options: make(self, *a, **options | cuda))
    numbers = speed.decoding().numbers
    longest = max(source.n_tokens for source in batches[-1])
    is_full = is_cuda and size == "base"
    assert numbers["instances"] == len(batches[-1]) == (GPU_BATCH_TOKENS // longest if is_full else speed.n_instances)
    assert sum(source.n_tokens for source in batches[-1]) > (0.5 * GPU_BATCH_TOKENS if is_full else 0)


@pytest.mark.slow
def test_a_trial_on_a_cpu_is_labeled(capsys, tmp_path):
    out = tmp_path / "trial.json"
    assert main(["bench", "gpu", "--device", "cpu", "--only", "environment", "update/rst_mix", "--out", str(out)]) == 0
    assert "CPU (a trial)" in capsys.readouterr().out
    content = json.loads(out.read_text())
    assert [row["verdict"] for row in content["rows"]] == ["measured", "ok", "not measured yet"]
    assert content["provenance"]["device"] == "CPU (a trial)"
    assert content["provenance"]["versions"]["torch"]


def test_the_published_computation_has_the_loss_of_ours(tmp_path):
    workload = Workload(tmp_path, [3, 1, 4], shortest=0, longest=8, n_symbols=32)
    model = random_model(model_settings("g_transformer"), 32)
    batch = workload.host_batch(model.settings)
    ours, theirs = LossModule(model, 0.1)(batch.prepare("padded")), dense_loss(model, batch, 0.1, with_entropies=True)
    torch.testing.assert_close(theirs, ours, rtol=1e-5, atol=0)


@pytest.mark.parametrize("size", ["opus_mt", "mbart"])
def test_model_of_published_size_reads_the_workload(size, tmp_path):
    settings = model_settings("g_transformer", size, encoder_layers=2, decoder_layers=2, width=32)
    workload = Workload(tmp_path, [2], shortest=1, longest=3, n_symbols=32)
    translator = Translator(workload.trained(settings), DecodingSettings(beam_size=1))
    ((_, hypothesis),) = translator.translate_sources(workload.sources(settings))
    assert len(hypothesis.sentences) == 2


@pytest.mark.slow
@pytest.mark.parametrize("has_failed", [False, True])
def test_plain_updates_are_not_called_compiled(has_failed, tmp_path, monkeypatch):
    """This includes updates after a failure, and the update in which the compiler fails."""
    verdict = "FAILED" if has_failed else "measured"
    rows = {"speed/compiled": Outcome("", verdict, {"tokens_per_second": 80.0}, name="speed/compiled", seconds=1.0)}
    speed = Speed(CPU, tmp_path, size="tiny", tokens=60, rows=rows)

    class Graph:
        compiled = object()

        def __call__(self, batch):
            self.compiled = None if has_failed else self.compiled
            return speed.module(batch)

    monkeypatch.setattr(speed, "_profiled", lambda call: (call(), (Counter({"rest": 1.0}), 0, 0.5))[1])
    speed.__dict__["graph"] = Graph()
    for _ in range(2):
        assert speed.shares().value.startswith("eager: " if has_failed else "compiled: ")
    assert ("compiled_gain" in speed.published().numbers) != has_failed


def test_gpus_in_use_are_left_alone(monkeypatch):
    monkeypatch.setattr(acceptance, "claim_more", lambda names: names == ["0", "2"])
    assert acceptance.on_all(pytest.fail, ["0", "1"]).verdict == "not run"
    assert acceptance.on_all(Outcome, ["0", "2"]) == Outcome(["0", "2"])
