"""Runs the tests marked `gpu` on the stand-in: `PYTHONPATH=tests:. python -m standin.gpu_tests ["not slow"]`."""

import sys

import standin.kernels

# isort: split

from pathlib import Path

import pytest

KERNELS = standin.kernels.LIBRARY
MARK = "@pytest.mark." + "gpu"


def main() -> None:
    """Run them, without tests that need a compiler, because it makes no code for this device. Exits like pytest."""
    tests = sorted(Path(__file__).parents[1].rglob("test_*.py"))
    files = [str(path) for path in tests if MARK in path.read_text(encoding="utf-8")]
    marks = " and ".join(["gpu", *sys.argv[1:]])
    sys.exit(pytest.main(["-m", marks, "-k", "not compiled/", "-p", "no:cacheprovider", *files]))


if __name__ == "__main__":
    main()
