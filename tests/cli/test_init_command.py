"""`docmt init`: a folder from which Snakemake can run."""

import filecmp
import re
import sysconfig
from pathlib import Path

import pytest

from docmt.cli import init
from docmt.cli.main import main
from docmt.errors import UserError

ROOT = Path(__file__).parents[2]


def test_a_new_folder_has_the_whole_workflow(tmp_path, capsys):
    assert main(["init", str(tmp_path / "study")]) == 0
    assert "docmt run config/examples/smoke.yaml" in capsys.readouterr().out
    for name in init.PARTS:
        copy = tmp_path / "study" / name
        files = [copy] if copy.is_file() else [path for path in copy.rglob("*") if path.is_file()]
        assert files
        for file in files:
            assert filecmp.cmp(file, ROOT / file.relative_to(tmp_path / "study"), shallow=False)


def test_a_folder_with_files_is_refused(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("x")
    assert main(["init", str(tmp_path)]) == 2
    assert "exists and is not empty" in capsys.readouterr().err


def test_an_installed_package_has_its_own_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(init, "__file__", str(tmp_path / "lib/docmt/cli/init.py"))
    monkeypatch.setattr(sysconfig, "get_path", lambda name, scheme: str(tmp_path / scheme))
    with pytest.raises(UserError, match="was installed without its workflow"):
        init.find_workflow()
    for scheme in (sysconfig.get_preferred_scheme("user"), sysconfig.get_default_scheme()):
        for name in init.PARTS:
            (tmp_path / scheme / "share/docmt" / name).mkdir(parents=True)
        assert init.find_workflow() == tmp_path / scheme / "share/docmt"


def test_files_that_rules_name_are_copied():
    for file in (ROOT / "workflow/rules").glob("*.smk"):
        for name in set(re.findall(r'"(\.\./\.\./[^"]+)"', file.read_text(encoding="utf-8"))):
            assert name.removeprefix("../../").split("/")[0] in init.PARTS, name
