"""Sharing of updates among devices, and visible and requested devices."""

import logging
import os
import re
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

from docmt.decoding.commands import choose_device
from docmt.errors import UserError
from docmt.models import gpus as gpus_module
from docmt.models.attention.kernels import kernel_for
from docmt.models.attention.varlen import find_flash
from docmt.models.gpus import check_gpus
from docmt.training import devices as devices_module
from docmt.training import launching
from docmt.training.devices import make_fabric, product_type
from docmt.training.launching import first_host, launch
from docmt.training.updates import balance, instance_batches, share_update

# Tokens of instances of at most 512 tokens: pieces of long documents are nearly full, the rest of each is anything.


def long_documents(generator, n=3000):
    """Talks with about eight full pieces and a rest."""
    return np.where(generator.random(n) < 0.88, generator.integers(440, 513, n), generator.integers(5, 480, n))


def short_documents(generator, n=3000):
    """News with one or two pieces of any length."""
    return np.clip(generator.lognormal(5.6, 0.6, n), 8, 512).astype(np.int64)


def sentences(generator, n=12_000):
    return np.clip(generator.lognormal(3.2, 0.6, n), 3, 200).astype(np.int64)


def updates_of(tokens, accumulation_steps, max_tokens=4096):
    batches = instance_batches(np.random.default_rng(0).permutation(len(tokens)), tokens, max_tokens)
    return [batches[i : i + accumulation_steps] for i in range(0, len(batches), accumulation_steps)]


def shares_of(batches, tokens, *, n_ranks, **options):
    """Shares of all devices."""
    return [share_update(batches, tokens, n_ranks=n_ranks, rank=rank, **options) for rank in range(n_ranks)]


@pytest.mark.parametrize("lengths", [long_documents, short_documents, sentences])
@pytest.mark.parametrize("n_ranks", [2, 4, 8])
def test_no_device_idles_more_than_five_percent(lengths, n_ranks):
    """One batch per device and update, as on the paper's four GPUs, over an epoch."""
    tokens = lengths(np.random.default_rng(3))
    updates = updates_of(tokens, n_ranks)
    busy, longest = np.zeros(n_ranks), 0
    for position, update in enumerate(updates):
        shares = shares_of(update, tokens, n_ranks=n_ranks, position=position, max_tokens=4096)
        loads = np.array([sum(tokens[batch].sum() for batch in share) for share in shares])
        busy += loads
        longest += loads.max()
    assert (1 - busy / longest < 0.05).all()


@pytest.mark.parametrize("n_ranks", [2, 3, 5])
def test_shares_cover_all_instances(n_ranks):
    tokens = np.append(short_documents(np.random.default_rng(1), 300), 5000)
    for position, update in enumerate(updates_of(tokens, 3, max_tokens=1024)):
        shares = shares_of(update, tokens, n_ranks=n_ranks, position=position, max_tokens=1024)
        instances = np.concatenate([batch for share in shares for batch in share])
        assert sorted(instances) == sorted(np.concatenate(update))
        assert all(tokens[b].sum() <= 1024 or len(b) == 1 for share in shares for b in share)
        assert all(len(batch) for share in shares for batch in share)


def test_devices_can_have_no_instance():
    batches = [np.array([4, 2]), np.array([0])]
    assert shares_of(batches, np.ones(5), n_ranks=1, position=7, max_tokens=2) == [batches]
    shares = shares_of([np.array([1])], np.array([3, 4]), n_ranks=3, position=1, max_tokens=9)
    assert [[batch.tolist() for batch in share] for share in shares] == [[], [], [[1]]]
    assert [part.tolist() for part in balance(np.array([0, 1]), np.array([3, 4]), 3)] == [[1], [0], []]


# What is visible


@pytest.fixture
def gpus(monkeypatch):
    def pretend(n):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: n > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: n)

    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        monkeypatch.delenv(name, raising=False)
    return pretend


@pytest.mark.parametrize(
    ("visible", "devices", "accelerator", "job", "message"),
    [
        (0, 1, "gpu", None, "requested, but none is visible here"),
        (4, 2, "gpu", None, r"2 GPU\(s\) per node requested, but 4 visible here: .* --devices 4"),
        (1, 2, "gpu", None, "per node requested, but 1 visible"),
        (1, 2, "auto", None, "per node requested, but 1 visible"),
        (4, 2, "auto", "17", "per node requested, but 4 visible"),
    ],
)
def test_other_devices_are_refused(gpus, monkeypatch, visible, devices, accelerator, job, message):
    gpus(visible)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with pytest.raises(UserError, match=message):
        make_fabric("float32", accelerator, width=8, devices=devices)


