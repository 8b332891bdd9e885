"""Replaces CUDA by the stand-in. Import this module before torch, in a separate process.

`torch.cuda` is Python over functions that the CPU build lacks. The functions that docmt uses are replaced here.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from types import SimpleNamespace

from standin.build import build_library, cache_folder, torch_folder

_capability = [(9, 0)]


def _load() -> ctypes.CDLL:
    for name in ("libc10.so", "libtorch_cpu.so"):
        ctypes.CDLL(str(torch_folder() / "lib" / name), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(build_library(cache_folder())))
    for name in ("allocated", "peak", "capacity"):
        getattr(library, f"standin_{name}").restype = ctypes.c_int64
    library.standin_set_capacity.argtypes = [ctypes.c_int64]
    return library


LIBRARY = _load()

import torch  # noqa: E402 - after the device guard and the hooks


class Stream:
    """The only stream. Everything is finished after the call."""

    device = torch.device("cuda", 0)

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def wait_stream(self, other: object) -> None:
        pass

    wait_event = wait_stream

    def record_event(self, event: "Event | None" = None) -> "Event":
        return event or Event()

    def query(self) -> bool:
        return True


class Event:
    """A point in the stream. Waiting for it is a sync."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def record(self, stream: object = None) -> None:
        pass

    def wait(self, stream: object = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def elapsed_time(self, other: object) -> float:
        return 1.0


def set_capacity(n_bytes: int) -> None:
    """Set the memory size of the device. Larger allocations raise `torch.OutOfMemoryError`."""
    LIBRARY.standin_set_capacity(n_bytes)


def capability() -> tuple[int, int]:
    """Compute capability of the device. The default is an H100, and `older_gpu` changes it."""
    return _capability[-1]


@contextlib.contextmanager
def older_gpu(major: int, minor: int) -> Iterator[None]:
    """Simulate a device with an earlier compute capability."""
    _capability.append((major, minor))
    try:
        yield
    finally:
        _capability.pop()


def _memory_info(device: object = None) -> tuple[int, int]:
    capacity = LIBRARY.standin_capacity()
    return capacity - LIBRARY.standin_allocated(), capacity


def _properties(device: object = None) -> SimpleNamespace:
    major, minor = capability()
    total = LIBRARY.standin_capacity()
    return SimpleNamespace(name="stand-in", major=major, minor=minor, total_memory=total, multi_processor_count=132)


def _install() -> None:
    library = LIBRARY
    stream = Stream()
    generator = torch.default_generator
    replaced = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_arch_list": lambda: ["sm_75", "sm_80", "sm_90"],
        "get_device_name": lambda device=None: "stand-in",
        "get_device_capability": lambda device=None: capability(),
        "get_device_properties": _properties,
        "is_bf16_supported": lambda including_emulation=True: True,
        "synchronize": lambda device=None: library.standin_synchronize(),
        "set_sync_debug_mode": lambda mode: library.standin_set_may_sync(mode != "error"),
        "empty_cache": lambda: None,
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "set_stream": lambda stream: None,
        "stream": lambda stream: contextlib.nullcontext(),
        "device": lambda device: contextlib.nullcontext(),
        "Stream": Stream,
        "Event": Event,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": _memory_info,
        "memory_allocated": lambda device=None: library.standin_allocated(),
        "memory_reserved": lambda device=None: library.standin_allocated(),
        "max_memory_allocated": lambda device=None: library.standin_peak(),
        "max_memory_reserved": lambda device=None: library.standin_peak(),
        "reset_peak_memory_stats": lambda device=None: library.standin_reset_peak(),
        "default_generators": (generator,),
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_rng_state": lambda device="cuda": generator.get_state(),
        "set_rng_state": lambda state, device="cuda": generator.set_state(state),
        "_lazy_init": lambda: None,
    }
    for name, value in replaced.items():
        setattr(torch.cuda, name, value)


_install()
