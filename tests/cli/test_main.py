"""The command itself."""

import subprocess
import sys

import pytest

from docmt import __version__


@pytest.mark.parametrize("module", ["docmt", "docmt.cli.main"])
def test_the_package_runs_as_a_module(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"docmt {__version__}\n"


def test_an_error_is_one_line_and_code_2(tmp_path):
    command = [sys.executable, "-m", "docmt", "status", "--configfile", "missing.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "docmt: error: missing.yaml: no such file\n"


def test_help_does_not_import_what_takes_seconds():
    code = (
        "import sys; from docmt.cli.main import build_parser; build_parser('train').format_help(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'pandas', 'numpy', 'snakemake')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