@pytest.mark.parametrize(("name", "value"), [("CUDA_VISIBLE_DEVICES", "0"), ("SLURM_JOB_GPUS", "1")])
def test_missing_allotted_gpus_are_reported(gpus, monkeypatch, caplog, name, value):
    gpus(0)
    monkeypatch.setenv(name, value)
    with caplog.at_level(logging.WARNING):
        assert make_fabric("float32", "auto", width=8).device.type == "cpu"
    (record,) = caplog.records
    assert f"{name}={value}" in record.message
    assert "TRAINING ON THE CPU" in record.message


# Launching


def test_the_first_host_of_slurms_lists():
    hosts = {"node1": "node1", "node1,node2": "node1", "rack2-[05-07,11]": "rack2-05", "a[3]": "a3"}
    hosts |= {"rack2-[05,11]-x,b": "rack2-05-x", "r[1-2]n[3-4]": "r1n3", "r[7,9]n[03-04]x,b[1-2]": "r7n03x"}
    assert {names: first_host(names) for names in hosts} == hosts


@pytest.fixture
def slurm_step(monkeypatch):
    """A task in a Slurm step. LOCAL_RANK and similar variables are restored afterwards."""

    def pretend(**values):
        names = ("LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
        for name in (*names, "SLURM_JOB_ID", "SLURM_STEP_NUM_TASKS"):
            monkeypatch.setenv(name, "")
            monkeypatch.delenv(name)
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return pretend


def test_tasks_that_srun_started_are_the_processes(slurm_step):
    values = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_NODELIST": "gpu[07-08]", "SLURM_JOB_ID": "123"}
    slurm_step(**values, SLURM_STEP_ID="0", SLURM_NODEID="1", SLURM_LOCALID="1")
    assert launch([], devices=2, nodes=2) is None
    variables = {name: os.environ[name] for name in ("LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_ADDR")}
    assert variables == {"LOCAL_RANK": "1", "NODE_RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "gpu07"}
    assert 15000 <= int(os.environ["MASTER_PORT"]) < 25000


def test_the_script_of_a_job_becomes_an_srun(slurm_step, monkeypatch):
    class Replaced(Exception):  # noqa: N818
        pass

    def replace(program, command):
        raise Replaced(program, command)

    monkeypatch.setattr(os, "execvp", replace)
    slurm_step(SLURM_JOB_ID="123")
    with pytest.raises(Replaced) as replaced:
        launch(["train", "--nodes", "2"], devices=4, nodes=2)
    program, command = replaced.value.args
    assert program == command[0] == "srun"
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--kill-on-bad-exit=1"} <= set(command)
    assert command[-7:] == [sys.executable, "-P", "-m", "docmt.cli.main", "train", "--nodes", "2"]
    assert os.environ["MASTER_ADDR"] == socket.gethostname()


STEP = {"SLURM_STEP_NUM_TASKS": "3", "SLURM_STEP_NODELIST": "gpu7", "SLURM_JOB_ID": "123"}


@pytest.mark.parametrize(
    ("devices", "nodes", "step", "message"),
    [
        (0, 1, {}, "at least 1"),
        (1, -1, {}, "at least 1"),
        (2, 2, {}, "MASTER_ADDR, MASTER_PORT and NODE_RANK"),
        (2, 1, STEP, r"srun started 3 tasks: .* --ntasks-per-node=2"),
        (1, 2, {"SLURM_JOB_ID": "123"}, "--nodes 2: this is a Slurm job, but srun is not on the PATH"),
    ],
)
def test_what_cannot_be_launched_is_refused(slurm_step, monkeypatch, tmp_path, devices, nodes, step, message):
    for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"):
        monkeypatch.delenv(name, raising=False)
    slurm_step(**step, PATH=str(tmp_path))
    with pytest.raises(UserError, match=message):
        launch([], devices=devices, nodes=nodes)


F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16


@pytest.mark.parametrize(
    ("precision", "gpu", "cpu_has_it", "width", "expected"),
    [
        ("fastest", None, True, 128, BF16),
        ("fastest", None, False, 512, F32),
        ("fastest", (8, 0), False, 128, BF16),
        ("fastest", (7, 5), False, 128, F16),
        ("fastest", (6, 1), False, 128, F32),
        ("auto", (8, 0), False, 128, BF16),
        ("auto", None, True, 512, F32),
        ("bfloat16", None, False, 128, BF16),
        ("float16", (8, 0), True, 512, F16),
        ("float16", (7, 0), True, 512, F16),
        ("float32", (9, 0), True, 512, F32),
        ("tf32", (9, 0), True, 512, F32),
        ("tf32", None, True, 512, F32),
    ],
)
def test_what_a_precision_means(monkeypatch, precision, gpu, cpu_has_it, width, expected):
    monkeypatch.setattr(devices_module, "fastest_precision", lambda _: "bfloat16")
    monkeypatch.setattr(devices_module, "cpu_has_bfloat16", lambda: cpu_has_it)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: gpu)
    assert product_type(precision, is_gpu=gpu is not None, width=width) == expected


@pytest.mark.parametrize(("precision", "expected"), [("float32", F32), ("bfloat16", BF16)])
def test_training_measures_its_layer_width(monkeypatch, precision, expected):
    """In all precisions, forward and backward, without a change of the training's random numbers."""
    linear, gradients = torch.nn.functional.linear, []

    def recorded(*inputs):
        product = linear(*inputs)
        product.register_hook(lambda gradient: gradients.append((gradient.dtype, gradient.shape[-1])))
        return product

    def fastest(steps):
        for step in steps.values():
            step()
        return precision

    monkeypatch.setattr(torch.nn.functional, "linear", recorded)
    monkeypatch.setattr(devices_module, "cpu_has_bfloat16", lambda: True)
    monkeypatch.setattr(devices_module, "fastest_precision", fastest)
    state = torch.get_rng_state()
    assert product_type("fastest", is_gpu=False, width=64) == expected
    assert torch.equal(torch.get_rng_state(), state)
    assert [each for each in gradients if each[1] == 4 * 64] == [(F32, 256), (BF16, 256)]


@pytest.mark.parametrize(("precision", "gpu"), [("auto", (7, 5)), ("bfloat16", (7, 0)), ("fastest", (6, 1))])
def test_precision_depends_on_the_device(monkeypatch, caplog, precision, gpu):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: gpu)
    assert product_type(precision, is_gpu=True, width=512) == F32
    (record,) = caplog.records
    assert "this GPU has no bfloat16" in record.getMessage()
    assert ("fastest uses float16" in record.getMessage()) == (precision != "fastest")
    with pytest.raises(UserError, match="float16 works only on a GPU"):
        product_type("float16", is_gpu=False, width=512)


