"""`docmt evaluate`, from files to files."""

import json

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


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_compare_finds_the_worse_system(tmp_path, text, capsys, test):
    good = write_hypotheses(tmp_path / "good.jsonl", text)
    bad = write_hypotheses(tmp_path / "bad.jsonl", [line.replace("ganz kurzer", "sehr langer") for line in text])
    same = write_hypotheses(tmp_path / "same.jsonl", text)
    named = [f"good={good}", f"bad={bad}", f"same={same}"]
    table = tmp_path / "table.csv"
    options = [*text_options(tmp_path), "--test", test, "--samples", "200", "--out", str(table)]
    assert main(["evaluate", "compare", "--hypotheses", *named, *options]) == 0
    printed = capsys.readouterr().out
    assert "BLEU (sentences)" in printed
    assert "chrF2 (sentences)" in printed
    assert "–" in printed
    rows = {(row[0], row[1]): row for row in (line.split(",") for line in table.read_text().splitlines()[1:])}
    assert float(rows["bad", "BLEU (sentences)"][3]) < -10
    assert float(rows["bad", "BLEU (sentences)"][4]) < 0.05 < float(rows["same", "BLEU (sentences)"][4])


def test_compare_falls_back_to_instances_and_documents(tmp_path, text, capsys):
    one = write_hypotheses(tmp_path / "one.jsonl", text)
    two = write_hypotheses(tmp_path / "two.jsonl", text, aligned=False)
    options = [*text_options(tmp_path), "--samples", "20"]
    assert main(["evaluate", "compare", "--hypotheses", str(one), str(two), *options]) == 0
    assert "BLEU (instances)" in capsys.readouterr().out
    assert main(["evaluate", "compare", "--hypotheses", str(one), str(two), *options, "--unit", "documents"]) == 0
    assert "BLEU (documents)" in capsys.readouterr().out
    assert main(["evaluate", "compare", "--hypotheses", str(one), str(two), *options, "--unit", "sentences"]) == 2
    assert "share no segments shorter than instances" in capsys.readouterr().err


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


def test_one_system_cannot_be_compared(tmp_path, text, capsys):
    path = write_hypotheses(tmp_path / "h.jsonl", text)
    assert main(["evaluate", "compare", "--hypotheses", str(path), *text_options(tmp_path)]) == 2
    assert main(["evaluate", "compare", "--hypotheses", str(path), str(path), *text_options(tmp_path)]) == 2
    assert "write NAME=FILE" in capsys.readouterr().err
