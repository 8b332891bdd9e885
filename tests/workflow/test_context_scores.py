"""CXMI in a study: a job per run and test, with trees if the system reads them."""

import re

import pytest
from smoke_study import StudyView
from studies import Study, read_jobs, snakemake

METRICS = ["s-BLEU", "d-BLEU (instances)", "chrF", "CXMI"]
GIVEN = {"hypotheses": {"smoke/smoke": "given.de"}}


@pytest.mark.slow
def test_study_measures_use_of_context(tmp_path):
    study = Study(tmp_path)
    (tmp_path / "given.de").touch()
    config = study.config({"evaluation": {"metrics": METRICS}, "systems": {"given": GIVEN}})
    done = snakemake(tmp_path, "--dry-run", "--printshellcmds", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    measured = {job for job in read_jobs(done.stdout + done.stderr) if job.startswith("evaluate_cxmi")}
    runs = StudyView(study.plan().config).scored
    parts = ("suite_pronoun", "test_smoke")
    assert measured == {f"evaluate_cxmi {run.system} {part}" for run in runs for part in parts}
    commands = re.findall(r"docmt evaluate cxmi .*", done.stdout + done.stderr)
    assert len(commands) == len(measured)
    folder = "results/smoke/runs/rst_mix/seed1"
    (suite,) = [line for line in commands if f"{folder}/scores/cxmi_suite_pronoun.json" in line]
    assert "--texts  --suite results/corpora/smoke/en-de/suites/pronoun.jsonl" in suite
    assert "--discourse results/" in suite
    (test,) = [line for line in commands if f"{folder}/scores/cxmi_test_smoke.json" in line]
    text = "results/smoke/corpora/en-de/test_smoke"
    assert f"--texts {text}.en {text}.de {text}.documents.tsv --suite  --src-lang en --tgt-lang de" in test
    assert "--discourse results/" in test
    alone = [line for line in commands if "/sentence_transformer/" in line]
    assert not any("--discourse" in line for line in alone)
    (gather,) = re.findall(r"docmt report collect .*--out results/report/scores\.csv", done.stdout + done.stderr)
    assert f"{folder}/scores/cxmi_suite_pronoun.json" in gather
