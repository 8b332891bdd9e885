"""COMET with a stand-in for its program: input, and use of the scores."""

import json
import sys

import pytest
from evaluation_fixtures import LANGUAGES, REFERENCE, RUN, evaluate, make_hypotheses, write_hypotheses, write_split

from docmt.evaluation.comet import with_context
from docmt.report.costs import read_job_facts

PROGRAM = """#!{python}
import json, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert options["--model"].endswith("checkpoints/model.ckpt"), options
sides = {{key: open(options[flag], encoding="utf-8").read().split("\\n")[:-1] for flag, key in
         (("-s", "src"), ("-t", "mt"), ("-r", "ref"))}}
segments = [dict(zip(sides, row)) | {{"COMET": 0.5 + 0.1 * (row[1] == row[2])}} for row in zip(*sides.values())]
json.dump({{"options": sys.argv[1:], "segments": segments}}, open({seen!r}, "w"))
json.dump({written}, open(options["--to_json"], "w"))
"""


@pytest.fixture
def study(tmp_path):
    write_split(tmp_path, {"a": 4, "b": 2}, en=[f"s{i}" for i in range(6)], de=REFERENCE)
    (tmp_path / "model/checkpoints").mkdir(parents=True)
    (tmp_path / "model/checkpoints/model.ckpt").touch()
    translations = [*REFERENCE[:3], "Ein\u2028Haus .", *REFERENCE[4:]]
    write_hypotheses(tmp_path / "h.jsonl", make_hypotheses(translations))
    return tmp_path


def run(folder, written="{options['-t']: segments}", **settings):
    program = folder / "comet-score"
    program.write_text(PROGRAM.format(python=sys.executable, seen=str(folder / "seen.json"), written=written))
    program.chmod(0o755)
    comet = {"checkpoint": str(folder / "model"), "program": str(program)} | settings
    texts = sorted(folder.glob("test_t.*"))
    text = {"texts": texts, **LANGUAGES, "hypotheses": folder / "h.jsonl"}
    return evaluate("comet", settings={"comet": comet}, **text, **RUN, test="t", out=folder / "o.json")


@pytest.mark.parametrize("written", ["segments", "{options['-t']: segments}"])
def test_the_mean_of_the_scores_becomes_a_row(study, written):
    assert run(study, written) == 0
    (row,) = json.loads((study / "o.json").read_text())["scores"]
    assert row["value"] == pytest.approx(100 * (0.5 + 0.1 * 5 / 6))
    assert (row["metric"], row["n"]) == ("COMET", 6)
    seen = json.loads((study / "seen.json").read_text())
    assert [one["src"] for one in seen["segments"]] == [f"s{i}" for i in range(6)]
    assert seen["segments"][3]["mt"] == "Ein Haus .", "the program would end a line there"
    assert "--enable-context" not in seen["options"]


def test_the_document_variant_puts_source_and_reference_before(study):
    assert run(study, context=2) == 0
    seen = json.loads((study / "seen.json").read_text())
    assert "--enable-context" in seen["options"]
    fourth, fifth = seen["segments"][3], seen["segments"][4]
    assert fourth["src"] == "s1 </s> s2 </s> s3"
    assert fourth["mt"] == f"{REFERENCE[1]} </s> {REFERENCE[2]} </s> Ein Haus ."
    assert fifth["src"] == "s4", "a document begins"


def test_context_ends_at_documents():
    assert with_context(list("abcd"), list("ABCD"), "xxxy", 1) == ["a", "A </s> b", "B </s> c", "d"]
    assert with_context(list("abcd"), list("ABCD"), "xxxy", 0) == list("abcd")


@pytest.mark.parametrize(
    ("written", "settings", "words"),
    [
        ("segments[1:]", {}, "COMET wrote 5 scores for 6 sentences"),
        ("[1, 2]", {}, "unknown form"),
        ("segments", {"checkpoint": "nowhere"}, "nowhere/checkpoints/model.ckpt: no such file"),
        ("segments[0]['nothing']", {}, "COMET failed (exit code 1): KeyError"),
    ],
)
def test_what_is_missing_or_fails_is_one_line(study, capsys, written, settings, words):
    assert run(study, written, **settings) == 2
    assert words in capsys.readouterr().err


def test_without_the_program_the_score_is_missing(study, capsys):
    """As for all metrics, so that a study does not fail after its trainings."""
    assert run(study, program="no-such-program") == 0
    (row,) = json.loads((study / "o.json").read_text())["scores"]
    assert (row["value"], row["n"]) == (None, 0)
    assert row["signature"].startswith("not computed: evaluation.comet.program: 'no-such-program' not found")
    assert "COMET is not computed: evaluation.comet.program" in capsys.readouterr().err


@pytest.mark.parametrize(("gpus", "device"), [(0, "cpu"), (1, "cuda")])
def test_the_device_is_recorded_for_the_costs(study, gpus, device, monkeypatch):
    monkeypatch.setattr("docmt.models.gpus.NVML", "libmissing.so")
    assert run(study, gpus=gpus) == 0
    provenance = json.loads((study / "o.json").read_text())["provenance"]
    assert (provenance["device"], provenance["n_devices"]) == (device, 1)
    assert read_job_facts(study / "o.json").device == device


def test_systems_without_sentence_alignment_have_no_row(study):
    write_hypotheses(study / "h.jsonl", make_hypotheses([["x"], ["y"], ["z"]], aligned=False))
    assert run(study) == 0
    assert json.loads((study / "o.json").read_text())["scores"] == []
