"""Variable-length attention in short groups: the kernels in Triton's interpreter, and the choice of kernels.

Inputs are the same as for flash attention. The oracle is attention token by token, or group by group in float32.
"""

import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from core_fixtures import document_trees, make_batch, model_settings, random_documents
from plain_attention import (
    PlainKernels,
    assert_equal_with_gradients,
    attend_plainly,
    randomize,
    take_plain_kernels,
)

from docmt.models.attention import varlen
from docmt.models.attention.kernels import distances_of, ragged_attention
from docmt.models.attention.multi_head import MultiHeadAttention
from docmt.models.attention.varlen import VarlenIndexes
from docmt.models.presets import ARCHITECTURES

HEADS = 2
LENGTHS = (np.array([5, 0, 33, 1, 0, 2, 128]), np.array([9, 4, 40, 1, 1, 70, 128]))
"""Group lengths for queries and keys: one tile or several, full or not. Two groups have no queries."""
TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 0.02, torch.float16: 0.002}


@pytest.fixture(scope="module")
def triton():
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("the interpreter of Triton is for machines without a GPU")
    return pytest.importorskip("triton", reason="Triton is not installed (make test-others)")


@pytest.fixture
def kernels(triton, monkeypatch):
    """The kernels, interpreted."""
    import triton.language as tl
    from triton.runtime.interpreter import interpreter_builder as builder

    multiply = builder.create_dot

    def create_dot(a, b, *rest):
        # The interpreter of Triton 3.8 multiplies the bit patterns of bfloat16 numbers.
        return multiply(*(builder.cast_impl(x, tl.float32) if x.dtype == tl.bfloat16 else x for x in (a, b)), *rest)

    monkeypatch.setattr(builder, "create_dot", create_dot)
    monkeypatch.setattr(varlen, "tried_short_groups", lambda *_: varlen.short_groups())
    return varlen.short_groups()


def random_rows(dtype, width, lengths=LENGTHS):
    """Gradient, queries, keys and values, as projections return them, and group offsets."""
    torch.manual_seed(1)
    n, m = (int(part.sum()) for part in lengths)
    gradient, query = torch.randn(n, 3, HEADS, width).to(dtype).unbind(1)[:2]
    key, value = torch.randn(m, 2, HEADS, width).to(dtype).unbind(1)
    offsets = [torch.from_numpy(np.concatenate(([0], part.cumsum()))).int() for part in lengths]
    return (gradient, query, key, value), offsets


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    ("dtype", "width", "n_groups", "tile"),
    [
        pytest.param(torch.float32, 20, 6, "SHORTEST", marks=pytest.mark.slow),
        (torch.bfloat16, 64, 6, "LARGE"),
        pytest.param(torch.float32, 20, 7, "MIDDLE", marks=pytest.mark.slow),
        pytest.param(torch.float32, 20, 7, "LARGE", marks=pytest.mark.slow),
        pytest.param(torch.float16, 8, 6, "MIDDLE", marks=pytest.mark.slow),
    ],
)
def test_groups_of_up_to_128_equal_the_formula(kernels, monkeypatch, dtype, width, n_groups, tile, is_causal):
    monkeypatch.setattr(kernels, "tile", lambda *_: getattr(kernels, tile))
    inputs, offsets = random_rows(dtype, width, [part[:n_groups] for part in LENGTHS])
    results = kernels.forward(*inputs[1:], offsets, is_causal)
    # In one tensor, as for self-attention, or in two.
    n, m = len(inputs[1]), len(inputs[2])
    packed = [inputs[0].new_empty(n, 1, HEADS, width), inputs[0].new_empty(m, 2, HEADS, width)]
    if n == m:
        packed = [inputs[0].new_empty(n, 3, HEADS, width)]
    our_gradients = varlen.unpack(packed)
    kernels.backward(*inputs, results, offsets, is_causal, our_gradients)
    floats = [rows.float() for rows in inputs]
    expected = PlainKernels.forward(*floats[1:], offsets, is_causal)
    gradients = [torch.empty_like(rows) for rows in floats[1:]]
    PlainKernels.backward(*floats, expected, offsets, is_causal, gradients)
    for ours, plain in zip((*results, *our_gradients), (*expected, *gradients), strict=True):
        assert ours.isfinite().all()
        assert (ours.float() - plain).norm() < TOLERANCES[dtype] * plain.norm()


