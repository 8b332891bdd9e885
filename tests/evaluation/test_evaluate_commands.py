"""`docmt evaluate`, from files to files."""

import csv
import json
import re

import pytest

from docmt.cli.main import main
from docmt.evaluation.external_programs import NotComputableError, missing_row
from docmt.evaluation.metrics import METRICS, Metric

RUN = ["--dataset", "d", "--system", "s", "--seed", "3", "--test", "t"]


@pytest.fixture
def text(tmp_path):
    lines = [f"Satz {i} ist , nun ja , ein ganz kurzer Satz ." for i in range(12)]
    (tmp_path / "t.documents.tsv").write_text("document\tn_sentences\na\t5\nb\t7\n")
    for lang in ("en", "de"):
        (tmp_path / f"t.{lang}").write_text("".join(line + "\n" for line in lines))
    return lines


def write_hypotheses(path, lines, *, aligned=True):
    rows = [
        {"instance": i, "document": "ab"[i], "first_sentence": a, "n_sentences": b - a, "aligned": aligned,
         "sentences": lines[a:b]}
        for i, (a, b) in enumerate(((0, 5), (5, 12)))
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def text_options(folder):
    return ["--prefix", str(folder / "t"), "--src-lang", "en", "--tgt-lang", "de"]


def test_scores_are_rows_with_run_and_provenance(tmp_path, text):
    path = write_hypotheses(tmp_path / "h.jsonl", text)
    options = ["--hypotheses", str(path), *text_options(tmp_path), *RUN, "--fingerprint", "abc", "--out"]
    assert main(["evaluate", "scores", *options, str(tmp_path / "s.json")]) == 0
    content = json.loads((tmp_path / "s.json").read_text())
    row = content["scores"][0]
    assert row["metric"] == "s-BLEU"
    assert row["value"] == pytest.approx(100)
    assert row["n"] == 12
    assert (row["dataset"], row["system"], row["seed"], row["test"]) == ("d", "s", 3, "t")
    assert row["phenomenon"] is None
    assert row["distance"] is None
    assert content["provenance"]["fingerprint"] == "abc"
    assert set(content["provenance"]["inputs"]) == {"hypotheses", "reference", "documents"}


def test_scores_hold_the_metrics_of_other_programs_or_says_why_not(tmp_path, text):
    path = write_hypotheses(tmp_path / "h.jsonl", text)
    settings = '{"metrics": ["s-BLEU", "METEOR", "APT"], "aligner_runs": 1}'
    options = ["--settings", settings, "--hypotheses", str(path), *text_options(tmp_path), *RUN]
    assert main(["evaluate", "scores", *options, "--training", str(tmp_path / "t"), "--out", str(tmp_path / "s")]) == 0
    rows = {row["metric"]: row for row in json.loads((tmp_path / "s").read_text())["scores"]}
    assert rows["s-BLEU"]["value"] == pytest.approx(100)
    meteor, apt = rows["METEOR"], rows["APT"]
    assert meteor["value"] == pytest.approx(100) or "not computed" in meteor["signature"]
    assert apt["value"] is None
    assert "not computed" in apt["signature"] or "training pairs:12" in apt["signature"]


def test_tokenized_hypotheses_are_named_in_the_log_and_in_signatures_of_scores(tmp_path, text, capsys, monkeypatch):
    monkeypatch.setitem(
        METRICS, "METEOR", Metric("", lambda test: [missing_row("METEOR", NotComputableError("no Java"))])
    )
    path = write_hypotheses(tmp_path / "h.jsonl", [line.replace("Satz", "Sa@@ tz") for line in text])
    options = ["--hypotheses", str(path), *text_options(tmp_path), *RUN, "--out", str(tmp_path / "s.json")]
    assert main(["evaluate", "scores", "--settings", '{"metrics": ["s-BLEU", "METEOR"]}', *options]) == 0
    problem = "the translations look tokenized (100 % of the sentences have subword marks)"
    assert f"{path}: {problem}: detokenize them" in capsys.readouterr().err
    rows = json.loads((tmp_path / "s.json").read_text())["scores"]
    signatures = {row["metric"]: row["signature"] for row in rows}
    assert signatures.pop("METEOR") == "not computed: no Java"
    assert {signature.rpartition("|")[2] for signature in signatures.values()} == {f"warning:{problem}"}


def test_pronouns_need_aligned_hypotheses(tmp_path, text, capsys):
    path = write_hypotheses(tmp_path / "h.jsonl", text, aligned=False)
    options = ["--hypotheses", str(path), *text_options(tmp_path), *RUN, "--out", str(tmp_path / "s.json")]
    assert main(["evaluate", "pronouns", *options]) == 2
    assert "APT needs hypotheses that are aligned sentence by sentence" in capsys.readouterr().err


def test_contrast_keeps_the_provenance_of_decoding(tmp_path):
    suite, scores = tmp_path / "suite.jsonl", tmp_path / "scores.json"
    item = {"id": "a", "phenomenon": "p", "src": ["s"], "candidates": [["x"], ["y"]], "correct": 1}
    suite.write_text(json.dumps(item) + "\n")
    scores.write_text(json.dumps({"items": [{"id": "a", "scores": [-2, -1]}], "provenance": {"commit": "c0ffee"}}))
    options = ["--suite", str(suite), "--log-probabilities", str(scores), *RUN, "--out", str(tmp_path / "s.json")]
    assert main(["evaluate", "contrast", *options]) == 0
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["provenance"]["log_probabilities"] == {"commit": "c0ffee"}
    assert content["scores"][0]["value"] == 100
    assert content["scores"][0]["test"] == "t"


def test_compare_finds_the_worse_system(tmp_path, text, capsys):
    write_hypotheses(tmp_path / "good.jsonl", text)
    (tmp_path / "bad.de").write_text("".join(line.replace("ganz kurzer", "sehr langer") + "\n" for line in text))
    (tmp_path / "documents.de").write_text(" ".join(text[:5]) + "\n" + " ".join(text[5:]) + "\n")
    named = [f"good={tmp_path}/good.jsonl", f"bad={tmp_path}/bad.de", str(tmp_path / "documents.de")]
    table = tmp_path / "table.csv"
    options = ["--references", str(tmp_path / "t.de"), "--tgt-lang", "de", "--out", str(table)]
    assert main(["evaluate", "compare", "--hypotheses", *named, *options]) == 0
    printed = capsys.readouterr()
    assert "the translations look tokenized" not in printed.err  # the reference does, too
    assert "d-BLEU (documents): nrefs:1|" in printed.out
    with table.open() as file:
        rows = {(row["system"], row["metric"]): row for row in csv.DictReader(file)}
    assert float(rows["bad", "s-BLEU"]["difference"]) < -10
    assert float(rows["bad", "s-BLEU"]["p"]) < 0.01
    assert [metric for system, metric in rows if system == named[2]] == ["d-BLEU (documents)"]
    assert float(rows[named[2], "d-BLEU (documents)"]["difference"]) == 0


def test_compare_finds_documents_at_blank_lines(tmp_path, capsys):
    (tmp_path / "r.de").write_text("Ein Satz .\r\nNoch ein Satz .\n\n\nDas Ende ist nah .\n")
    (tmp_path / "r2.de").write_text("Ein Satz\nNoch einer\nDas Ende\n")
    same = tmp_path / "same.de"
    same.write_text((tmp_path / "r.de").read_text())
    (tmp_path / "dense.de").write_text("Ein Satz .\nNoch ein Satz .\n\n")  # the third sentence is empty
    references = ["--references", str(tmp_path / "r.de"), str(tmp_path / "r2.de"), "--tgt-lang", "de"]
    call = ["evaluate", "compare", *references, "--hypotheses"]
    assert main([*call, str(same), f"dense={tmp_path}/dense.de"]) == 0
    lines = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    scores = {(line[0], line[1]): line[2] for line in lines if len(line) == 8}
    assert scores[str(same), "s-BLEU"] == scores[str(same), "d-BLEU (documents)"] == "100.00"
    assert float(scores["dense", "s-BLEU"]) < 80
    assert "nrefs:2" in "".join(map(str, lines))
    (tmp_path / "short.de").write_text("x\n")
    assert main([*call, str(tmp_path / "short.de")]) == 2
    assert "1 lines, but the test set has 3 sentences in 2 documents" in capsys.readouterr().err
    # As many lines as the reference, but not where its sentences are.
    (tmp_path / "shifted.de").write_text("Ein Satz .\n\nNoch ein Satz .\n\nDas Ende ist nah .\n")
    assert main([*call, str(tmp_path / "shifted.de")]) == 2
    assert "shifted.de: line 3 has text, but the reference has a blank line there" in capsys.readouterr().err
    with_blank = [*references[:2], str(same), *references[3:]]  # a second reference in the form of the first
    assert main([*call[:2], *with_blank, "--hypotheses", str(same), "--out", str(tmp_path / "table.csv")]) == 0
    assert not (tmp_path / ".checksums").exists()
    (tmp_path / "r.de").write_text("\n")
    assert main([*call, str(same)]) == 2
    assert "r.de: empty, there is nothing to score" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (["--dataset", "d", "--system", "s", "--seed", "1"], "--test requires an argument"),
        (["--dataset", "d", "--system", "s", "--seed", "x", "--test", "t"], 'unable to convert "x" into int'),
        (["--dataset", "d", "--sytem", "s", "--seed", "1", "--test", "t"], "Did you mean --system instead of --sytem?"),
    ],
)
def test_bad_run_keys_give_one_line_and_no_file(tmp_path, text, capsys, run, message):
    path = write_hypotheses(tmp_path / "h.jsonl", text)
    out = tmp_path / "s.json"
    options = ["--hypotheses", str(path), *text_options(tmp_path), *run, "--out", str(out)]
    assert main(["evaluate", "scores", *options]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
    assert not out.exists()


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("APT", "'APT' reads the source: give its language, --src-lang"),
        ("context words (address)", "reads the source"),
        ("CXMI", "'CXMI' needs the model: only a study computes it"),
    ],
)
def test_compare_refuses_metrics_that_need_more_than_it_is_given(tmp_path, text, capsys, metric, message):
    options = ["--references", str(tmp_path / "t.de"), "--tgt-lang", "de", "--hypotheses", str(tmp_path / "t.de")]
    assert main(["evaluate", "compare", *options, "--settings", json.dumps({"metrics": [metric]})]) == 2
    assert message in capsys.readouterr().err


def test_systems_that_are_compared_have_different_names(tmp_path, text, capsys):
    options = ["--references", str(tmp_path / "t.de"), "--tgt-lang", "de"]
    assert main(["evaluate", "compare", "--hypotheses", "x=a.de", "x=b.de", *options]) == 2
    assert "two systems are called 'x'; write NAME=FILE" in capsys.readouterr().err