# Builds of torch


@pytest.mark.parametrize(
    ("built", "gpu", "index"),
    [
        (["sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_120"], (7, 0), "cu126"),  # V100
        (["sm_75", "sm_80", "sm_90"], (6, 1), "cu126"),
        (["sm_70", "sm_80", "sm_90"], (12, 0), "the newest CUDA"),
        (["sm_80", "sm_90a"], (8, 9), None),
        (["sm_80", "sm_90"], (7, 5), "the newest CUDA"),
        (["sm_70", "compute_90"], (12, 0), None),
        ([], (9, 0), None),
    ],
)
def test_unsupported_gpu_names_the_build(gpus, monkeypatch, built, gpu, index):
    gpus(1)
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: built)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: gpu)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Tesla")
    if index is None:
        check_gpus()
        return
    message = rf"^Tesla \(compute capability {gpu[0]}\.{gpu[1]}\): torch .* has no kernels .* index for {index} "
    for use in (lambda: make_fabric("float32", "auto", width=8), lambda: choose_device("auto", 1)):
        with pytest.raises(UserError, match=message):
            use()


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A machine with a GPU and a driver, and torch for a version of CUDA."""
    monkeypatch.setattr(gpus_module, "DRIVER_FOLDER", tmp_path)
    monkeypatch.setattr(gpus_module, "CONTROL_DEVICE", tmp_path / "nvidiactl")

    def pretend(version, cuda):
        if version is None:  # in a container that hides the folder
            (tmp_path / "nvidiactl").touch()
        else:
            (tmp_path / "gpus" / "0000:01:00.0").mkdir(parents=True)
            (tmp_path / "version").write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue\n")
        monkeypatch.setattr(torch.version, "cuda", cuda)

    return pretend


@pytest.mark.parametrize(
    ("version", "cuda", "message"),
    [
        ("535.104.05", "13.0", "driver 535 is too old for torch .*, which needs 580: .* cu126"),
        ("535.104.05", "12.6", "finds no GPU: check `nvidia-smi`"),
        ("580.65.06", "13.0", "finds no GPU: check `nvidia-smi`"),
        (None, "13.0", "finds no GPU: check `nvidia-smi`"),
        ("580.65.06", None, "is a build for CPUs: install its default build"),
    ],
)
def test_ignored_gpu_is_reported(gpus, driver, caplog, version, cuda, message):
    gpus(0)
    driver(version, cuda)
    assert make_fabric("float32", "auto", width=8).device.type == "cpu"
    assert choose_device("auto", 1) == "cpu"
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert re.search(message, record.getMessage())
    for use in (lambda: make_fabric("float32", "gpu", width=8), lambda: choose_device("cuda", 1)):
        with pytest.raises(UserError, match=message):
            use()


@pytest.mark.parametrize(
    ("has_driver", "name", "value"),
    [
        (True, "CUDA_VISIBLE_DEVICES", ""),
        (True, "SLURM_JOB_ID", "17"),
        (False, "CUDA_VISIBLE_DEVICES", ""),
        (False, "CUDA_VISIBLE_DEVICES", "-1"),
        (False, "NONE", ""),
    ],
)
def test_hidden_gpu_is_not_missed(gpus, driver, monkeypatch, caplog, has_driver, name, value):
    gpus(0)
    if has_driver:
        driver("580.65.06", "13.0")
    monkeypatch.setenv(name, value)
    assert make_fabric("float32", "auto", width=8).device.type == "cpu"
    assert not caplog.records


@pytest.fixture
def products():
    """Torch's settings for matrix products on GPUs, restored afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32
    yield torch.backends.cuda.matmul
    torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize(("precision", "has_tf32"), [("auto", True), ("tf32", True), ("float32", False)])
