"""`docmt evaluate`, from input files to output files."""

import csv
import json
import re

import pytest
from evaluation_fixtures import (
    LANGUAGES,
    RUN,
    by_metric,
    evaluate,
    make_hypotheses,
    write_hypotheses,
    write_lines,
    write_split,
)

from docmt.cli.main import main, run
from docmt.evaluation.external_programs import missing_row
from docmt.evaluation.metrics import METRICS, Metric
from docmt.files import read_json
from docmt.provenance import fingerprint as hash_of

LINES = [f"Satz {i} ist , nun ja , ein ganz kurzer Satz ." for i in range(12)]


@pytest.fixture
def text(tmp_path):
    """Options of a split."""
    return write_split(tmp_path, {"a": 5, "b": 7}, en=LINES, de=LINES)


def score(folder, text, lines=LINES, **options):
    """Score hypotheses. Returns rows by metric, and the rest of the score file."""
    path = write_hypotheses(folder / "test_t.jsonl", make_hypotheses(lines, (5, 7), documents="ab"))
    assert evaluate("run", outputs=path, **text, **RUN, out=folder / "s.json", **options) == 0
    content = json.loads((folder / "s.json").read_text())
    return by_metric(content.pop("scores")), content


def test_scores_are_rows_with_run_and_provenance(tmp_path, text):
    rows, content = score(tmp_path, text, fingerprint="abc")
    row = rows["s-BLEU"]
    assert (row["value"], row["n"]) == (pytest.approx(100), 12)
    assert {key: row[key] for key in (*RUN, "test")} == RUN | {"test": "t"}
    assert row["phenomenon"] is row["distance"] is None
    assert content["provenance"]["fingerprint"] == "abc"
    (inputs,) = content["provenance"]["inputs"]
    assert set(inputs) == {"test", "hypotheses", "reference", "documents"}
    assert row["data"] == inputs["reference"]["sha256"][:12]


def test_missing_program_is_explained_in_scores(tmp_path, text):
    settings = {"metrics": ["s-BLEU", "METEOR", "APT"], "aligner_runs": 1}
    rows, _ = score(tmp_path, text, settings=settings, training=text["texts"])
    assert rows["s-BLEU"]["value"] == pytest.approx(100)
    meteor, apt = rows["METEOR"], rows["APT"]
    assert meteor["value"] == pytest.approx(100) or "not computed" in meteor["signature"]
    assert apt["value"] is None
    assert "not computed" in apt["signature"] or "training pairs:12" in apt["signature"]


def test_tokenized_hypotheses_are_named(tmp_path, text, capsys, monkeypatch):
    missing = Metric("", lambda test: [missing_row("METEOR", "no Java")])
    monkeypatch.setitem(METRICS, "METEOR", missing)
    lines = [line.replace("Satz", "Sa@@ tz") for line in LINES]
    rows, _ = score(tmp_path, text, lines, settings={"metrics": ["s-BLEU", "METEOR"]})
    problem = "the translations look tokenized (100 % of the sentences have subword marks)"
    assert f"test_t.jsonl: {problem}: detokenize them" in capsys.readouterr().err
    assert rows.pop("METEOR")["signature"] == "not computed: no Java"
    assert {row["signature"].rpartition("|")[2] for row in rows.values()} == {f"warning:{problem}"}


def test_suite_scores_keep_the_provenance(tmp_path):
    suite, scores = tmp_path / "t.jsonl", tmp_path / "suite_t.json"
    item = {"id": "a", "phenomenon": "p", "src": ["s"], "candidates": [["x"], ["y"]], "correct": 1}
    suite.write_text(json.dumps(item) + "\n")
    scores.write_text(json.dumps({"items": [{"id": "a", "scores": [-2, -1]}], "provenance": {"commit": "c0ffee"}}))
    out = tmp_path / "s.json"
    assert evaluate("run", outputs=scores, suites=suite, **LANGUAGES, **RUN, out=out) == 0
    content = json.loads(out.read_text())
    assert content["provenance"]["inputs"][0]["decoding"] == {"commit": "c0ffee"}
    assert content["scores"][0]["value"] == 100
    assert content["scores"][0]["test"] == "t"


