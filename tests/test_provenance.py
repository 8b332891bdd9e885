"""Provenance of artifacts."""

from docmt.files import read_json
from docmt.provenance import write_job_facts


def test_job_facts_are_named_after_the_artifact(tmp_path):
    write_job_facts(tmp_path / "model.pt", device="cpu", n_devices=2, sessions=[{"from_update": 0, "seconds": 1.5}])
    assert read_json(tmp_path / "model.job.json") == {
        "device": "cpu",
        "n_devices": 2,
        "sessions": [{"from_update": 0, "seconds": 1.5}],
    }
