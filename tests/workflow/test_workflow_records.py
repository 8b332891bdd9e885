"""Outdated results are never used as new ones, and a copy of a study is equivalent to the study."""

import os
import random
import re
import shutil

import pytest
from smoke_study import StudyView
from studies import SMOKE, Study
from test_workflow_reruns import REPORT, of_run, planned

from docmt.config.loading import read_config_file
from docmt.snakemake_records import RECORDS, record_path

FASTER = {"systems": {"document_transformer": {"training": {"learning_rate": 2.0e-3}}}}
MODEL = "results/smoke/runs/document_transformer/seed1/model.pt"
TRANSLATIONS = "results/smoke/runs/document_transformer/seed1/decoding/test_smoke.jsonl"


def copy(study, folder):
    """A copy with new file times, as after `cp -r` and `scp`."""
    shutil.copytree(study.folder, folder, copy_function=shutil.copyfile)
    return Study(folder)


@pytest.fixture
def copied(finished, tmp_path):
    return copy(finished, tmp_path / "copy")


@pytest.mark.slow
def test_copy_in_any_order_is_up_to_date(copied):
    chance = random.Random(1)
    for file in sorted(copied.folder.rglob("*")):
        seconds = chance.randrange(10**9, 17 * 10**8)
        os.utime(file, (seconds, seconds))
    assert copied.jobs() == set()
    assert copied.jobs(FASTER) == of_run("document_transformer") | REPORT


@pytest.mark.parametrize(
    ("file", "job"),
    [(MODEL, "train document_transformer"), (TRANSLATIONS, "translate document_transformer test_smoke")],
)
def test_exchanged_result_reruns_its_readers(file, job, copied):
    with open(copied.folder / file, "ab") as opened:
        opened.write(b"\n")
    rules = ("train", "translate", "score_candidates", "evaluate_run")
    if file == TRANSLATIONS:
        rules = ("translate", "evaluate_run")
    assert copied.jobs() == of_run("document_transformer", *rules) - {job} | REPORT


@pytest.mark.slow
def test_lost_records_are_refused(study, finished):
    shutil.rmtree(study.folder / ".snakemake")
    for arguments in ((), ("--dry-run",)):
        done = study.run(*arguments)
        assert done.returncode != 0
        messages = done.stdout + done.stderr
        (message,) = (line for line in messages.splitlines() if "Snakemake records" in line)
        assert re.search(rf"{study.folder}: (\d+) of \1 results have no readable Snakemake records", message)
        assert "cp -a" in message
        assert "the options `--touch --forceall` of `docmt run`" in message
        assert "Traceback" not in messages
    # The second way: these settings made the results, which Snakemake then records.
    touched = study.run("all", "--touch", "--forceall")
    assert touched.returncode == 0, touched.stderr
    assert study.jobs() == set()
    assert study.jobs(FASTER) == of_run("document_transformer") | REPORT
    # The first way.
    shutil.rmtree(study.folder)
    shutil.copytree(finished.folder, study.folder)
    assert study.jobs() == set()


def test_lost_record_never_hides_a_changed_setting(copied):
    """The old model would be translated and scored as if it had the new learning rate."""
    before = (copied.folder / MODEL).read_bytes()
    record = copied.folder / record_path(RECORDS, MODEL)
    content = record.read_bytes()
    record.write_bytes(b"")
    for arguments in (("--dry-run",), ()):
        done = copied.run(*arguments, changes=FASTER)
        assert done.returncode != 0
        messages = done.stdout + done.stderr
        (message,) = (line for line in messages.splitlines() if "Snakemake records" in line)
        assert re.search(rf"{copied.folder}: 1 of \d+ results .*: {MODEL}\. Restore", message)
        assert "Job stats" not in messages
    assert (copied.folder / MODEL).read_bytes() == before
    record.write_bytes(content)
    assert copied.jobs(FASTER) == of_run("document_transformer") | REPORT
    record.unlink()
    (copied.folder / MODEL).unlink()  # the user's decision
    assert copied.jobs(FASTER) == of_run("document_transformer") | REPORT


@pytest.mark.slow
def test_models_that_a_run_replaces_are_named_first(copied):
    done = copied.run("--dry-run", changes=FASTER)
    lines = (done.stdout + done.stderr).splitlines()
    (number,) = (number for number, line in enumerate(lines) if line.startswith("docmt: this run"))
    expected = "docmt: this run replaces 1 existing model: smoke/document_transformer seed 1 (6 updates)"
    assert lines[number] == expected
    assert lines.index("Job stats:") > number
    done = copied.run("--dry-run", "results/smoke/text/vocabulary.txt", changes=FASTER)
    assert "docmt: this run" not in done.stdout + done.stderr


@pytest.mark.slow
def test_remade_base_model_leaves_finetunings_alone(copied):
    """Its training resumes, and the file is the same."""
    base = "results/smoke/runs/sentence_transformer/seed1/model.pt"
    tuned = "results/smoke/runs/g_transformer_finetuned/seed1/model.pt"
    before = {path: (copied.folder / path).read_bytes() for path in (base, tuned)}
    (copied.folder / base).unlink()
    done = copied.run("training")
    assert done.returncode == 0, done.stderr
    assert {path: (copied.folder / path).read_bytes() for path in before} == before
    logs = [copied.folder / f"logs/train/smoke/{path.split('/')[3]}/seed1.log" for path in before]
    assert all("resumed after update 6" in log.read_text(encoding="utf-8") for log in logs)
    assert copied.jobs() == set()