def test_compare_finds_the_worse_system(tmp_path, text, capsys):
    good = write_hypotheses(tmp_path / "good.jsonl", make_hypotheses(LINES, (5, 7), documents="ab"))
    bad = write_lines(tmp_path / "bad.de", [line.replace("ganz kurzer", "sehr langer") for line in LINES])
    documents = write_lines(tmp_path / "documents.de", [" ".join(LINES[:5]), " ".join(LINES[5:])])
    named = [f"good={good}", f"bad={bad}", documents]
    table = tmp_path / "table.csv"
    assert evaluate("compare", hypotheses=named, references=tmp_path / "test_t.de", tgt_lang="de", out=table) == 0
    printed = capsys.readouterr()
    assert "the translations look tokenized" not in printed.err  # the reference does, too
    assert "d-BLEU (documents): nrefs:1|" in printed.out
    with table.open() as file:
        rows = {(row["system"], row["metric"]): row for row in csv.DictReader(file)}
    assert float(rows["bad", "s-BLEU"]["difference"]) < -10
    assert float(rows["bad", "s-BLEU"]["p"]) < 0.01
    of_documents = ["d-BLEU (documents)", "d-chrF (documents)"]
    assert [metric for system, metric in rows if system == str(documents)] == of_documents
    assert float(rows[str(documents), "d-BLEU (documents)"]["difference"]) == 0


def test_compare_finds_documents_at_blank_lines(tmp_path, capsys):
    reference, same, dense, short, shifted = (tmp_path / f"{name}.de" for name in ("r", "same", "dense", "short", "x"))
    reference.write_text("Ein Satz .\r\nNoch ein Satz .\n\n\nDas Ende ist nah .\n")
    other = write_lines(tmp_path / "r2.de", ["Ein Satz", "Noch einer", "Das Ende"])
    same.write_text(reference.read_text())
    write_lines(dense, ["Ein Satz .", "Noch ein Satz .", ""])  # the third sentence is empty

    def compare(*hypotheses, references=(reference, other), **options):
        return evaluate("compare", references=[*references], tgt_lang="de", hypotheses=[*hypotheses], **options)

    assert compare(same, f"dense={dense}") == 0
    lines = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    scores = {(line[0], line[1]): line[2] for line in lines if len(line) == 8}
    assert scores[str(same), "s-BLEU"] == scores[str(same), "d-BLEU (documents)"] == "100.00"
    assert float(scores["dense", "s-BLEU"]) < 80
    assert "nrefs:2" in "".join(map(str, lines))
    assert compare(write_lines(short, ["x"])) == 2
    assert "1 lines, but the test set has 3 sentences in 2 documents" in capsys.readouterr().err
    # As many lines as the reference, but other documents.
    assert compare(write_lines(shifted, ["Ein Satz .", "", "Noch ein Satz .", "", "Das Ende ist nah ."])) == 2
    assert "x.de: 3 lines in 3 documents, by blank lines, but the test set has 3 sen" in capsys.readouterr().err
    assert compare(same, write_lines(shifted, ["Ein Satz . Noch", "ein Satz", ".", "", "Das Ende ist nah ."])) == 0
    printed = capsys.readouterr()
    assert f"{shifted}: 1 of 2 documents re-aligned to the reference (their 3 lines to 2 sentences)" in printed.err
    # A second reference in the form of the first.
    for _ in range(2):  # the same command replaces its own output
        assert compare(same, references=(reference, same), out=tmp_path / "table.csv") == 0
    reference.write_text("\n")
    assert compare(same) == 2
    assert "r.de: contains no sentences to score" in capsys.readouterr().err


