"""Provenance of artifacts."""

import subprocess

from docmt import provenance
from docmt.files import read_json
from docmt.provenance import write_job_facts


def test_another_repository_is_not_docmts(tmp_path, monkeypatch):
    """An installed package can be inside a study with its own repository."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for key in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{key}_NAME", "a")
        monkeypatch.setenv(f"{key}_EMAIL", "a@b.c")
    subprocess.run(["git", "-C", str(tmp_path), "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    commits = []
    for folder in ("venv/site", "."):
        file = tmp_path / folder / "docmt/provenance.py"
        monkeypatch.setattr(provenance, "__file__", str(file))
        commits.append(provenance.commit.__wrapped__())
    assert commits[0] == "unknown"
    assert len(commits[1]) == 12


def test_job_facts_are_named_after_the_artifact(tmp_path):
    write_job_facts(tmp_path / "model.pt", device="cpu", n_devices=2, sessions=[{"from_update": 0, "seconds": 1.5}])
    assert read_json(tmp_path / "model.job.json") == {
        "device": "cpu",
        "n_devices": 2,
        "sessions": [{"from_update": 0, "seconds": 1.5}],
    }
