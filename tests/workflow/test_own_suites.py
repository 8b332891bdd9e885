"""User-supplied suites in all formats, and context scores, from the config to the report."""

import base64
import csv
import gzip
import json
import re
import shutil
import subprocess

import pytest
from own_suites import CONTRASTIVE, GENERATIVE
from studies import Study, clean_environment, snakemake
from test_workflow_imports import ALLOWED, TEXT, TORCH, read_imports, too_many

from docmt.files import read_json

pytestmark = pytest.mark.slow

SYSTEMS = ("g_transformer", "greedy")
CALLS = re.compile(r"^Shell command: (?:exec )?(docmt (\w+) ([a-z]\S+) .*)", re.MULTILINE)

ALLOWED_WITH_SUITES = {
    "corpora convert-suite": set(),
    "decode translate-suite": TORCH | TEXT,
    "evaluate cxmi": TORCH | TEXT,
    "evaluate run": {"numpy", "sacrebleu", "lxml"} | TEXT,
    "evaluate difference": {"numpy", "sacrebleu", "lxml", "scipy"} | TEXT,
}
"""Slow libraries that commands may import if only this study runs them."""


@pytest.fixture(scope="module")
def scores(suites):
    """All rows in the table of scores."""
    with open(suites.folder / "results/report/scores.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_own_suites_reach_the_report(suites, scores):
    rows = [row for row in scores if row["metric"].endswith("accuracy") and not row["kind"]]
    tested = {(row["metric"], row["test"]) for row in rows}
    assert tested == {("contrastive accuracy", name) for name in CONTRASTIVE} | {
        ("generative accuracy", name) for name in GENERATIVE
    }
    signatures = {row["signature"].split("|interval")[0] for row in rows if row["metric"].startswith("contrastive")}
    assert signatures == {
        "the right candidate is the first of those that score highest|score:log probability of the whole target with "
        "label smoothing 0.1|target context:the system's own"
    }
    tables = {file.stem: file.read_text(encoding="utf-8") for file in suites.folder.glob("results/report/tables/*.csv")}
    assert "greedy" in tables["generative"]
    assert "gender" in tables["generative"]
    compared = read_json(suites.folder / "results/smoke/runs/greedy/against/g_transformer.json")["differences"]
    assert {(row["metric"], row["test"]) for row in compared} >= tested


def test_what_context_adds_is_measured(scores):
    cxmi = {(row["system"], row["test"]): float(row["value"]) for row in scores if row["metric"] == "CXMI"}
    assert set(cxmi) == {(system, test) for system in SYSTEMS for test in ("smoke", *CONTRASTIVE)}
    assert all(cxmi.values()), "it reads context, so context changes something"
    assert {test: value for (system, test), value in cxmi.items() if system == "greedy"} == pytest.approx(
        {test: value for (system, test), value in cxmi.items() if system == "g_transformer"}
    ), "the search plays no part"


def test_the_reader_has_the_items_of_all_suites(suites):
    page = (suites.folder / "results/report/reader.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    parts = {part["name"]: part["items"] for part in json.loads(gzip.decompress(base64.b64decode(packed)))["suites"]}
    assert list(parts) == [f"smoke/{name}" for name in (*CONTRASTIVE, *GENERATIVE)]
    for name in GENERATIVE:
        (item,) = parts[f"smoke/{name}"]
        assert item["expected"] == "er"
        assert list(item["runs"]) == ["0", "1"]
        for run in item["runs"].values():
            assert run["right"] == (len(run["payload"]) == 3)


def test_commands_of_suites_import_only_what_they_need(suites, tmp_path):
    """The commands run again in a copy, because the study comes from a process with all imports."""
    copied = Study(shutil.copytree(suites.folder, tmp_path / "study"))
    copied.imports.mkdir()
    options = ("--forceall", "--dry-run", "--printshellcmds", "results/report/report.html")
    planned = snakemake(copied.folder, *options, config=copied.folder / "study.yaml")
    calls = {f"{group} {name}": call for call, group, name in CALLS.findall(planned.stdout)}
    assert set(calls) - set(ALLOWED) <= set(ALLOWED_WITH_SUITES) <= set(calls)
    for name in ALLOWED_WITH_SUITES:
        environment = clean_environment(copied.imports)
        subprocess.run(["bash", "-euc", calls[name]], cwd=copied.folder, env=environment, check=True)
    modules = read_imports(copied)
    assert set(modules) == set(ALLOWED_WITH_SUITES)
    assert too_many(modules, ALLOWED_WITH_SUITES) == {}