def test_misspelt_option_is_one_line(tmp_path, text, capsys):
    path = write_hypotheses(tmp_path / "test_t.jsonl", make_hypotheses(LINES, (5, 7), documents="ab"))
    run = {"sytem" if key == "system" else key: value for key, value in RUN.items()}
    assert evaluate("run", outputs=path, **text, **run, out=tmp_path / "s.json") == 2
    error = capsys.readouterr().err.strip()
    assert "Did you mean --system instead of --sytem?" in error
    assert "\n" not in error
    assert not (tmp_path / "s.json").exists()


TEXTS = ["--texts", "x/test_t.en", "x/test_t.de", "x/test_t.documents.tsv"]
NAMES = "test_NAME.jsonl, suite_NAME.json, generated_NAME.jsonl"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--outputs: no files"),
        (["talks.jsonl", *TEXTS], f"talks.jsonl: the file name must be {NAMES}: rename it"),
        (["test_.jsonl", *TEXTS], "test_.jsonl: the file name must be"),
        (["dev_t.jsonl", *TEXTS], "dev_t.jsonl: the file name must be"),
        (["test_u.jsonl", *TEXTS], "test_u.jsonl: also pass test_u.documents.tsv in --texts"),
        (["test_t.jsonl", "--texts", "--suites", "t.jsonl"], "also pass test_t.documents.tsv in --texts"),
        (["suite_t.json", *TEXTS], "suite_t.json: also pass t.jsonl in --suites"),
        (["generated_t.txt", "--suites", "u.jsonl"], "generated_t.txt: also pass t.jsonl in --suites"),
        (["test_t.jsonl", "y/test_t.jsonl", *TEXTS], "y/test_t.jsonl: test_t.jsonl is on the same test: pass the"),
        (["test_t.jsonl", *TEXTS, "u.de"], "u.de: also pass u.documents.tsv, the index of its documents"),
        (["test_t.jsonl", *TEXTS, "test_u.documents.tsv"], "--texts: test_u: --outputs has no output on this test"),
        (["test_t.jsonl", *TEXTS, "t.documents.tsv"], f"--texts: t: --outputs has no output on this test ({NAMES})"),
        (["test_t.jsonl", *TEXTS, "y/test_t.documents.tsv"], "y/test_t: x/test_t has the same name: pass one of them"),
        (["test_t.jsonl", *TEXTS, "--suites", "t.jsonl"], "--suites: t: --outputs has no output on this test"),
        (["suite_t.json", "--suites", "t.jsonl", "y/t.jsonl"], "--suites: y/t.jsonl: t.jsonl has the same name"),
        (["test_t.jsonl", *TEXTS, "--references", "u=r.de"], "--references: u: --outputs has no output on this test"),
        (["test_t.jsonl", *TEXTS, "--references", "r.de"], "--references r.de: expected TEST=FILE"),
        (["test_t.jsonl", *TEXTS, "--references", "=r.de"], "--references =r.de: expected TEST=FILE"),
        (["test_t.jsonl", *TEXTS, "--references", "t="], "--references t=: expected TEST=FILE"),
        (["test_t.jsonl", *TEXTS, "--training", "a.documents.tsv", "b.documents.tsv"], "--training: files of 2 splits"),
        (["test_t.jsonl", *TEXTS, "--training", "a.en"], "a.en: also pass a.documents.tsv"),
        (["test_t.jsonl", *TEXTS], "x/test_t.documents.tsv: no such file"),
    ],
)
def test_outputs_that_cannot_be_scored_are_named(tmp_path, words, message, capsys):
    options = {"src-lang": "en", "tgt-lang": "de", **RUN, "out": tmp_path / "s.json"}
    words = ["--outputs", *words, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
    assert main(["evaluate", "run", *words]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not (tmp_path / "s.json").exists()


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (["test_t.jsonl"], [], "test_t.jsonl: also pass the baseline's test_t.jsonl in --baseline"),
        (["test_t.jsonl"], ["base/test_t.jsonl", "base/suite_u.json"], "--baseline: suite_u: --outputs has no output"),
        (["test_t.jsonl"], ["base.jsonl"], f"base.jsonl: the file name must be {NAMES}"),
        ([], ["base/test_t.jsonl"], "--texts: test_t: --outputs has no output on this test"),
    ],
)
def test_a_difference_needs_outputs_of_both_systems(text, ours, theirs, message, tmp_path, capsys):
    options = {"names": ["a", "b"], "dataset": "d", "out": tmp_path / "o.json"}
    assert evaluate("difference", outputs=ours, baseline=theirs, **text, **options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("fingerprint", [None, "abc"])
def test_scores_and_differences_record_the_fingerprint(tmp_path, text, fingerprint):
    """Called without options that all commands share."""
    path = write_hypotheses(tmp_path / "test_t.jsonl", make_hypotheses(LINES, (5, 7), documents="ab"))
    words = ["--outputs", path, "--texts", *text["texts"], "--src-lang", "en", "--tgt-lang", "de", "--dataset", "d"]
    words += ["--settings", '{"metrics": ["s-BLEU"]}', "--out", tmp_path / "o.json"]
    words += ["--fingerprint", fingerprint] if fingerprint else []
    for command in (["run", "--system", "s", "--seed", "1"], ["difference", "--baseline", path, "--names", "a", "b"]):
        assert run(["evaluate", *map(str, [*command, *words])]) == 0
        provenance = read_json(tmp_path / "o.json")["provenance"]
        assert provenance["fingerprint"] == (fingerprint or hash_of(provenance["settings"]))


def test_empty_lists_of_texts_and_suites_are_accepted(tmp_path, text):
    path = write_hypotheses(tmp_path / "test_t.jsonl", make_hypotheses(LINES, (5, 7), documents="ab"))
    empty = {"suites": [], "references": [], "training": []}
    settings = {"metrics": ["s-BLEU"]}
    assert evaluate("run", outputs=path, **text, **empty, **RUN, out=tmp_path / "s.json", settings=settings) == 0


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("APT", "'APT' reads the source: pass its language with --src-lang"),
        ("CXMI", "'CXMI' needs the model"),
    ],
)
def test_compare_refuses_metrics_it_cannot_compute(tmp_path, text, capsys, metric, message):
    path = tmp_path / "test_t.de"
    settings = {"metrics": [metric]}
    assert evaluate("compare", references=path, tgt_lang="de", hypotheses=path, settings=settings) == 2
    assert message in capsys.readouterr().err


