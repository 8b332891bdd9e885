"""Old numbers never pass for new ones: what docmt recorded beside its results decides, not what Snakemake remembers."""

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest
from studies import Study, read_jobs
from test_workflow_reruns import NEW_SYSTEM, REPORT, of_rst, of_run, planned

from docmt.checksums import FINGERPRINT_VARIABLE, record_of, recorded_fingerprint
from docmt.files import write_lines

FASTER = {"systems": {"document_transformer": {"training": {"learning_rate": 2.0e-3}}}}


def copy(study, folder):
    """A copy whose files are all new, as `cp -r` and `scp` make it."""
    shutil.copytree(study.folder, folder, copy_function=shutil.copyfile)
    return Study(folder)


@pytest.mark.parametrize("has_snakemake", [True, False])
def test_a_copy_with_new_times_is_up_to_date(has_snakemake, finished, tmp_path):
    copied = copy(finished, tmp_path / "copy")
    if not has_snakemake:
        shutil.rmtree(copied.folder / ".snakemake")
    assert copied.jobs() == set()
    assert copied.jobs(FASTER) == of_run("document_transformer") | REPORT


def replace_by_copy(source, file):
    """Put a copy with a new time in the place of a file, as `scp` into a folder without it makes it."""
    shutil.copyfile(source, f"{file}.copy")
    os.replace(f"{file}.copy", file)


MODEL = "results/controlled/runs/document_transformer/seed1/model.pt"


@pytest.mark.parametrize("is_copy", [False, True])
def test_one_file_with_its_record_from_elsewhere_reruns_what_reads_it(is_copy, finished, tmp_path):
    """In a study that was made here, and in a copy whose times were restored: only the weights are others."""
    if is_copy:
        study = copy(finished, tmp_path / "study")
        assert study.jobs() == set()
    else:  # the folder itself: all files are where they were made
        study = finished
    model = study.folder / MODEL
    kept = [(path, path.read_bytes(), os.stat(path)) for path in (model, record_of(model))]
    elsewhere = tmp_path / "model.pt"
    elsewhere.write_bytes(model.read_bytes() + b"other")
    digest = hashlib.sha256(elsewhere.read_bytes()).hexdigest()
    try:
        replace_by_copy(elsewhere, model)
        record = record_of(model).read_text()
        record_of(model).write_text(digest + record[64:])
        expected = of_run("document_transformer") - {"train document_transformer"}
        assert study.jobs() == expected | REPORT
    finally:
        for path, content, found in kept:
            path.write_bytes(content)
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_a_touched_file_keeps_its_time(finished, tmp_path, monkeypatch):
    copied = copy(finished, tmp_path / "copy")
    monkeypatch.chdir(copied.folder)
    copied.plan().restore_times()
    os.utime(MODEL, ns=(2 * 10**18, 2 * 10**18))
    copied.plan().restore_times()
    assert os.stat(MODEL).st_mtime_ns == 2 * 10**18


def test_a_changed_file_in_a_copy_reruns_what_reads_it(finished, tmp_path):
    copied = copy(finished, tmp_path / "copy")
    file = copied.folder / "results/controlled/runs/document_transformer/seed1/decoding/test_controlled.jsonl"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert copied.jobs() == {"evaluate_translation document_transformer test_controlled"} | REPORT


@pytest.fixture
def copied(study):
    """A finished study as someone copies it who forgets `.snakemake`."""
    shutil.rmtree(study.folder / ".snakemake")
    return study


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"systems": {"concatenation": NEW_SYSTEM}}, of_run("concatenation") | REPORT),
        ({"systems": {"rst_mix": {"training": {"drop_rst": 0.3}}}}, of_rst() | REPORT),
        ({"report": {"title": "Another"}}, {"render", "render_reader"}),
    ],
    ids=["new system", "dropped trees", "title"],
)
def test_a_copy_without_the_records_of_snakemake_reruns_what_a_change_affects(changes, expected, copied):
    assert copied.jobs(changes) == expected


def test_a_dry_run_gives_the_settings_before_and_now_as_the_reason(finished):
    done = finished.run("--dry-run", changes={"decoding": {"beam_size": 7}})
    messages = done.stdout + done.stderr
    reasons = re.findall(r"^rule (\w+):$.*?^    reason: (.*)$", messages, re.MULTILINE | re.DOTALL)
    translating, *_ = (reason for rule, reason in reasons if rule == "translate")
    assert re.search(r'before: .*"beam_size": 2,.* now: .*"beam_size": 7,', translating)
    assert "Forced execution" not in messages
    assert "--cleanup-metadata" not in messages, "advice that would not help"


def test_the_reason_without_the_records_of_snakemake_is_docmts_record(copied):
    done = copied.run("--dry-run", changes={"decoding": {"beam_size": 7}})
    assert "by docmt's record, its data, its settings" in done.stdout + done.stderr


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


def test_files_of_the_user_in_a_copy_count_by_content(own, tmp_path):
    target, changes = TARGET, custom("talks.en")
    for folder, has_snakemake in (("a", True), ("b", False)):
        copied = copy(own, tmp_path / folder)
        if not has_snakemake:
            shutil.rmtree(copied.folder / ".snakemake")
        done = copied.run("--dry-run", target, changes=changes)
        assert "Nothing to be done" in done.stdout + done.stderr
        (copied.folder / "talks.en").write_text("Goodbye .\n", encoding="utf-8")
        done = copied.run("--dry-run", target, changes=changes)
        rules = {job.split()[0] for job in read_jobs(done.stdout + done.stderr)}
        assert rules == {"read_corpus", "combine_corpora"}


def test_the_mark_of_a_fetched_corpus_is_as_old_as_what_was_read_from_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = {"train": ["bible-ende/train"], "dev": ["controlled/dev"], "test": {"controlled": ["controlled/test"]}}
    plan = Study(tmp_path).plan({"datasets": {"controlled": row | {"suites": []}}})
    (mark,) = (made for made in plan.artifacts.all_made if made.rules == ("fetch_corpus",))
    (read,) = (made for made in plan.artifacts.all_made if mark in made.sources())
    monkeypatch.setenv(FINGERPRINT_VARIABLE, read.fingerprint)
    for file in read.files:
        write_lines(Path(file), ["text"])
    made = {file: os.stat(file).st_mtime_ns for file in read.files}
    Path(mark.file).parent.mkdir(parents=True)
    Path(mark.file).touch()
    for file in read.files:
        replace_by_copy(file, file)
    plan.restore_times()
    assert {file: os.stat(file).st_mtime_ns for file in read.files} == made
    assert os.stat(mark.file).st_mtime_ns == min(made.values())
    os.utime(mark.file)
    with monkeypatch.context() as context:  # another user's file
        context.setattr(os, "utime", lambda *_, **__: (_ for _ in ()).throw(PermissionError))
        plan.restore_times()

    os.utime(mark.file)  # newer than results of other settings: they are made again anyway, and it stays
    newer = os.stat(mark.file).st_mtime_ns
    record = record_of(Path(read.files[0]))
    record.write_text(record.read_text().replace(read.fingerprint, "0" * 12))
    plan.restore_times()
    assert os.stat(mark.file).st_mtime_ns == newer
