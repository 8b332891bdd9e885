"""A run uses its planned settings and user-supplied files, even if they are edited in the meantime."""

import json
import os

import pytest
import warm
from studies import ROOT, RUN, Study, snakemake
from test_workflow_records import custom

from docmt.config.loading import read_config_file

PREFIX = "results/smoke/corpora/en-de/train"
TARGET = f"{PREFIX}.documents.tsv"
CUSTOM = "results/corpora/talks/en-de/all.documents.tsv"


@pytest.fixture
def study(tmp_path):
    """A study that has not read its user files yet."""
    (tmp_path / "talks.en").write_text("Hello .\n", encoding="utf-8")
    (tmp_path / "talks.de").write_text("Hallo .\n", encoding="utf-8")
    return Study(tmp_path)


def run_file(study):
    (path,) = (study.folder / ".snakemake/docmt").glob("*.json")
    return path


def run_job(study, rule, wildcards, *, config):
    """Run a job in a separate Snakemake process, as on a cluster node."""
    options = ("--force", "--nolock", "--ignore-incomplete", "--mode", "subprocess", "--allowed-rules", rule)
    job = f"{rule}:{','.join(f'{name}={value}' for name, value in wildcards.items())}"
    return snakemake(study.folder, *RUN, *options, "--target-jobs", job, config=config)


def editing(folder, command):
    """A docmt that first runs a shell command, as if someone edited a file after planning."""
    folder.mkdir()
    program = folder / "docmt"
    program.write_text(f'#!/bin/bash\n{command}\nexec {warm.docmt()} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.mark.slow
def test_user_file_changed_during_run_is_refused(study, tmp_path):
    changes = custom("talks.en")
    programs = editing(tmp_path / "bin", "echo 'Good morning .' > talks.en; echo 'Guten Morgen .' > talks.de")
    done = study.run(CUSTOM, changes=changes, programs=[programs])
    assert done.returncode != 0
    messages = done.stdout + done.stderr
    (line,) = {line.strip() for line in messages.splitlines() if "docmt: error" in line}
    assert "talks.en: was changed after this run was planned: start the run again" in line
    assert not (study.folder / CUSTOM).exists()
    done = study.run(CUSTOM, changes=changes)
    assert done.returncode == 0, done.stderr
    assert (study.folder / CUSTOM.replace("documents.tsv", "en")).read_text(encoding="utf-8") == "Good morning .\n"


@pytest.mark.slow
@pytest.mark.parametrize(("site", "program"), [("container", "apptainer"), ("lumi", "singularity")])
def test_container_reads_the_study_configuration(site, program, study, tmp_path):
    # The image has another PATH and its own docmt, and gets the other variables of the job.
    engine = editing(
        tmp_path / "bin", f"until [[ $1 == docmt ]]; do shift; done; shift\necho $1 $2 $DOCMT_RUN >> {tmp_path}/calls"
    )
    (engine / "docmt").rename(engine / program)
    fewer = {"corpora": {"controlled": {"smoke": {"n_train_documents": 7}}}}
    done = study.run(TARGET, changes=fewer, programs=[ROOT / "slurm" / site, engine])
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls == [f"{words} {run_file(study)}" for words in ("controlled generate", "corpora combine")]
    index = (study.folder / TARGET).read_text(encoding="utf-8")
    assert "train-000006" in index
    assert "train-000007" not in index


@pytest.mark.slow
def test_jobs_read_the_run_file(study):
    changes = custom("talks.en") | {"decoding": {"beam_size": 3}}
    done = study.run(TARGET, changes=changes)
    assert done.returncode == 0, done.stderr
    path = run_file(study)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["decoding"]["beam_size"] == 3
    assert list(content["systems"]) == list(read_config_file(study.folder / "study.yaml")["systems"])
    # Neither a broken configuration nor a missing file, which this job does not read, matters to a job of this run.
    (study.folder / "study.yaml").write_text("systems: [", encoding="utf-8")
    (study.folder / "talks.en").unlink()
    combine = {"dataset": "smoke", "src": "en", "tgt": "de", "split": "train"}
    done = run_job(study, "corpora_combine", combine, config=path)
    assert done.returncode == 0, done.stderr
    # The job that reads the file refuses another one.
    (study.folder / "talks.en").write_text("Good morning .\n", encoding="utf-8")
    done = run_job(study, "corpora_read", {"corpus": "talks", "src": "en", "tgt": "de", "split": "all"}, config=path)
    assert done.returncode != 0
    assert "talks.en: was changed after this run was planned" in done.stdout + done.stderr


@pytest.mark.slow
def test_commands_refuse_another_docmt(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"docmt_run": {"version": "99.0", "files": {}}}', encoding="utf-8")
    environment = dict(os.environ) | {"DOCMT_RUN": str(path)}
    done = warm.run("docmt", ["config", "presets"], environment=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("docmt: error: docmt ")
    done = warm.run("docmt", ["config", "presets"], environment=environment | {"DOCMT_RUN": str(tmp_path / "gone")})
    assert done.returncode == 2
    assert "gone: cannot be read (" in done.stderr
