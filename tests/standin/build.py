"""Compiles the stand-in for a CUDA device, once per version of the stand-in and torch."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

SOURCE = Path(__file__).with_name("cuda.cpp")
MISSING = ("No such file or directory", "cannot find", "unrecognized command")
"""Errors of a compiler with missing parts. Any other error is a mistake in the stand-in."""
SOURCES = (SOURCE, SOURCE.with_name("runtime.h"))


class UnavailableError(Exception):
    """The stand-in cannot be built on this machine. The message is one line."""


def torch_folder() -> Path:
    """Installation folder of torch, found without importing it."""
    origin = getattr(importlib.util.find_spec("torch"), "origin", None)
    assert origin is not None
    return Path(origin).parent


def cache_folder() -> Path:
    """A folder for this user next to pytest's temporary folders."""
    return Path(tempfile.gettempdir()) / f"pytest-of-{os.environ.get('USER') or os.getuid()}" / "standin"


def build_library(folder: Path) -> Path:
    """Compile the stand-in into `folder`, unless it exists.

    Raises:
        UnavailableError: there is no complete compiler, or torch is not a CPU build.
        RuntimeError: the stand-in does not compile.
    """
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise UnavailableError("no C++ compiler (g++)")
    torch = torch_folder()
    if (torch / "lib" / "libtorch_cuda.so").exists():
        raise UnavailableError("this torch has CUDA itself: the stand-in needs the build for CPUs")
    name = hashlib.sha256(b"".join(file.read_bytes() for file in SOURCES) + version("torch").encode()).hexdigest()[:16]
    library = folder / f"{name}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        output = Path(scratch) / "standin.so"
        command = [compiler, "-std=c++20", "-O0", "-shared", "-fPIC", f"-I{torch / 'include'}", str(SOURCE)]
        command += ["-o", str(output), f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            reason = next((line for line in done.stderr.splitlines() if any(m in line for m in MISSING)), None)
            if reason is None:
                raise RuntimeError(f"{SOURCE} does not compile:\n{done.stderr}")
            raise UnavailableError(f"{compiler}: {reason}")
        output.replace(library)
    return library
