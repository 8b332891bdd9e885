"""Code of inductor for an H100, on a machine without CUDA. Nothing runs on the pretended GPU."""

import contextlib
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor, fx
from torch._guards import TracingContext, tracing
from torch._inductor import async_compile, compile_fx, scheduler
from torch._inductor import config as inductor
from torch._inductor.codecache import PyCodeCache
from torch._subclasses import FakeTensorMode
from torch.fx.node import map_aggregate
from torch.utils import _triton
from torch.utils._pytree import tree_map

H100 = SimpleNamespace(
    name="NVIDIA H100",
    major=9,
    minor=0,
    multi_processor_count=132,
    warp_size=32,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    total_memory=80 * 2**30,
    L2_cache_size=50 * 2**20,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    gcnArchName="",
    is_integrated=0,
)


class Compiled(Exception):  # noqa: N818 - ends the compiler before it loads the code
    """Generated code."""


class NoKernel:
    """Kernel of which only the source exists."""


class Driver:
    """Triton's driver for a GPU of compute capability 9.0."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget  # pyright: ignore[reportMissingImports]

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0


def compile_for_h100(
    graph: fx.GraphModule, inputs: list[Any], mode: FakeTensorMode, *, is_backward: bool = False
) -> tuple[str, int]:
    """Return the code that inductor generates for a graph of CPU tensors on a GPU, and the bytes that kernels move."""
    n_bytes = []

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        with mode:
            return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device="cuda:0")

    def name_device(argument: Any) -> Any:
        return torch.device("cuda:0") if isinstance(argument, torch.device) else argument

    for node in graph.graph.nodes:
        if "val" in node.meta:
            node.meta["val"] = tree_map(move, node.meta["val"])
        node.args = map_aggregate(node.args, name_device)
        node.kwargs = map_aggregate(node.kwargs, name_device)

    generate = scheduler.Scheduler.codegen

    def count_bytes(self: scheduler.Scheduler) -> None:
        n_bytes.extend(node.get_read_write_buffers_sizes() for node in self.nodes)
        generate(self)

    def write(*arguments: Any, **_: Any) -> None:
        raise Compiled(arguments[0])

    options = {"triton.mix_order_reduction_non_strict_mode": True, "force_disable_caches": True, "compile_threads": 1}
    with (
        pretend_h100(),
        mock.patch.object(scheduler.Scheduler, "codegen", count_bytes),
        mock.patch.object(PyCodeCache, "write", write),
        mock.patch.object(async_compile.AsyncCompile, "triton", return_value=NoKernel()),
        inductor.patch(options),  # pyright: ignore[reportAttributeAccessIssue]
        mode,
        tracing(TracingContext(mode)),
    ):
        try:
            compile_fx.compile_fx_inner(graph, [move(leaf) for leaf in inputs], is_backward=is_backward)
        except Exception as error:
            cause = error if isinstance(error, Compiled) else getattr(error, "inner_exception", error)
            if not isinstance(cause, Compiled):
                raise
            return str(cause), sum(n_bytes)
    raise RuntimeError("inductor generated no code")


@contextlib.contextmanager
def pretend_h100() -> Any:
    """Let torch and Triton find an H100."""
    from triton.runtime import driver  # pyright: ignore[reportMissingImports]

    cuda, get_item = torch.cuda, Tensor.__getitem__

    def get_item_without_driver(self: Tensor, index: Any) -> Tensor:
        return torch.select(self, 0, index) if type(index) is int else get_item(self, index)

    driver.set_active(Driver())  # pyright: ignore[reportArgumentType]
    values = {
        "get_device_properties": H100,
        "_get_device_properties": H100,
        "get_device_capability": (9, 0),
        "get_device_name": H100.name,
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "device_count": 1,
        "current_device": 0,
        "current_stream": SimpleNamespace(cuda_stream=0),
        "mem_get_info": (H100.total_memory, H100.total_memory),
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": None,
        "set_device": None,
        "synchronize": None,
        "_lazy_init": None,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
    }
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(mock.patch.object(cuda, name, lambda *_, value=value, **__: value, create=True))
        for target, name, value in (
            (cuda.random, "_lazy_init", None),
            (cuda.device, "__init__", None),
            (cuda.device, "__enter__", None),
            (cuda.device, "__exit__", False),
            (torch._C, "_cuda_getDevice", 0),
            (torch._C, "_cuda_getCurrentRawStream", 0),
            (_triton, "has_triton", True),
            (scheduler, "has_triton", True),
        ):
            stack.enter_context(mock.patch.object(target, name, lambda *_, value=value: value, create=True))
        stack.enter_context(mock.patch.object(torch.version, "cuda", "13.0"))
        stack.enter_context(mock.patch("torch._subclasses.fake_tensor.init_gpu_context"))
        # The methods in C++ ask for a driver of the device.
        stack.enter_context(mock.patch.object(Tensor, "__invert__", lambda self: torch.bitwise_not(self)))
        stack.enter_context(mock.patch.object(Tensor, "__getitem__", get_item_without_driver))
        yield
