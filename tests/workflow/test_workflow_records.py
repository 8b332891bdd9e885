"""Old numbers never pass for new ones: what docmt recorded beside its results decides, not what Snakemake remembers."""

import os
import shutil

import pytest
from conftest import Study
from test_workflow_reruns import NEW_SYSTEM, REPORT, of_rst, of_run, planned

from docmt.checksums import record_of, recorded_fingerprint

FASTER = {"systems": {"document_transformer": {"training": {"learning_rate": 2.0e-3}}}}


@pytest.fixture
def copied(study):
    """A finished study as someone copies it who forgets `.snakemake`."""
    shutil.rmtree(study.folder / ".snakemake")
    return study


def test_a_copy_without_the_records_of_snakemake_is_up_to_date(copied):
    assert copied.jobs() == set()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (FASTER, of_run("document_transformer") | REPORT),
        ({"systems": {"concatenation": NEW_SYSTEM}}, of_run("concatenation") | REPORT),
        ({"systems": {"rst_mix": {"training": {"drop_rst": 0.3}}}}, of_rst() | REPORT),
        ({"report": {"title": "Another"}}, {"render", "render_reader"}),
    ],
    ids=["learning rate", "new system", "dropped trees", "title"],
)
def test_a_copy_without_the_records_of_snakemake_reruns_what_a_change_affects(changes, expected, copied):
    assert copied.jobs(changes) == expected


def test_what_nobody_recorded_is_made_again_and_named(copied):
    file = copied.folder / "results/controlled/runs/document_transformer/seed1/decoding/test_controlled.jsonl"
    record_of(file).unlink()
    done = copied.run("--dry-run")
    messages = done.stdout + done.stderr
    assert "Neither docmt nor Snakemake recorded what 1 file(s) were made from" in messages
    assert "document_transformer/seed1/decoding/test_controlled.jsonl: they are made again" in messages
    assert copied.jobs() == of_run("document_transformer", "translate", "evaluate_translation") | REPORT


def test_results_of_an_older_study_in_place_of_its_own_are_made_again(study):
    """A backup with its records: consistent in itself, and newer than what Snakemake remembers."""
    file = study.folder / "results/controlled/runs/document_transformer/seed1/model.pt"
    record = record_of(file)
    record.write_text(record.read_text().replace(recorded_fingerprint(file), "0" * 12))
    assert study.jobs() == of_run("document_transformer") | REPORT


def test_touching_does_not_make_old_numbers_new(study):
    touched = study.run("--touch", changes=FASTER)
    assert touched.returncode == 0, touched.stderr
    assert study.jobs(FASTER) == of_run("document_transformer") | REPORT
    kept = study.run("--rerun-triggers", "mtime", "--forcerun", "gather", changes=FASTER)
    assert kept.returncode != 0
    messages = kept.stdout + kept.stderr
    assert "system document_transformer, seed 1, test controlled: made with other settings or data" in messages
    assert planned(study, "document_transformer") in messages


def custom(path):
    """A study on files of the user's."""
    described = {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {"all": {"files": {"en": path, "de": "talks.de"}}},
    }
    return {
        "corpora": {"custom": {"talks": described}},
        "datasets": {"controlled": {"train": ["controlled/train", "talks/all"]}},
    }


TARGET = "results/controlled/corpora/en-de/train.documents.tsv"


@pytest.fixture
def own(tmp_path):
    """A study that has read the user's files."""
    (tmp_path / "talks.en").write_text("Hello .\n", encoding="utf-8")
    (tmp_path / "talks.de").write_text("Hallo .\n", encoding="utf-8")
    study = Study(tmp_path)
    done = study.run(TARGET, changes=custom("talks.en"))
    assert done.returncode == 0, done.stderr
    return study


def test_a_file_of_the_user_that_is_missing_is_an_error_although_its_results_exist(own):
    done = own.run(TARGET, changes=custom("talk.en"))
    assert done.returncode != 0
    where = "config.corpora.custom.talks.splits.all.files.en"
    assert f"{where}: talk.en: no such file (paths are relative to" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_the_user_replaced_by_an_older_one_is_read_again(own):
    file = own.folder / "talks.en"
    older = own.folder / "older"
    older.write_text("Goodbye .\n", encoding="utf-8")
    os.utime(older, (10**9, 10**9))
    older.rename(file)
    done = own.run(TARGET, changes=custom("talks.en"))
    assert done.returncode == 0, done.stderr
    assert (own.folder / TARGET.replace("documents.tsv", "en")).read_text(encoding="utf-8").endswith("Goodbye .\n")


def test_a_file_of_the_user_that_is_only_newer_changes_no_fingerprint(own, monkeypatch):
    monkeypatch.chdir(own.folder)
    before = own.plan(custom("talks.en")).artifacts.dataset_split("controlled", "train").fingerprint
    os.utime(own.folder / "talks.en")
    assert own.plan(custom("talks.en")).artifacts.dataset_split("controlled", "train").fingerprint == before