def test_renamed_system_is_named_with_its_model(copied):
    changes = {"systems": {"renamed": read_config_file(SMOKE)["systems"]["document_transformer"]}}
    done = copied.run("--dry-run", "results/smoke/runs/renamed/scores.csv", changes=changes)
    messages = done.stdout + done.stderr
    assert f"docmt: this run trains models again that exist under another name: smoke/renamed seed 1 as {MODEL}" in (
        messages.splitlines()
    )


@pytest.mark.slow
def test_touched_model_of_other_settings_is_refused(copied):
    """`--touch` and a changed beam size. The record contains the new settings, and the model the old ones."""
    assert copied.run("--touch", changes=FASTER).returncode == 0
    done = copied.run(TRANSLATIONS, changes=FASTER | {"decoding": {"beam_size": 3}})
    assert done.returncode != 0
    assert f"{MODEL}: was trained with other settings or data (fingerprint " in done.stdout + done.stderr


def test_dry_run_shows_both_settings(finished):
    done = finished.run("--dry-run", changes={"decoding": {"beam_size": 7}})
    messages = done.stdout + done.stderr
    reasons = re.findall(r"^rule (\w+):$.*?^    reason: (.*)$", messages, re.MULTILINE | re.DOTALL)
    translating, *_ = (reason for rule, reason in reasons if rule == "translate")
    assert re.search(r'before: .*"beam_size": 2,.* now: .*"beam_size": 7,', translating)


@pytest.mark.slow
def test_tables_refuse_scores_of_other_settings(study):
    """`--touch` makes Snakemake accept old results as new ones, but fingerprints in the scores are still old."""
    touched = study.run("--touch", changes=FASTER)
    assert touched.returncode == 0, touched.stderr
    process = study.run("--forcerun", "report_collect", changes=FASTER)
    assert process.returncode != 0
    messages = process.stdout + process.stderr
    assert "system document_transformer, seed 1, test smoke: their fingerprint" in messages
    assert planned(study, "document_transformer") in messages


@pytest.mark.slow
def test_tables_refuse_paired_tests_of_other_settings(study):
    changes = {"systems": {"g_transformer_finetuned": {"decoding": {"beam_size": 3}}}}
    assert study.run("--touch", changes=changes).returncode == 0
    process = study.run("--forcerun", "evaluate_run", "report_collect", changes=changes)
    assert process.returncode != 0
    messages = process.stdout + process.stderr
    assert "g_transformer_finetuned/against/sentence_transformer.json: its fingerprint does not belong" in messages


def custom(path):
    """A study on user files."""
    described = {
        "languages": ["en", "de"],
        "format": {"reader": "blank_lines"},
        "splits": {"all": {"files": {"en": path, "de": "talks.de"}}},
    }
    return {
        "corpora": {"custom": {"talks": described}},
        "datasets": {"smoke": {"train": ["smoke/train", "talks/all"]}},
    }


TARGET = "results/smoke/corpora/en-de/train.documents.tsv"


@pytest.fixture
def user_study(tmp_path):
    """A study that has read its user files."""
    (tmp_path / "talks.en").write_text("Hello .\n", encoding="utf-8")
    (tmp_path / "talks.de").write_text("Hallo .\n", encoding="utf-8")
    study = Study(tmp_path)
    done = study.run(TARGET, changes=custom("talks.en"))
    assert done.returncode == 0, done.stderr
    return study


@pytest.mark.slow
def test_missing_user_file_is_an_error(user_study):
    done = user_study.run(TARGET, changes=custom("talk.en"))
    assert done.returncode != 0
    where = "config.corpora.custom.talks.splits.all.files.en"
    assert f"{where}: talk.en: no such file (paths are relative to" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_older_user_file_is_read_again(user_study):
    file = user_study.folder / "talks.en"
    older = user_study.folder / "older"
    older.write_text("Goodbye .\n", encoding="utf-8")
    os.utime(older, (10**9, 10**9))
    older.rename(file)
    done = user_study.run(TARGET, changes=custom("talks.en"))
    assert done.returncode == 0, done.stderr
    assert (
        (user_study.folder / TARGET.replace("documents.tsv", "en")).read_text(encoding="utf-8").endswith("Goodbye .\n")
    )


@pytest.mark.slow
def test_newer_user_file_runs_nothing(user_study, monkeypatch):
    monkeypatch.chdir(user_study.folder)
    before = StudyView(user_study.plan(custom("talks.en")).config).dataset_split("smoke", "train").fingerprint
    os.utime(user_study.folder / "talks.en")
    assert StudyView(user_study.plan(custom("talks.en")).config).dataset_split("smoke", "train").fingerprint == before
    done = user_study.run("--dry-run", TARGET, changes=custom("talks.en"))
    assert "Nothing to be done" in done.stdout + done.stderr
