"""GPU energy, read from a library with the functions of NVML."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest
import torch

from docmt.gpu_locks import first_gpu
from docmt.models import gpus
from docmt.models.gpus import DeviceMeter

NVML = r"""
#include <string.h>

static unsigned long long counter = 5000000000ULL;  /* millijoules, more than 32 bits hold */
static int card;

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    *handle = &card;
    return strcmp(uuid, "GPU-0c1d") ? 6 : 0;  /* NVML_ERROR_NOT_FOUND */
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *energy) {
    *energy = counter += 2500;
    return handle == &card ? RESULT : 2;
}
"""


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A function that installs a driver. `result` is NVML's error number or 0, and `uuid` comes from torch."""

    def install(*, result=0, uuid="0c1d"):
        (tmp_path / "nvml.c").write_text(NVML.replace("RESULT", str(result)))
        command = ["cc", "-shared", "-fPIC", "-o", tmp_path / "nvml.so", tmp_path / "nvml.c"]
        subprocess.run(command, check=True)
        monkeypatch.setattr(gpus, "NVML", str(tmp_path / "nvml.so"))
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=uuid))

    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return install


def test_energy_is_the_increase_of_the_counter(driver):
    driver()
    meter = DeviceMeter("cuda")
    assert meter.joules() == 2.5
    assert meter.facts() == {"device": "cuda", "n_devices": 1, "joules": 5.0}


@pytest.mark.parametrize("problem", [{"result": 3}, {"uuid": "part-of-a-card"}])
def test_energy_without_a_counter_is_unknown(driver, problem):
    driver(**problem)
    assert DeviceMeter("cuda").facts() == {"device": "cuda", "n_devices": 1}


def test_energy_for_another_program_is_of_its_gpu(driver, monkeypatch):
    driver(uuid="not asked")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-0c1d,GPU-other")
    assert DeviceMeter("cuda", gpu=first_gpu()).joules() == 2.5
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr("docmt.gpu_locks._identifiers", lambda: ["GPU-other", "GPU-0c1d"])
    assert first_gpu() == "GPU-0c1d"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert first_gpu() is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_energy_without_the_driver_is_unknown(monkeypatch, device):
    monkeypatch.setattr(gpus, "NVML", "libmissing.so")
    assert DeviceMeter(device).facts() == {"device": device, "n_devices": 1}