def test_tiles_fit_the_groups_and_the_device(kernels):
    hopper, ampere = (9, 0), (8, 0)
    assert kernels.tile(1600, 100, 64, hopper) == kernels.tile(1600, 100, 64, ampere) == kernels.SHORTEST
    assert kernels.tile(1601, 100, 64, hopper) == kernels.LARGE
    assert kernels.tile(1601, 100, 64, ampere) == kernels.tile(1601, 100, 128, hopper) == kernels.MIDDLE


@pytest.mark.slow
def test_gradients_are_the_same_in_every_run(kernels):
    inputs, offsets = random_rows(torch.float32, 8, [part[:3] for part in LENGTHS])
    first, second = ([torch.empty_like(rows) for rows in inputs[1:]] for _ in range(2))
    for gradients in (first, second):
        kernels.backward(*inputs, kernels.forward(*inputs[1:], offsets, True), offsets, True, gradients)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def make_layout(architecture):
    """Layout of a small batch, with trees if the model reads them, and the model's attentions."""
    settings = model_settings(architecture)
    documents = random_documents([3, 1], longest=5)
    return make_batch(settings, documents, document_trees(documents) if settings.needs_trees else None).layout


PATTERNS = {
    part: architecture for architecture in ARCHITECTURES for part in make_layout(architecture).attention_parts()
}
"""An architecture for each pattern of attention, by slot and pattern."""


