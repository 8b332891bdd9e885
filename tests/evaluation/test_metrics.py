"""The registry of metrics: what settings, report and manual take from it."""

from pathlib import Path

import pytest
from test_bleu_scores import REFERENCE, make_hypotheses

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.evaluation import metrics
from docmt.evaluation.metrics import (
    METRICS,
    EvaluationSettings,
    Metric,
    TranslatedTest,
    metrics_table,
    score_translations,
)
from docmt.report.settings import ReportSettings

PAGE = Path(__file__).parents[2] / "docs/evaluation.md"


def translated(**settings):
    return TranslatedTest(
        make_hypotheses(REFERENCE), REFERENCE, EvaluationSettings(**settings), Path("t"), src_lang="en", tgt_lang="de"
    )


def names(test):
    return [row["metric"] for row in score_translations(test)]


def test_defaults_need_nothing_beyond_python():
    assert EvaluationSettings().metrics == [
        "s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "tokenised s-BLEU", "tokenised d-BLEU (instances)", "chrF"
    ]  # fmt: skip
    assert ReportSettings().metrics == ["s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "chrF"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("METEO", r"evaluation\.metrics\.0: must name a metric \(did you mean 'METEOR'\?\)"),
        ("length ratio", "must name"),
    ],
)
def test_other_names_are_refused_with_the_nearest_one(name, message):
    with pytest.raises(UserError, match=message):
        EvaluationSettings.load({"metrics": [name]}, where="evaluation")


def test_lengths_are_always_reported_and_metrics_in_the_order_of_the_settings():
    assert names(translated(metrics=["chrF", "s-BLEU"])) == ["chrF", "s-BLEU", "length ratio"]


def test_one_entry_makes_a_metric(monkeypatch):
    def score_mine(test):
        return [{"metric": "mine", "value": 1.0, "n": len(test.hypotheses), "signature": "mine"}]

    monkeypatch.setitem(METRICS, "mine", Metric("my own", score_mine, unit="instances", needs=("patience",)))
    assert names(translated(metrics=["mine", "chrF"])) == ["chrF", "length ratio", "mine"]
    assert "| `mine` | an instance, its sentences joined by a space | my own | patience |" in metrics_table()


def test_only_metrics_with_word_alignments_read_the_training_text():
    assert [name for name in METRICS if metrics.needs_training_text([name])] == [
        "APT",
        "APT (neighbors)",
        "term consistency",
    ]


def test_the_manual_has_the_table(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert main(["evaluate", "metrics", "--into", str(page)]) == 0
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8"), "run `make docs`"
    assert main(["evaluate", "metrics"]) == 0
    assert capsys.readouterr().out == metrics_table()
    page.write_text("no marks\n")
    assert main(["evaluate", "metrics", "--into", str(page)]) == 2
    assert "marks" in capsys.readouterr().err
