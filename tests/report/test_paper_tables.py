"""Tables in the layout of a paper."""

import json

import pandas as pd
import pytest
from score_rows import best_cells, long_table, score, write_scores

from docmt.cli.main import main
from docmt.report.markup import write_table
from docmt.report.page import build_report
from docmt.report.score_tables import paper_table
from docmt.report.settings import OWN_TABLES, PaperTable, ReportSettings
from docmt.report.study_facts import StudyFacts

PUBLISHED = {"a": "cross-task/transformer", "b": "cross-task/document_pretrained"}
FACTS = {"a": {"Bi-sent": "✗", "Input": "sentences"}, "b": {"Bi-sent": "✓", "Input": "documents"}}


def accuracy(system, value, phenomenon, **keys):
    return score(
        system, value, test=f"suite-{phenomenon}", metric="contrastive accuracy", phenomenon=phenomenon, **keys
    )


def lay_out(rows, *, published=None, datasets=None, labels=None, differences=(), baseline=None, **table):
    values = {"title": "Table 1", "systems": ["a", "b"]} | table
    settings = ReportSettings(
        tables={"table_1": PaperTable(**values)},
        published=published or {},
        datasets=datasets or {},
        labels=labels or {},
        baseline=baseline,
    )
    return paper_table(long_table(rows), "table_1", settings, FACTS, {test.key: test for test in differences})


def test_rows_follow_the_settings():
    rows = [score("b", 30), score("a", 20), score("c", 99), score("a", 7, metric="METEOR")]
    table = lay_out(rows, columns=["Bi-sent", "Mo-doc", "Input"], metrics=["s-BLEU", "METEOR"], labels={"a": "#1"})
    assert table.header == ["System", "Bi-sent", "Input", "s-BLEU", "METEOR"], "what no system has is no column"
    assert table.rows == [["#1", "✗", "sentences", "20.00", "7.00"], ["b", "✓", "documents", "30.00", "–"]]
    # The page asks for these once per cell or row.
    assert all(getattr(table, name) is getattr(table, name) for name in ("rows", "cells", "breaks", "muted", "kinds"))
    assert best_cells(table) == {(1, 3)}
    assert table.kinds[:3] == ["label"] * 3
    assert table.full["Bi-sent"].tolist() == ["✗", "✓"]


def test_properties_of_some_systems_stay_columns():
    rows = [score("a", 20), score("c", 30)]
    table = lay_out(rows, systems=["a", "c", "b"], columns=["Bi-sent"])
    assert table.rows == [["a", "✗", "20.00"], ["c", "–", "30.00"]]
    assert table.heading == "Table 1 (1 seed)"
    assert table.note == "No score: b. Bold: best."


@pytest.mark.parametrize(
    ("places", "headings"),
    [
        ([("d", "t")], ["s-BLEU"]),
        ([("d", "dev"), ("d", "test")], ["dev: s-BLEU", "test: s-BLEU"]),
        ([("ted", "t"), ("news", "t")], ["ted: s-BLEU", "news: s-BLEU"]),
        ([("ted", "t"), ("ted", "u"), ("news", "t")], ["ted/t: s-BLEU", "ted/u: s-BLEU", "news/t: s-BLEU"]),
    ],
)
def test_test_names_are_short_and_distinct(places, headings):
    table = lay_out([score("a", 1, dataset=dataset, test=test) for dataset, test in places])
    assert table.header[1:] == headings


def test_published_numbers_and_their_average_stand_beside_ours():
    names = ["ted", "news", "europarl"]
    rows = [score("a", value, dataset=name) for name, value in zip(names, (1, 2, 6), strict=True)]
    rows += [score("b", 5, dataset="ted")]
    table = lay_out(rows, average=True, published=PUBLISHED, datasets={name: name for name in names})
    assert table.header[-2:] == ["average: s-BLEU", "published"]
    first, second = (row[1:] for row in table.rows)
    assert first == ["1.00", "23.02", "2.00", "22.03", "6.00", "28.65", "3.00", "24.57"]
    assert second == ["5.00", "29.31", "–", "29.01", "–", "31.52", "–", "29.95"]


def test_average_has_the_deviation_of_runs():
    rows = [score("a", 10 * seed + (5 if test == "u" else 0), test=test, seed=seed) for seed in (1, 2) for test in "tu"]
    assert lay_out(rows, average=True).rows[0][-1] == "17.50 ± 7.07"
    # Another metric has scores on other tests.
    rows.append(score("a", 0.5, test="v", metric="CXMI"))
    table = lay_out(rows, average=True, metrics=["s-BLEU", "CXMI"])
    assert table.rows[0][table.header.index("average: s-BLEU")] == "17.50 ± 7.07"