@pytest.mark.parametrize("variable", [None, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"])
def test_torch_is_set_up_before_cuda_starts(monkeypatch, products, precision, has_tf32, variable):
    for name in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        monkeypatch.setenv(name, "max_split_size_mb:64")
        if name != variable:
            monkeypatch.delenv(name)
    products.allow_tf32 = not has_tf32
    torch.backends.cuda.enable_cudnn_sdp(True)
    devices_module.prepare_cuda(precision)
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert products.allow_tf32 is has_tf32
    assert ("expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")) == (variable is None)


@pytest.mark.parametrize(("is_forwarded", "n_errors"), [(True, 0), (False, 1)])
def test_second_signal_is_no_failure(caplog, tmp_path, is_forwarded, n_errors):
    """Slurm signals all processes, and the process that started them forwards the same signal."""
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        process = launching._Process(1, "node2", sleeping, None)
        process.forward(signal.SIGTERM) if is_forwarded else sleeping.terminate()
        assert launching._wait([process], tmp_path) == 128 + signal.SIGTERM
    assert caplog.text.count("was killed by SIGTERM") == n_errors


NCCL = "NCCL error in: NCCLUtils.hpp:268, unhandled system error\nLast error:\nshm_open failed: No space left on device"


@pytest.mark.parametrize(("code", "is_shown"), [(75, True), (1, False)])
def test_nccl_message_is_shown_as_cause(caplog, tmp_path, monkeypatch, code, is_shown):
    monkeypatch.setenv(launching.REASONS, str(tmp_path))
    monkeypatch.setenv("LOCAL_RANK", "0")
    with caplog.at_level(logging.INFO):
        assert launching.note_lost_peer(RuntimeError(NCCL)) == 75
    assert "Last error" not in caplog.text
    with subprocess.Popen(["sh", "-c", "exit 75"]) as first, subprocess.Popen(["sh", "-c", f"exit {code}"]) as second:
        processes = [launching._Process(rank, "", popen, None) for rank, popen in enumerate((first, second))]
        assert launching._wait(processes, tmp_path) == code
    assert ("shm_open failed: No space left on device" in caplog.text) == is_shown


def test_nccl_message_without_a_launcher(caplog, monkeypatch):
    monkeypatch.delenv(launching.REASONS, raising=False)
    launching.note_lost_peer(RuntimeError(NCCL))
    assert "shm_open failed: No space left on device" in caplog.text


@pytest.mark.parametrize(
    ("libraries", "folder"),
    [
        ("7f12-7f13 r-xp 00000000 08:01 77 /usr/local/nvidia/lib64/libcuda.so.580.159.04\n", "/usr/local/nvidia/lib64"),
        ("7f12-7f13 r-xp 00000000 08:01 77 /usr/lib/libcudart.so.13\n", None),
    ],
)
def test_triton_finds_the_driver_that_torch_has_loaded(tmp_path, monkeypatch, libraries, folder):
    monkeypatch.setenv("TRITON_LIBCUDA_PATH", "")
    monkeypatch.delenv("TRITON_LIBCUDA_PATH")
    monkeypatch.setattr(gpus_module, "LOADED_LIBRARIES", tmp_path / "maps")
    gpus_module.show_driver_to_triton()  # where the system has no such file
    (tmp_path / "maps").write_text(libraries)
    gpus_module.show_driver_to_triton()
    assert os.environ.get("TRITON_LIBCUDA_PATH") == folder


def test_amd_gpu_takes_the_plain_path(monkeypatch, caplog, products):
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64")
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["gfx90a"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    find_flash.cache_clear()
    with caplog.at_level("INFO"):
        check_gpus()
        devices_module.prepare_cuda("float32")
        assert kernel_for(torch.device("cuda"), torch.bfloat16, 64) == "padded"
    find_flash.cache_clear()
    assert "AMD GPU: attention uses padded batches without docmt's kernels" in caplog.text
