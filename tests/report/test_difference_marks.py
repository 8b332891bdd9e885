"""Paired tests against a baseline as marks in tables."""

import json

import pytest
from score_rows import difference, long_table, score, write_scores

from docmt.cli.main import main
from docmt.errors import UserError
from docmt.report.differences import UNTESTED, read_differences
from docmt.report.page import build_report
from docmt.report.report_files import ReportFiles
from docmt.report.score_tables import contrastive_table, main_table, paper_table
from docmt.report.settings import PaperTable, ReportSettings
from docmt.report.summary import summarize

MCNEMAR = {"test": "s", "metric": "contrastive accuracy", "method": "McNemar", "randomization_p": None}
TESTS = [
    difference("a", 0.02),
    difference("b", 0.009),
    difference("c", 0.05),
    difference("a", 0.001, baseline="b"),
    difference("a", 0.03, phenomenon="deixis", **MCNEMAR),
    difference("a", 0.001, **MCNEMAR),
]
FOUND = {test.key: test for test in TESTS}
SCORES = [score(system, 20) for system in ("base", "a", "b", "c", "d")]


def test_main_table_marks_differences():
    table = main_table(summarize(long_table(SCORES)), ReportSettings(baseline="base", labels={"base": "Base"}), FOUND)
    assert [row[-1] for row in table.rows] == ["20.00", "20.00 *", "20.00 **", "20.00", "20.00"]
    assert table.note.endswith(
        "* and **: differs from Base with p < 0.05 and p < 0.01 (bootstrap, and by randomization)."
    )
    values = table.full.set_index("system")
    assert values["s-BLEU p"].dropna().to_dict() == {"a": 0.02, "b": 0.009, "c": 0.05}
    assert values.loc["a", "s-BLEU p (sign test)"] == 0.5


def test_nothing_is_marked_where_no_system_translates():
    rows = [score("base", 0.2), score("a", 0.9)]
    table = main_table(summarize(long_table(rows)), ReportSettings(baseline="base"), FOUND)
    assert [row[-1] for row in table.rows] == ["0.20", "0.90"]
    assert "*" not in table.note


@pytest.mark.parametrize(("points", "mark"), [(0.0001, ""), (-0.004, ""), (0.006, " **"), (-0.01, " **")])
def test_rounded_zero_has_no_mark(points, mark):
    test = difference("a", 0.001, difference=points)
    table = main_table(summarize(long_table(SCORES[:2])), ReportSettings(baseline="base"), {test.key: test})
    assert table.rows[1][-1] == f"20.00{mark}"
    assert table.full["s-BLEU p"].tolist()[1] == 0.001, "the file has the p value all the same"


def test_unlike_scores_have_no_mark():
    rows = [*SCORES[:2], SCORES[2] | {"signature": "y"}]
    table = main_table(summarize(long_table(rows)), ReportSettings(baseline="base"), FOUND)
    assert [row[-1] for row in table.rows] == ["20.00", "20.00 *", "20.00 †"]
    rows = [SCORES[0] | {"signature": "y"}, *SCORES[1:3]]
    table = main_table(summarize(long_table(rows)), ReportSettings(baseline="base"), FOUND)
    assert [row[-1] for row in table.rows] == ["20.00 †", "20.00", "20.00"], "no score is computed as the baseline's"
    rows = [score(system, 20) | {"signature": "y"} for system in ("base", "a")] + SCORES[2:]
    table = main_table(summarize(long_table(rows)), ReportSettings(baseline="base"), FOUND)
    assert [row[-1] for row in table.rows] == ["20.00 †", "20.00 * †", "20.00", "20.00", "20.00"]


