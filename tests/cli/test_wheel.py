"""The wheel contains the workflow and all data, and runs a study without a repository."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from docmt.cli import init

ROOT = Path(__file__).parents[2]


def checked(command, **keywords):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **keywords)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # setuptools writes beside what it reads
    source.mkdir()
    for name in ("docmt", "pyproject.toml", "README.md", "LICENSE", *init.PARTS):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
    checked([*pip, "-w", folder, source])
    (wheel,) = folder.glob("docmt-*.whl")
    return wheel


def test_wheel_contains_data_and_workflow(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    version = wheel.name.removesuffix("-py3-none-any.whl")
    expected = {
        f"{prefix}{path.relative_to(ROOT)}"
        for prefix, parts in (("", ["docmt"]), (f"{version}.data/data/share/docmt/", init.PARTS))
        for part in parts
        for path in (ROOT / part, *(ROOT / part).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in names if not name.startswith(f"{version}.dist-info/")} == expected


@pytest.mark.slow
def test_wheel_runs_without_a_repository(wheel, tmp_path):
    environment, study = tmp_path / "environment", tmp_path / "study"
    venv.create(environment, with_pip=False, symlinks=True)
    bin_folder, packages = environment / "bin", Path(sysconfig.get_path("purelib"))
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    variables["PATH"] = f"{bin_folder}:{variables['PATH']}"
    pip = [sys.executable, "-m", "pip", f"--python={bin_folder / 'python'}", "install", "--no-deps", "--no-index", "-q"]
    checked([*pip, wheel], env=variables, cwd=tmp_path)
    # The other packages of this environment. An editable docmt is not among them, since it is named by a file that
    # Python reads in folders of packages only.
    (site_packages,) = environment.glob("lib/python*/site-packages")
    (site_packages / "others.pth").write_text(f"{packages}\n", encoding="utf-8")
    where = checked([bin_folder / "python", "-c", "import docmt; print(docmt.__file__)"], env=variables, cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(site_packages)

    docmt = bin_folder / "docmt"
    checked([docmt, "init", study], env=variables, cwd=tmp_path)
    smoke = "config/examples/smoke.yaml"
    assert "train" in checked([docmt, "run", smoke, "--dry-run"], env=variables, cwd=study)
    checked([docmt, "run", smoke, "--cores", "2"], env=variables, cwd=study)
    assert "g_transformer_finetuned" in (study / "results/report/summary.txt").read_text(encoding="utf-8")
