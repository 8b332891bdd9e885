"""The CUDA path on a machine without a GPU: presets on a device named `cuda:0`, compared with the CPU.

Everything runs in one separate process (measure.py), and the tests check its results. They are skipped without a C++
compiler.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from architectures import slow_but

from docmt.models.presets import ARCHITECTURES
from standin.budgets import (
    MICRO_BATCH_LAUNCHES,
    SEARCH_COPIES,
    STEPS_PER_SYNC,
    UPDATE_COPIES,
    UPDATE_PAGEABLE_COPIES,
    UPDATE_SYNCS,
)
from standin.build import UnavailableError, build_library, cache_folder

ROOT = Path(__file__).parents[2]
LOGGED_EVERY = 4


QUICK = ("g_transformer",)
"""Architectures that are measured without slow tests, too."""


@pytest.fixture(scope="module")
def run():
    """Runs a module of `standin` in a separate process. Skips where the stand-in cannot be built."""
    try:
        build_library(cache_folder())
    except UnavailableError as error:
        pytest.skip(f"no stand-in of CUDA: {error}")
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}

    def run(name, *arguments):
        command = [sys.executable, "-m", f"standin.{name}", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def has_slow_tests(request):
    return any(item.get_closest_marker("slow") for item in request.session.items if item.path == request.path)


@pytest.fixture(scope="module")
def results(run, has_slow_tests, tmp_path_factory):
    """Measurements. Without slow tests, only of the device and of the first presets."""
    folder = tmp_path_factory.mktemp("standin")
    done = run("measure", folder, *(() if has_slow_tests else QUICK))  # none: all
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "results.json").read_text())


@pytest.fixture(params=slow_but(QUICK))
def preset(request):
    return request.param


@pytest.fixture
def part_results(results, preset):
    """Results of a part for a preset."""

    def find(part):
        values = results[preset][part]
        assert "error" not in values, values["error"]
        return values

    return find


def test_every_preset_is_here():
    assert set(MICRO_BATCH_LAUNCHES) == set(ARCHITECTURES)


@pytest.mark.slow
def test_acceptance_says_what_it_skipped(results):
    rows, (code, *_) = results["bench"]["rows"][0], results["bench"]["codes"]
    failed = [name for name, row in rows.items() if row["verdict"] == "FAILED"]
    assert failed in ([], ["environment/triton"])
    assert code == bool(failed)
    assert rows["probe"]["verdict"] == rows["contrast/g_transformer"]["verdict"] == "ok"  # in processes
    for name in ("eager", "shares", "published", "decoding", "products"):
        assert rows[f"speed/{name}"]["verdict"] == "measured", rows[f"speed/{name}"]
    shares = rows["speed/shares"]["numbers"]
    # Times of a busy machine: what they add up to is not certain.
    assert all(shares[name] >= 0 for name in ("loss", "attention", "products", "rest"))
    assert rows["budgets"]["verdict"] == "not measured yet"
    assert {"commit", "versions", "device"} <= set(results["bench"]["provenance"])


@pytest.mark.slow
def test_planted_gpu_faults_fail(results):
    _, sound, kernel, gradient, wait = results["bench"]["rows"]
    assert sound["update/g_transformer"]["verdict"] == "ok"
    assert kernel["update/g_transformer"]["verdict"] == "FAILED"
    assert gradient["probe"]["verdict"] == "FAILED"
    assert "gradient_norm" in gradient["probe"]["value"]
    assert "synchronizing" in wait["no-waiting/g_transformer"]["value"]
    assert results["bench"]["codes"][1:] == [0, 1, 1, 1]


def test_micro_batches_keep_to_their_launches(part_results, preset):
    assert part_results("budgets")["micro_batch"]["launch"] <= MICRO_BATCH_LAUNCHES[preset]
    attention = part_results("budgets")["attention"]
    assert attention["short_groups_forward"] >= attention["short_groups_backward"] > 0
    assert attention["_flash_attention_forward"] == 0


def test_an_update_lets_nobody_wait(part_results):
    budgets = part_results("budgets")
    # The first counts are of update 2. Those of an update include what follows the one before it.
    quiet = [counts for number, counts in enumerate(budgets["updates"], start=2) if (number - 1) % LOGGED_EVERY]
    assert len(quiet) == 5
    for counts in quiet:
        assert counts["sync"] <= UPDATE_SYNCS, budgets["text"]
        assert counts["pageable copy"] <= UPDATE_PAGEABLE_COPIES, budgets["text"]
        assert counts["pageable copy"] + counts["pinned copy"] <= UPDATE_COPIES, budgets["text"]


def test_search_rarely_waits(part_results):
    decoding = part_results("decoding")
    assert decoding["cudnn"] == 0
    assert decoding["steps"] >= 16
    assert decoding["sync"] * STEPS_PER_SYNC <= decoding["steps"]
    assert decoding["pageable copy"] + decoding["pinned copy"] <= SEARCH_COPIES * decoding["searches"]


@pytest.mark.slow
def test_the_tests_for_gpus_pass(run, has_slow_tests):
    """They include the scenarios of `docmt bench gpu`."""
    done = run("gpu_tests", *(() if has_slow_tests else ["not slow"]))
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.slow
def test_a_device_that_is_too_small_is_explained(results):
    message = results["memory"]["message"]
    assert "out of memory on cuda:0" in message
    assert "lower max_batch_tokens" in message


@pytest.mark.slow
def test_an_older_gpu_trains_and_decodes_in_float16(results):
    older = results["older"]
    assert "error" not in older, older["error"]
    assert older["scaled"] == 16  # updates of three trainings
    # The scale starts too high and is halved. The updates in between are skipped.
    for name in ("train_loss", "dev_loss"):
        assert older["found"][name] == pytest.approx(older["expected"][name], rel=0.05), name
    assert older["found"]["gradient_norm"][-1] == pytest.approx(older["expected"]["gradient_norm"][-1], rel=0.2)
    assert older["differs"] == []
    assert older["half_scores"] == pytest.approx(older["auto_scores"], abs=0.02)


@pytest.mark.slow
def test_heads_of_any_width_train_in_half_precision(results):
    assert "error" not in results["heads"], results["heads"]["error"]


def test_standin_resembles_torch(results):
    device = results["device"]
    assert "error" not in device, device["error"]
    plain, fused = device["kernels"]
    assert set(plain) == {"_scaled_dot_product_cudnn_attention"}
    assert fused == ["_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention"]
    assert len(device["messages"]) == 3
    for message in device["messages"]:
        assert "at least two devices, cuda:0 and cpu" in message
        assert "cuda:0 [3, 2]" in message
        assert "cpu [2, 3]" in message


def test_standin_counts_launches_and_memory(results):
    device = results["device"]
    assert device["pageable copy"] == 3  # only pinned and asynchronous is not
    assert device["pinned copy"] == 1
    assert device["sync"] == 3  # item, the places of a mask, and the copy to the host
    assert device["copy to host"] == 1
    assert device["launch"] == 6  # mul and sum, gt and index, gt and masked_fill_
    assert all(line.startswith("tests/standin/measure.py:") for line in device["lines"])
    assert (device["held"], device["freed"]) == (4000, True)


def test_no_compiler_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UnavailableError, match=r"no C\+\+ compiler"):
        build_library(tmp_path)
    compiler = tmp_path / "compiler"
    for message, error in (("fatal error: x.h: No such file or directory", UnavailableError), ("?", RuntimeError)):
        compiler.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 1\n")
        compiler.chmod(0o755)
        monkeypatch.setenv("CXX", str(compiler))
        with pytest.raises(error, match=re.escape(message)):
            build_library(tmp_path)