@pytest.mark.parametrize(
    ("p", "randomization_p", "mark"),
    [
        (0.001, 0.009, "**"),
        (0.001, 0.02, "*"),
        (0.02, 0.001, "*"),
        (0.001, 1.0, ""),
        (1.0, 0.001, ""),
        (0.02, None, "*"),
    ],
)
def test_a_mark_needs_all_tests(p, randomization_p, mark):
    assert difference("a", p, randomization_p=randomization_p).mark == mark


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"n": 12}, ""),
        ({"n": 11}, "** (takes 12): d/t s-BLEU (11)."),
        ({"n": 6}, "** (takes 12): d/t s-BLEU (6)."),
        ({"n": 5}, "any mark (* takes 6): d/t s-BLEU (5)."),
        (MCNEMAR | {"n": 8}, ""),
        (MCNEMAR | {"n": 7}, "** (takes 8): d/s contrastive accuracy (7)."),
        (MCNEMAR | {"n": 1}, "any mark (* takes 6): d/s contrastive accuracy (1)."),
    ],
)
def test_note_names_small_tests(options, note):
    one = difference("a", 0.2, **options)
    rows = [score("a", 20, test=one.test, metric=one.metric, phenomenon=None)]
    make = contrastive_table if options.get("test") else main_table
    table = make(summarize(long_table(rows)), ReportSettings(baseline="base"), {one.key: one})
    assert table.note.partition("Too few segments or items for ")[2] == note


def test_without_a_baseline_or_tests_nothing_is_marked():
    for settings, differences in ((ReportSettings(), FOUND), (ReportSettings(baseline="base"), UNTESTED)):
        table = main_table(summarize(long_table(SCORES)), settings, differences)
        assert {row[-1] for row in table.rows} == {"20.00"}
        assert "differs from" not in table.note
        assert "s-BLEU p" not in table.full


def test_accuracies_are_marked_by_phenomenon():
    rows = [score("a", 60, test="s", metric="contrastive accuracy", phenomenon=name) for name in ("deixis", "x", None)]
    table = contrastive_table(summarize(long_table(rows)), ReportSettings(baseline="base"), FOUND)
    assert table.rows[0][1:] == ["60.0 *", "60.0", "60.0 **"]
    assert "(McNemar)" in table.note


@pytest.mark.parametrize(("baseline", "cells"), [(None, ["20.00 *", "20.00 **"]), ("b", ["20.00 **", "20.00"])])
def test_a_table_may_have_its_own_baseline(baseline, cells):
    layout = PaperTable(title="x", systems=["a", "b"], baseline=baseline)
    settings = ReportSettings(baseline="base", tables={"x": layout})
    table = paper_table(long_table(SCORES), "x", settings, {}, FOUND)
    assert [row[-1] for row in table.rows] == cells


def test_files_of_another_form_are_refused(tmp_path):
    path = tmp_path / "d.json"
    old = {key: value for key, value in vars(difference("a", 0.02)).items() if key != "randomization_p"}
    odd = [{"dataset": "d"}, 1, old, *(vars(difference("a", 0.02)) | {key: None} for key in ("p", "system", "n"))]
    for content in ([], {"scores": []}, *({"differences": [row]} for row in odd)):
        path.write_text(json.dumps(content))
        with pytest.raises(UserError, match="not an output of `docmt evaluate difference`"):
            read_differences([path])


def test_a_difference_that_is_given_twice_is_refused(tmp_path):
    for name, p in (("1", 0.02), ("2", 0.2)):
        (tmp_path / name).write_text(json.dumps({"differences": [vars(difference("a", p))]}))
    with pytest.raises(UserError, match=r"2: the s-BLEU of a on d/t against base .* pass each difference once"):
        read_differences([tmp_path / "1", tmp_path / "2"])


def test_the_table_command_and_the_page_read_them(tmp_path, capsys):
    (tmp_path / "d.json").write_text(json.dumps({"differences": [vars(difference("a", 0.001))]}))
    write_scores(tmp_path / "s.json", SCORES)
    settings = {"baseline": "base", "tables": {"x": {"title": "x", "systems": ["a"]}}}
    files = ["--scores", str(tmp_path / "s.json"), "--differences", str(tmp_path / "d.json")]
    options = ["--settings", json.dumps(settings), "--name", "x", "--out", str(tmp_path / "x")]
    assert main(["report", "table", *options, *files]) == 0
    assert "20.00 **" in capsys.readouterr().out
    tested = ReportFiles(differences=[tmp_path / "d.json"])
    report = build_report(long_table(SCORES), ReportSettings.load(settings, where="report"), files=tested)
    assert report.printed().count("20.00 **") == 2
