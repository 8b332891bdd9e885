"""Suites in the user's own files, of every format: from the config to the tables of the report."""

import csv
import json

import pytest
import yaml
from conftest import SMOKE, snakemake

from docmt.config.loading import read_config_file

ITEM = {"id": "a", "phenomenon": "own", "src": ["The dog is here.", "It sleeps."], "distance": 1}
WRONG = [["Der Hund ist da.", "Er schläft."], ["Der Hund ist da.", "Sie schläft."]]
VOITA = {"src": "The dog is here. _eos It sleeps.", "dst": [" _eos ".join(text) for text in WRONG]}
FILES = {
    "own items.jsonl": json.dumps(ITEM | {"candidates": WRONG, "correct": 0}) + "\n",
    "deixis.json": json.dumps([VOITA | {"true_ind": 0, "ctx_dist": 1}]),
    "bawden.json": json.dumps({"1": {"src": ITEM["src"], "trg": [{"correct": WRONG[0], "incorrect": WRONG[1]}]}}),
    "lines.en": "The dog is here. <SEP> It sleeps.\n" * 3,
    "lines.de": "".join(f"Der Hund ist da. <SEP> {pronoun} schläft.\n" for pronoun in ("Er", "Sie", "Es")),
    "expected.jsonl": json.dumps(ITEM | {"expected": "er"}) + "\n",
    "items.json": json.dumps(
        [{"src segment": "It sleeps.", "ref segment": "Er schläft.", "expected": "er", "rule": "NOM.MASC"}]
    ),
    "inputs.txt": "The dog is here.<eos> It sleeps.\n",
}
LINES = {"en": "lines.en", "de": "lines.de"}
SPLITS = {
    "own": ("jsonl_suite", {"items": "own items.jsonl"}),
    "voita": ("voita_suite", {"deixis": "deixis.json"}),
    "bawden": ("bawden_suite", {"anaphora": "bawden.json"}),
    "contrapro": ("contrapro_suite", LINES),
    "own_generative": ("jsonl_generative", {"items": "expected.jsonl"}),
    "ctxpro": ("ctxpro_generative", {"items": "items.json", "inputs": "inputs.txt"}),
    "contrapro_generative": ("contrapro_generative", LINES),
}
CONTRASTIVE = ["own", "voita", "bawden", "contrapro"]
GENERATIVE = [name for name in SPLITS if name not in CONTRASTIVE]


@pytest.fixture
def config(tmp_path):
    """A system of the smoke study, decoded in two ways, on the suites of the user; by other rules than the default."""
    values = read_config_file(SMOKE)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    splits = {}
    for name, (reader, files) in SPLITS.items():
        form = {"reader": reader} | ({"phenomenon": "gender"} if reader == "ctxpro_generative" else {})
        splits[name] = {"files": files, "format": form}
    custom = {"languages": ["en", "de"], "format": {"reader": "files"}, "splits": splits}
    values["corpora"]["custom"] = {"mine": custom}
    values["datasets"]["controlled"]["suites"] = [f"mine/{name}" for name in splits]
    values["systems"] = {
        "sentence_transformer": values["systems"]["sentence_transformer"],
        "greedy": {"cutting": "sentences", "model_of": "sentence_transformer", "decoding": {"beam_size": 1}},
    }
    values["evaluation"]["contrast"] = {"score": "label_smoothed", "context": "own", "ties": "first"}
    values["report"] = {"baseline": "sentence_transformer"}
    values["instances"] = {"sentences": values["instances"]["sentences"]}
    del values["discourse"], values["corpora"]["controlled"]["treebank"]
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    return file


def test_own_suites_reach_the_report(config, tmp_path):
    done = snakemake(tmp_path, "--cores", "2", "--show-failed-logs", "results/report/report.html", config=config)
    assert done.returncode == 0, done.stderr[-5000:]
    with open(next(tmp_path.glob("results/report/**/scores.csv")), encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"].endswith("accuracy") and not row["kind"]]
    tested = {(row["metric"], row["test"]) for row in rows}
    assert tested == {("contrastive accuracy", name) for name in CONTRASTIVE} | {
        ("generative accuracy", name) for name in GENERATIVE
    }
    signatures = {row["signature"].split("|interval")[0] for row in rows if row["metric"].startswith("contrastive")}
    assert signatures == {
        "the right candidate is the first of those that score highest|score:log probability of the whole target with "
        "label smoothing 0.1|target context:the system's own"
    }
    tables = {file.stem: file.read_text(encoding="utf-8") for file in tmp_path.glob("results/report/tables/*.csv")}
    assert "greedy" in tables["generative"]
    assert "gender" in tables["generative"]
    compared = tmp_path / "results/controlled/runs/greedy/against/sentence_transformer"
    names = {f"generated_{name}.json" for name in GENERATIVE} | {f"suite_{name}.json" for name in CONTRASTIVE}
    assert names <= {file.name for file in compared.iterdir()}
