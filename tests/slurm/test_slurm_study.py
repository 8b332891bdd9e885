"""A complete study as Slurm jobs has the same results as without Slurm, bit by bit."""

import contextlib
import os
import re
import shutil
import subprocess

import pandas as pd
import pytest
from slurm_fixtures import MODEL, RUN, Study, assert_same_model, environment, slurm, trainers

from docmt.files import read_json
from docmt.models.model_file import load_content

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1800)]

LOCAL = {"corpora_fetch", "instances_count", "report_collect"}


def test_jobs_give_the_same_numbers(cluster, tmp_path):
    here, there = Study(tmp_path / "here"), Study(tmp_path / "there")
    for study in (here, there):
        study.folder.mkdir()
    here.run_here(changes={})
    call = there.run(changes={})
    submitted = re.findall(r"slurm_logs/rule_(\w+)/", call.text)
    assert {"controlled_generate", "train", "translate", "report_render"} <= set(submitted)
    assert "count_overlap" in submitted, "it reads the training text, which has no place where Snakemake runs"
    assert not {*submitted} & {"tokenize", "learn_bpe", "instances_build", "evaluate_run", *LOCAL}
    groups = re.findall(r"slurm_logs/group_([a-z]+)_controlled_([\w.]+)/", call.text)
    assert len([name for name, _ in groups if name == "text"]) == 1
    systems = [rest.removesuffix("_evaluate_run") for name, rest in groups if name == "scores"]
    assert sorted(systems) == ["g_transformer", "sentence_transformer"]
    scores = [pd.read_csv(study.folder / "results/report/scores.csv") for study in (here, there)]
    pd.testing.assert_frame_equal(*scores, check_exact=True)
    decoded = [study.folder / "results/controlled/runs/g_transformer/seed1/decoding" for study in (here, there)]
    assert len({(folder / "test_controlled.jsonl").read_text(encoding="utf-8") for folder in decoded}) == 1
    # Beside the scores stands the checksum of the model file, which holds the time that training took.
    candidates = [read_json(folder / "suite_pronoun.json")["items"] for folder in decoded]
    assert candidates[0] == candidates[1]
    assert_same_model(there, here)


def test_one_gpu_means_one_trainer(study, expected):
    call = study.call(MODEL, options=("--set-resources", "train:gpu=1"))
    requests = slurm("squeue", "--me", "--noheader", "--jobs", call.job(), "--Format", "tres-per-job:60")
    assert requests.strip() == "gres:gpu:1"
    call.wait_for_update(20)
    assert "NumNodes=1 NumCPUs=4 " in slurm("scontrol", "show", "job", call.job())
    assert call.finish() == 0, call.text[-3000:]
    assert len(call.jobs()) == 1
    assert re.search(r"WARNING .*GPU.*CPU", study.training_log()), "the GPU only pretends, and the log says so"
    assert_same_model(study, expected)


def test_two_gpus_mean_two_trainers(study):
    call = study.call(MODEL, options=("--set-resources", "train:gpu=2"))
    requests = slurm("squeue", "--me", "--noheader", "--jobs", call.job(), "--Format", "tres-per-job:60")
    assert requests.strip() == "gres:gpu:2"
    call.wait_for_update(20)
    assert "NumNodes=1 NumCPUs=8 " in slurm("scontrol", "show", "job", call.job())
    ranks = [rank for pid in trainers(study) if (rank := environment(pid).get("LOCAL_RANK")) is not None]
    assert sorted(ranks) == ["0", "1"]
    assert call.finish() == 0, call.text[-3000:]
    assert len(call.jobs()) == 1
    assert "2 × cpu" in study.training_log()


def test_without_gpus_none_is_requested(study, expected):
    call = study.call(MODEL, options=("--set-resources", "train:gpu=0"))
    requests = slurm("squeue", "--me", "--noheader", "--jobs", call.job(), "--Format", "tres-per-job:60")
    assert requests.strip() == "N/A"
    assert call.finish() == 0, call.text[-3000:]
    assert "WARNING" not in study.training_log()
    assert_same_model(study, expected)


SCORES = "results/controlled/runs/sentence_transformer/scores.csv"
TEXT = "results/controlled/corpora/en-de/test_controlled.de"


def settings_of_three_stages(*, rate, beam_size, metric):
    """Settings for a training, a translation, and scores that also read a user-supplied reference."""
    return {
        "training": {"scratch": {"max_steps": 20, "learning_rate": rate}},
        "decoding": {"beam_size": beam_size},
        "evaluation": {"metrics": [metric]},
        "datasets": {"controlled": {"references": {"controlled": ["reference.de"]}}},
    }


def recorded_settings(study):
    """Learning rate and metrics that the jobs recorded, and the metric in the table."""
    rate = load_content(study.folder / MODEL)["provenance"]["settings"]["training"]["learning_rate"]
    scores = read_json(study.folder / RUN / "scores.json")["provenance"]["settings"]["metrics"]
    table = pd.read_csv(study.folder / SCORES)
    return rate, scores, set(table["metric"]) & {"s-BLEU", "chrF"}


def test_edits_during_a_run_wait_for_the_next(study):
    shutil.copy(study.folder / TEXT, study.folder / "reference.de")
    before = settings_of_three_stages(rate=1e-3, beam_size=3, metric="s-BLEU")
    after = settings_of_three_stages(rate=2e-3, beam_size=2, metric="chrF")
    call = study.call(SCORES, changes=before)
    call.job()
    study.config(after)
    beam = r"docmt decode translate .*\"beam_size\": (\d)"
    processes = call.wait_until(lambda: re.findall(beam, command_lines(study)), what="a translation")
    assert set(processes) == {"3"}
    assert call.finish() == 0, call.text[-3000:]
    assert recorded_settings(study) == (1e-3, ["s-BLEU"], {"s-BLEU"})
    # Now the user's file, in a run that makes exactly the changes of the edit.
    call = study.call(SCORES, changes=after)
    call.job()
    with open(study.folder / "reference.de", "r+", encoding="utf-8") as file:
        file.write("Ja")
    assert call.finish() != 0
    assert "reference.de: was changed after this run was planned: start the run again" in call.text
    call = study.run(SCORES, changes=after)
    assert len(call.jobs()) == 1, "only the scores"
    assert recorded_settings(study) == (2e-3, ["chrF"], {"chrF"})


def command_lines(study):
    """Command lines of processes that work in a study."""
    lines = subprocess.run(["pgrep", "-a", "-f", "docmt decode"], capture_output=True, text=True).stdout.splitlines()
    folder = str(study.folder)
    return "\n".join(line for line in lines if working_folder(line.split()[0]) == folder)


def working_folder(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/cwd")
    return None
