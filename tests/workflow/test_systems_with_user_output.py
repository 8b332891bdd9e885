"""A study that scores systems from other programs, from their files to the report."""

import csv
import json
import re
import sys

import pytest
import yaml
from smoke_study import StudyView
from studies import read_jobs, snakemake

from docmt.config.loading import load_config
from docmt.errors import UserError

GENERATED = {
    "generator": "flat",
    "n_train_documents": 20,
    "n_dev_documents": 2,
    "n_test_documents": 4,
    "n_suite_items": 12,
}
STUDY = {
    "corpora": {"controlled": {"made": GENERATED}},
    "text": {"bpe_merges": 20},
    "report": {"baseline": "one"},
    "evaluation": {"comet": {"program": "own/comet-score", "checkpoint": "own/model.ckpt"}},
    "datasets": {
        "made": {
            "src_lang": "en",
            "tgt_lang": "de",
            "train": ["made/train"],
            "dev": ["made/dev"],
            "test": {"test": ["made/test"], "dev": ["made/dev"]},
            "references": {"test": ["own/second.de"]},
            "suites": ["made/pronoun"],
        }
    },
    "systems": {
        "one": {"hypotheses": {"made/test": "own/one.de", "made/dev": "own/dev.de"}},
        "two": {"hypotheses": {"made/test": "own/two.de"}, "log_probabilities": {"made/pronoun": "own/two.scores"}},
    },
}
TEXT = "results/made/corpora/en-de"
COMET = f"""#!{sys.executable}
import json, sys
n = len(open(sys.argv[2]).readlines())
json.dump([{{"COMET": 0.5}}] * n, open(sys.argv[sys.argv.index("--to_json") + 1], "w"))
"""


def read_rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"hypotheses": {"made/tset": "a"}}, "no test set 'made/tset'; did you mean 'made/test'?"),
        ({"log_probabilities": {"made/test": "a"}}, "no suite 'made/test'"),
        (
            {"hypotheses": {"made/test": "a"}, "recipe": "b"},
            "has no other keys: remove recipe",
        ),
        ({"hypotheses": {"made/test": "a{b}"}}, "three.hypotheses.made/test: 'a{b}': a path must not contain braces"),
        ({"use_model_of": "one", "instances": "c"}, "no instances 'c'"),
        ({"seeds": [1]}, "instances is missing"),
    ],
)
def test_mistakes_are_named(row, words):
    with pytest.raises(UserError) as caught:
        load_config(STUDY | {"systems": STUDY["systems"] | {"three": row}})
    assert words in str(caught.value)


def test_user_output_claims_nothing_else():
    cases = {"title": "c", "system": "one", "baseline": "two", "test": "made/dev"}
    with pytest.raises(UserError, match="'two' has no output for 'made/dev'"):
        load_config(STUDY | {"report": {"cases": {"c": cases}}})
    taken = {"x": {"use_model_of": "one", "instances": "c"}}
    with pytest.raises(UserError, match="'one' is an external system without a model"):
        load_config(STUDY | {"instances": {"c": {}}, "systems": STUDY["systems"] | taken})


@pytest.mark.slow
def test_hypotheses_files_need_no_training(tmp_path):
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    missing = snakemake(tmp_path, "--dry-run", config=config)
    assert missing.returncode
    assert re.search(r"config\.\S+: own/\S+: no such file", missing.stdout + missing.stderr)
    named = {file.where: file.file for file in StudyView(load_config(STUDY)).user_files()}
    assert named["config.systems.one.hypotheses.made/test"] == "own/one.de"
    assert named["config.systems.two.log_probabilities.made/pronoun"] == "own/two.scores"
    folder = tmp_path / "own"
    folder.mkdir()
    for name in ("one.de", "two.de", "dev.de", "two.scores", "second.de", "model.ckpt"):
        (folder / name).write_text("", encoding="utf-8")
    (folder / "comet-score").write_text(COMET, encoding="utf-8")
    (folder / "comet-score").chmod(0o755)
    texts = [f"{TEXT}/test_{test}.documents.tsv" for test in ("test", "dev")]
    preparation = snakemake(tmp_path, "--cores", "1", *texts, config=config)
    assert preparation.returncode == 0, preparation.stderr
    reference = (tmp_path / f"{TEXT}/test_test.de").read_text(encoding="utf-8").splitlines()
    (folder / "one.de").write_text("".join(f"{line}\n" for line in reference), encoding="utf-8")
    index = (tmp_path / f"{TEXT}/test_test.documents.tsv").read_text(encoding="utf-8").splitlines()[1:]
    (folder / "two.de").write_text("Ein Satz .\n" * len(index), encoding="utf-8")
    (folder / "dev.de").write_bytes((tmp_path / f"{TEXT}/test_dev.de").read_bytes())
    (folder / "second.de").write_text("Noch ein Satz .\n" * len(reference), encoding="utf-8")
    (folder / "two.scores").write_text("-1 -2\n" * 12, encoding="utf-8")
    planned = {job.split()[0] for job in read_jobs(snakemake(tmp_path, "--dry-run", config=config).stdout)}
    assert planned >= {"import_output", "evaluate_run", "report_reader"}
    assert not planned & {"train", "translate", "score_candidates", "instances_build"}
    done = snakemake(tmp_path, "--cores", "2", "--show-failed-logs", config=config)
    assert done.returncode == 0, done.stderr[-5000:]
    report = tmp_path / "results/report"
    scores = {(row["system"], row["test"], row["metric"]): row for row in read_rows(report / "scores.csv")}
    assert float(scores["one", "test", "s-BLEU"]["value"]) == pytest.approx(100)
    assert float(scores["one", "dev", "s-BLEU"]["value"]) == pytest.approx(100)
    assert scores["one", "test", "s-BLEU"]["signature"].startswith("nrefs:2|")
    assert scores["one", "dev", "s-BLEU"]["signature"].startswith("nrefs:1|")
    assert float(scores["one", "test", "COMET"]["value"]) == 50
    assert ("two", "test", "COMET") not in scores
    assert ("two", "test", "s-BLEU") not in scores, "a line for each document is not aligned by sentences"
    assert float(scores["two", "test", "d-BLEU (documents)"]["value"]) < 5
    assert ("two", "dev", "d-BLEU (documents)") not in scores
    assert 0 <= float(scores["two", "pronoun", "contrastive accuracy"]["value"]) <= 100
    against = json.loads((tmp_path / "results/made/runs/two/against/one.json").read_text(encoding="utf-8"))
    assert {row["metric"] for row in against["differences"] if row["test"] == "test"} == {
        "d-BLEU (instances)",
        "d-BLEU (documents)",
        "d-chrF (documents)",
    }
    assert (report / "reader.html").stat().st_size > 1000
    assert "two" in (report / "report.html").read_text(encoding="utf-8")
    (folder / "two.de").write_text("Ein Satz .\n" * 2, encoding="utf-8")
    wrong = snakemake(tmp_path, "--cores", "1", "--show-failed-logs", config=config)
    assert wrong.returncode
    assert (
        f"own/two.de: 2 lines, but the test set has {len(reference)} sentences in {len(index)} documents"
        in wrong.stderr
    )
