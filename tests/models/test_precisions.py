"""The fastest precision on a CPU."""

import logging

import pytest
import torch

from docmt.models import precisions
from docmt.models.precisions import cpu_has_bfloat16, cpu_has_vnni, fastest_precision, milliseconds


@pytest.mark.parametrize(
    ("float32", "bfloat16", "int8", "expected"),
    [
        (1.0, 0.25, 0.5, "bfloat16"),  # AMX
        (1.0, 2.0, 0.3, "int8"),
        (1.0, 1.95, 0.79, "int8"),
        (1.0, 1.95, 0.81, "float32"),
        (1.0, 0.9, 1.5, "float32"),
    ],
)
def test_another_precision_than_float32_must_gain_much(monkeypatch, caplog, float32, bfloat16, int8, expected):
    times = {"float32": float32, "bfloat16": bfloat16, "int8": int8}
    monkeypatch.setattr(precisions, "milliseconds", times.__getitem__)
    with caplog.at_level(logging.INFO):
        assert fastest_precision({name: name for name in times}) == expected
    assert caplog.messages == [
        f"precision: {expected} (measured ms per step: {float32:.2f} in float32, {bfloat16:.2f} in bfloat16, "
        f"{int8:.2f} in int8)"
    ]


def test_the_first_and_slow_calls_do_not_count(monkeypatch):
    seconds = iter([0.0, 9.0, 9.0, 9.004, 10.0, 10.003, 11.0, 11.005])
    monkeypatch.setattr(precisions, "thread_time", lambda: next(seconds))
    assert milliseconds(lambda: None) == pytest.approx(3)


@pytest.mark.parametrize(
    "flags", [(), ("_is_avx512_bf16_supported",), ("_is_amx_tile_supported", "_is_vnni_supported")]
)
def test_what_a_cpu_has_is_asked_of_torch(monkeypatch, flags):
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda name=name: name in flags, raising=False)
    monkeypatch.delattr(torch.cpu, "_is_vnni_supported", raising=False)
    assert not cpu_has_vnni()
    if "_is_vnni_supported" in flags:
        monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True, raising=False)
    assert cpu_has_vnni() == ("_is_vnni_supported" in flags)
    assert cpu_has_bfloat16() == bool(flags)
