"""Suites in the user's own files, of every format, and scores of context: from the config to the report."""

import base64
import csv
import gzip
import json
import re

import pytest
from own_suites import CONTRASTIVE, GENERATIVE

SYSTEMS = ("g_transformer", "greedy")


@pytest.fixture(scope="module")
def scores(suites):
    """All rows of the table of scores."""
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
    compared = suites.folder / "results/controlled/runs/greedy/against/g_transformer"
    names = {f"generated_{name}.json" for name in GENERATIVE} | {f"suite_{name}.json" for name in CONTRASTIVE}
    assert names <= {file.name for file in compared.iterdir()}


def test_what_context_adds_and_how_consistent_choices_are_is_measured(scores):
    cxmi = {(row["system"], row["test"]): float(row["value"]) for row in scores if row["metric"] == "CXMI"}
    assert set(cxmi) == {(system, test) for system in SYSTEMS for test in ("controlled", *CONTRASTIVE)}
    assert all(cxmi.values()), "it reads context, so context changes something"
    assert {test: value for (system, test), value in cxmi.items() if system == "greedy"} == pytest.approx(
        {test: value for (system, test), value in cxmi.items() if system == "g_transformer"}
    ), "the search plays no part"
    for metric in ("address consistency", "term consistency"):
        rows = [row for row in scores if row["metric"] == metric]
        assert {row["system"] for row in rows} == set(SYSTEMS)
        assert {"", "hypothesis", "reference", "shuffled documents"} >= {row["kind"] for row in rows}
        assert all(row["value"] or "not computed" in row["signature"] for row in rows if row["kind"] == "reference")


def test_the_reader_has_the_items_of_all_suites(suites):
    page = (suites.folder / "results/report/reader.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r'id="data">([A-Za-z0-9+/=]*)</script>', page)
    parts = {part["name"]: part["items"] for part in json.loads(gzip.decompress(base64.b64decode(packed)))["suites"]}
    assert list(parts) == [f"controlled/{name}" for name in (*CONTRASTIVE, *GENERATIVE)]
    for name in GENERATIVE:
        (item,) = parts[f"controlled/{name}"]
        assert item["expected"] == "er"
        assert list(item["runs"]) == ["0", "1"]
        for run in item["runs"].values():
            assert run["right"] == (len(run["payload"]) == 3)