@pytest.mark.parametrize(
    ("slot", "pattern"),
    [pytest.param(*part, marks=pytest.mark.slow if i % 4 else ()) for i, part in enumerate(PATTERNS)],
)
def test_all_patterns_equal_attention_token_by_token(kernels, slot, pattern):
    """With distances if the pattern has them, and gradients of all parameters."""
    grouping = make_layout(PATTERNS[slot, pattern]).grouping(slot, pattern)
    indexes = VarlenIndexes.of(grouping)
    part = randomize(MultiHeadAttention(8, HEADS, pattern))
    n, m = grouping.n_queries, grouping.key_rows.max() + 1
    query = torch.randn(n, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
    memory = torch.randn(m, 8, generator=torch.Generator().manual_seed(2)).requires_grad_()
    memory = None if slot in ("encoder", "decoder") else memory
    seen = []
    first = 0
    for n, m in zip(grouping.query_lengths_G.tolist(), grouping.key_lengths_G.tolist(), strict=True):
        seen += [list(range(first, first + (m - n + i + 1 if grouping.is_causal else m))) for i in range(n)]
        first += m
    *inputs, adjust = part.projections(query, memory, indexes)
    output = ragged_attention(*inputs, indexes, adjust).flatten(1)
    # Once more: each gradient needs a graph of its own.
    query_NHK, key_MHK, value_MHK, adjust = part.projections(query, memory, indexes)
    key_PHK, value_PHK = (rows[torch.from_numpy(grouping.key_rows)] for rows in (key_MHK, value_MHK))
    if adjust is not None:
        key_PHK, value_PHK = adjust(key_PHK, value_PHK, distances_of(indexes))
    expected = attend_plainly(
        len(seen), HEADS, lambda i, _: seen[i],
        lambda i, j, h: query_NHK[i, h] @ key_PHK[j, h] / math.sqrt(query_NHK.shape[2]),
        lambda i, j, h: value_PHK[j, h],
    )  # fmt: skip
    wanted = [query, *(() if memory is None else (memory,)), *part.parameters()]
    assert_equal_with_gradients(output, expected, wanted)


# Which kernel


@pytest.fixture
def taken(monkeypatch):
    """Names of kernels that the operator ran. All kernels are plain."""
    names = []
    take_plain_kernels(monkeypatch, names)
    return names


def run(n_groups, n, m, width=8, longest=None):
    lengths = [np.full(n_groups, n), np.full(n_groups, m)]
    if longest is not None:
        lengths = [np.append(part, longest) for part in lengths]
    inputs, offsets = random_rows(torch.float32, width, lengths)
    parts = [rows[:, None].requires_grad_() for rows in inputs[1:]]
    varlen._attend(parts, *offsets, *(int(part.max()) for part in lengths), False)[0].sum().backward()


@pytest.mark.parametrize(
    ("sizes", "kernel"),
    [
        ({"n": 28, "m": 28}, "short"),
        ({"n": 128, "m": 128}, "short"),
        ({"n": 129, "m": 20}, "flash"),
        ({"n": 20, "m": 129}, "flash"),
        ({"n": 28, "m": 28, "longest": 400}, "short"),
        ({"n": 28, "m": 28, "longest": 513}, "flash"),
        ({"n": 28, "m": 28, "width": 256}, "flash"),
    ],
)
def test_short_groups_leave_long_ones_to_flash_attention(taken, monkeypatch, sizes, kernel):
    monkeypatch.setattr(varlen, "tried_short_groups", lambda *_: varlen.short_groups())
    run(8, **sizes)
    assert taken == [kernel, f"{kernel} backward"]


def test_an_environment_variable_leaves_all_to_flash_attention(taken, monkeypatch):
    monkeypatch.setenv(varlen.SWITCH, "flash")
    run(8, 28, 28)
    assert taken == ["flash", "flash backward"]


class Wrong(PlainKernels):
    """Omits the last keys of groups in one gradient."""

    @staticmethod
    def backward(*arguments):
        PlainKernels.backward(*arguments)
        arguments[7][2][arguments[5][1][1:].long() - 1] = 0


def broken(*_):
    raise RuntimeError("Failed to find C compiler\nmore")


def full(*_):
    raise torch.OutOfMemoryError("out of memory")


@pytest.mark.parametrize(
    ("kernels", "message", "n_flash"),
    [
        (PlainKernels, None, 4),  # for comparison, short and long, with and without causality
        (Wrong, "relative difference 0.", 1 + 2),
        (SimpleNamespace(forward=broken), "Failed to find C compiler", 2),
    ],
)
def test_failing_kernels_are_avoided(taken, monkeypatch, caplog, kernels, message, n_flash):
    varlen.tried_short_groups.cache_clear()
    monkeypatch.setattr(varlen, "short_groups", lambda: kernels)
    for _ in range(2):
        run(3, 4, 5)
    varlen.tried_short_groups.cache_clear()
    warnings = [record.getMessage() for record in caplog.records if record.name == varlen.log.name]
    assert len(warnings) == (message is not None)
    assert all(message in text and "more" not in text for text in warnings)
    assert taken.count("flash") == taken.count("flash backward") == n_flash


def test_lack_of_memory_is_raised(taken, monkeypatch):
    varlen.tried_short_groups.cache_clear()
    monkeypatch.setattr(varlen, "short_groups", lambda: SimpleNamespace(forward=full))
    with pytest.raises(torch.OutOfMemoryError):
        run(3, 4, 5)


@pytest.mark.slow
def test_the_operator_keeps_the_rules_of_torch(taken):
    """The operator's schema, its shapes without data, and its gradients, including graphs for any length."""
    inputs, offsets = random_rows(torch.float32, 8, [part[:4] for part in LENGTHS])
    parts = [rows[:, None].detach().clone().requires_grad_() for rows in inputs[1:]]
    torch.library.opcheck(torch.ops.docmt.varlen_attention.default, (parts, *offsets, 33, 40, True))


COMPILE = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from docmt.models.attention import short_groups as groups

capability = int(sys.argv[1])
kinds = {"sums": "*fp32", "query_offsets": "*i32", "key_offsets": "*i32", "scale": "fp32", "n_rows": "i32"}
for kernel in (groups.short_groups_forward, groups.short_groups_backward):
    for length, width in ((12, 64), (28, 64), (28, 128)):
        rows, warps = groups.tile(length, 1, width, divmod(capability, 10))
        constants = {"heads": 8, "width": width, "is_causal": True, "B": rows, "P": width}
        types = kinds | {name: "constexpr" for name in constants}
        whole = {n: types.get(n, "i32" if n.endswith(("stride", "head", "row")) else "*bf16") for n in kernel.arg_names}
        target = GPUTarget("cuda", capability, 32)
        made = triton.compile(ASTSource(kernel, whole, constants), target, {"num_warps": warps, "num_stages": 1})
        print(made.metadata.shared)
"""


@pytest.mark.slow
@pytest.mark.parametrize("capability", ["80", "90"])
def test_kernels_compile_for_small_gpus(triton, capability):
    environment = os.environ | {"TRITON_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-c", COMPILE, capability], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shared = [int(line) for line in done.stdout.split()]
    assert len(shared) == 6
    assert max(shared) <= 99 * 1024  # of a GeForce. Data centers have more
