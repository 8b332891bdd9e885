"""An empty study folder."""

import pytest
from smoke_study import smoke_config
from study_folders import Folder

from docmt.config.plan import Plan


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The empty folder of the smoke study, on a machine without Slurm."""
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    (tmp_path / "study").mkdir()
    return Folder(tmp_path / "study", Plan(smoke_config()))
