"""Two configurations in one folder, and changes that keep a configuration the same."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from studies import ROOT, SMOKE, Study, clean_environment, snakemake

from docmt.config.loading import merge, read_config_file
from docmt.model_owners import read_owner

pytestmark = pytest.mark.slow

FASTER = {"training": {"finetune": {"learning_rate": 2e-3}, "scratch": {"learning_rate": 2e-3}}}
OTHER = {"instances": "sentences", "architecture": "sentence_transformer", "size": "tiny", "recipe": "scratch"}
OTHER_SYSTEM = {"systems": {"other": OTHER}}


@dataclass
class Other(Study):
    """The same study folder with another configuration file."""

    def config(self, changes=None):
        file = self.folder / "other.yaml"
        file.write_text(yaml.safe_dump(merge(read_config_file(SMOKE), changes or {})), encoding="utf-8")
        return file


def docmt_run(study, *options):
    words = ["docmt", "run", str(study.config(FASTER)), "--directory", str(study.folder), *options]
    return subprocess.run(words, env=clean_environment(), cwd=ROOT, capture_output=True, text=True, check=False)


def test_another_configuration_is_refused(study):
    other = Other(study.folder)
    refused = docmt_run(other, "--cores", "1")
    assert refused.returncode == 1
    *_, line = refused.stderr.rstrip().splitlines()
    refusal = "4 model(s) of study.yaml would be replaced by other.yaml, such as results/"
    assert line.startswith(f"docmt: error: {refusal}")
    plan = docmt_run(other, "--dry-run")
    assert plan.returncode == 2
    assert plan.stderr.startswith(f"docmt: error: this run would be refused: {refusal}")
    first, _, header, *_ = plan.stdout.splitlines()
    assert first.startswith("docmt: this run replaces 4 existing models: ")
    assert header.split() == ["rule", "jobs", "reason"]
    assert "train" in {job.split()[0] for job in study.jobs(FASTER)}, "the same file was edited"


def test_deleting_all_outputs_is_refused(study):
    before = sorted(study.folder.rglob("*"))
    done = snakemake(study.folder, "--delete-all-out", config=study.folder / "study.yaml")
    assert done.returncode == 1
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("docmt: error: ")]
    assert [line.split(":")[2].strip() for line in lines] == ["--delete-all-output"]
    assert [path for path in before if not path.exists()] == []


@pytest.mark.parametrize("changes", [{}, OTHER_SYSTEM, {"decoding": {"beam_size": 3}}], ids=["copy", "system", "beam"])
def test_a_configuration_that_keeps_the_models_runs(changes, study):
    before = {path: path.read_bytes() for path in study.folder.glob("results/smoke/runs/*/seed1/model.pt")}
    done = Other(study.folder).run(changes=changes)
    assert done.returncode == 0, done.stderr[-3000:]
    assert all(path.read_bytes() == content for path, content in before.items())


def test_models_are_replaced_only_on_request(study):
    other = Other(study.folder)
    run = study.folder / "results/smoke/runs/sentence_transformer/seed1"
    before = (run / "model.pt").read_bytes()
    assert other.run("training", changes=FASTER).returncode == 1
    assert ((run / "model.pt").read_bytes(), read_owner(run)) == (before, ["study.yaml"])
    words = ["run", other.config(FASTER), "training", "--directory", other.folder, "--replace", "--cores", "2"]
    done = subprocess.run(["docmt", *map(str, words)], env=clean_environment(), cwd=ROOT, check=False)
    assert done.returncode == 0
    assert (run / "model.pt").read_bytes() != before
    assert read_owner(run) == ["other.yaml"]


def test_a_moved_study_keeps_its_configuration(study, tmp_path):
    moved = tmp_path / "moved"
    shutil.move(study.folder, moved)
    assert "train" in {job.split()[0] for job in Study(moved).jobs(FASTER)}
    assert read_owner(Path(moved) / "results/smoke/runs/rst_mix/seed1") == ["study.yaml"]