def test_systems_that_are_compared_have_different_names(tmp_path, text, capsys):
    assert evaluate("compare", hypotheses=["x=a.de", "x=b.de"], references=tmp_path / "test_t.de", tgt_lang="de") == 2
    assert "two systems are called 'x': pass NAME=FILE" in capsys.readouterr().err


COMET, TIES, PER_TOKEN = (
    {"comet": {"checkpoint": "c"}},
    {"contrast": {"ties": "first"}},
    {"contrast": {"score": "per_token"}},
)


@pytest.mark.parametrize(
    ("command", "settings", "message"),
    [
        *((command, COMET, "comet: COMET is computed by") for command in ("compare", "run", "difference")),
        ("compare", TIES, "contrast.ties: applies to contrastive test sets; remove"),
        *((command, PER_TOKEN, "contrast.score: is used by `docmt decode") for command in ("run", "difference")),
    ],
)
def test_settings_without_effect_are_refused(tmp_path, text, capsys, command, settings, message):
    path = tmp_path / "t.de"
    outputs = {"outputs": tmp_path / "test_t.jsonl", "out": tmp_path / "s.json", **LANGUAGES}
    options = {
        "compare": {"references": path, "tgt_lang": "de", "hypotheses": path},
        "run": {**outputs, **RUN},
        "difference": {**outputs, "baseline": path, "names": ["a", "b"], "dataset": "d"},
    }
    assert evaluate(command, settings=settings, **options[command]) == 2
    assert f"--settings: {message}" in capsys.readouterr().err
