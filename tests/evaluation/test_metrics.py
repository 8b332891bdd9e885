"""The registry of metrics, as settings, report and manual use it."""

from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_fixtures import REFERENCE, by_metric, make_hypotheses, make_test

from docmt.errors import UserError
from docmt.evaluation import metrics
from docmt.evaluation.metrics import (
    METRICS,
    EvaluationSettings,
    find_metric,
    score_translations,
    scoring_packages,
)
from docmt.evaluation.significance import compare_translations

PAGE = Path(__file__).parents[2] / "docs/evaluation.md"


def translated(**settings):
    return make_test(make_hypotheses(REFERENCE), settings=EvaluationSettings(**settings))


def names(test):
    return [row["metric"] for row in score_translations(test)]


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


def test_metrics_keep_the_order_of_settings():
    assert names(translated(metrics=["chrF", "s-BLEU"])) == ["chrF", "s-BLEU", "length ratio"]


EXAMPLE = PAGE.read_text(encoding="utf-8").split("## Your own metric")[1].split("```python\n")[1].split("```")[0]


def test_metric_of_the_manual_works(monkeypatch):
    monkeypatch.setattr(metrics, "METRICS", METRICS | {})
    exec(EXAMPLE, {})
    test = translated(metrics=["word share", "chrF"])
    assert by_metric(score_translations(test))["word share"]["value"] == 100
    worse, empty = (replace(test, hypotheses=make_hypotheses([line] * len(REFERENCE))) for line in ("x", ""))
    assert by_metric(score_translations(empty))["word share"]["value"] == 0
    rows = {row.metric: row for row in compare_translations([test], [worse])}
    assert (rows["word share"].difference, rows["word share"].n) == (pytest.approx(100), len(REFERENCE))
    assert find_metric("word share").digits == 1


def test_optional_versions_count_where_named():
    plain, aligned = scoring_packages(["s-BLEU"]), scoring_packages(["s-BLEU", "METEOR", "APT"])
    assert {"sacrebleu", "sacremoses"} <= set(plain) <= {"sacrebleu", "sacremoses", "jieba"}
    assert set(aligned) - set(plain) <= {"eflomal", "pycocoevalcap"}