def test_phenomena_are_columns():
    rows = [accuracy("a", 50, "deixis"), accuracy("b", 81.94, "deixis"), accuracy("b", 70, "ellipsis_vp")]
    rows += [accuracy("a", 60, None), accuracy("a", 1, "deixis", distance=2)]
    published = {"a": "cross-task/discourse_transformer", "b": "cross-task/discourse_pretrained"}
    table = lay_out(rows, metrics=["contrastive accuracy"], published=published, datasets={"d": "opensubtitles"})
    assert table.header == ["System", "deixis", "published", "ellipsis_vp", "published"]
    assert table.rows == [["a", "50.0", "50.0", "–", "27.3"], ["b", "81.9", "81.9", "70.0", "80.5"]]


def test_only_the_tests_named_are_shown():
    rows = [score("a", 1), score("a", 2, test="u"), score("a", 3, dataset="e"), score("a", 4, dataset="e", test="u")]
    assert lay_out(rows, tests=["d/u", "e"]).rows[0][1:] == ["2.00", "3.00", "4.00"]
    assert lay_out(rows, tests=["f"]) is None


def test_unlike_average_is_not_the_best():
    rows = [score(system, value, test=test) for system, value in (("a", 10), ("b", 30)) for test in ("t", "u")]
    table = lay_out([*rows[:3], rows[3] | {"signature": "y|warning:w"}], average=True)
    assert [row[-1] for row in table.rows] == ["10.00", "30.00 †"]
    assert best_cells(table) == {(1, 1)}
    assert table.note.endswith(
        "average: s-BLEU: not comparable, computed with y on d/u; the others with x on d/u. b: w."
    )


def test_an_average_of_accuracies_is_refused():
    with pytest.raises(ValueError, match="only translation scores can be averaged"):
        PaperTable(title="x", systems=["a"], metrics=["contrastive accuracy"], average=True)


def test_names_of_the_reports_own_tables_are_refused():
    for name in OWN_TABLES:
        with pytest.raises(ValueError, match="choose another"):
            ReportSettings(tables={name: PaperTable(title="x", systems=["a"])})
    with pytest.raises(ValueError, match="becomes part of paths"):
        ReportSettings(tables={"../x": PaperTable(title="x", systems=["a"])})


def test_the_report_opens_with_them_and_prints_them():
    settings = ReportSettings(tables={"table_1": PaperTable(title="Table 1, ours", systems=["a"])})
    report = build_report(long_table([score("a", 20)]), settings, study=StudyFacts(paper_columns=FACTS))
    assert report.tables[0].key == "table_1"
    assert report.printed().startswith("Table 1, ours")
    assert {table.key for table in report.tables} <= {"table_1", *OWN_TABLES}


def test_notes_stay_without_main_scores():
    settings = ReportSettings(note="My note.")
    report = build_report(long_table([score("a", 20, metric="TER")]), settings)
    (table,) = [table for table in report.tables if table.key == "further"]
    assert table.note.startswith("My note.")
    assert report.printed().startswith("Further scores")


def run_table(folder, row, *, name="table_6"):
    scores = write_scores(folder / "scores.json", [row])
    settings = {"tables": {"table_6": {"title": "Table 6", "systems": ["a"], "columns": ["Gap ratio"]}}}
    options = ["--settings", json.dumps(settings), "--name", name, "--differences"]
    options += ["--study", '{"paper_columns": {"a": {"Gap ratio": "20%"}}}']
    return main(["report", "table", *options, "--scores", str(scores), "--out", str(folder / "table_6")])


def test_the_command_writes_four_forms(tmp_path, capsys):
    assert run_table(tmp_path, score("a", 50.03)) == 0
    assert "20%" in capsys.readouterr().out
    assert {path.suffix for path in tmp_path.glob("table_6.*")} == {".csv", ".md", ".tex", ".txt"}
    assert pd.read_csv(tmp_path / "table_6.csv").loc[0, "s-BLEU"] == 50.03
    assert "20\\%" in (tmp_path / "table_6.tex").read_text(encoding="utf-8")


def test_table_note_is_in_all_forms(tmp_path):
    table = lay_out([score("a", 1)], note="Mind the 1 %: it is *low*.")
    write_table(tmp_path / "x", table)
    notes = {"txt": "Mind the 1 %: it is *low*.", "md": "1 %: it is \\*low\\*.", "tex": "Mind the 1 \\%"}
    for suffix, note in notes.items():
        assert note in (tmp_path / f"x.{suffix}").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("system", "name", "message"),
    [("a", "table_7", "did you mean 'table_6'"), ("b", "table_6", "contain none of its systems")],
)
def test_the_command_refuses_what_is_not_there(tmp_path, capsys, system, name, message):
    assert run_table(tmp_path, score(system, 1), name=name) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("table_6.*"))
