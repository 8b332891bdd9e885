"""Report section on EDUs and trees: statistics, scores, and the round trip of text."""

import json

import pandas as pd
import pytest
from score_rows import render_report, score, write_scores

from docmt.cli.main import main
from docmt.discourse.constituents import join_pair, leaf
from docmt.discourse.discourse_documents import DiscourseDocument, Edu, edus_from_starts, write_discourse
from docmt.errors import UserError
from docmt.report.input_files import read_measurements, read_table
from docmt.report.study_tables import parser_table, roundtrip_table, segmenter_table, tree_relations_table, trees_table
from docmt.report.tables import MISSING

PARSEVAL = {"S": 60.0, "N": 50.0, "R": 40.0, "F": 39.5}
EVALUATION = {
    "edus": {"gold": 1200, "predicted": 1200},
    "parseval": PARSEVAL,
    "uas": 55.0,
    "las": 40.0,
    "sentence_uas": 36.0,
    "span_recall": {"in sentence": {"recall": 85.0, "nodes": 10}},
}
CHAIN = {"edus": {"gold": 1200}, "parseval": dict.fromkeys(PARSEVAL), "uas": 44.0, "las": 9.0, "sentence_uas": 37.0}
SCORES = {
    "sentences": 300,
    "all": {"precision": 92.0, "recall": 91.0, "f1": 91.5, "gold": 1200},
    "inside": {"precision": 80.0, "recall": 70.0, "f1": 74.667, "gold": 900},
}


@pytest.fixture
def trees(tmp_path):
    """Statistics and relations in the commands' format: constituents, and arcs only."""
    words = (("He", "left", "<b>"), (), ("&", "so", "on"))
    edus = edus_from_starts([[1], [], []], [3, 0, 3])
    tree = join_pair(join_pair(leaf(0), leaf(1), "NS", "cause"), join_pair(leaf(2), leaf(3), "NS", "cause"), "NS", "x")
    write_discourse(tmp_path / "a.jsonl", [DiscourseDocument("<script>", words, edus, tree)])
    write_discourse(tmp_path / "none.jsonl", [DiscourseDocument("d", (("a",),), (Edu(0, 0, 1),))])
    files = [f"d/parsed/train={tmp_path / 'a.jsonl'}", f"d/parsed/dev={tmp_path / 'none.jsonl'}"]
    tables = ["--out", str(tmp_path / "s.csv"), "--relations", str(tmp_path / "r.csv")]
    assert main(["discourse", "count-trees", "--files", *files, *tables]) == 0
    return tmp_path


def test_statistics_have_a_row_per_split(trees):
    table = trees_table(read_table(trees / "s.csv", needed=["name"], words=["name"]))
    assert table.scope == "Dataset d, trees parsed."
    assert [row[:4] for row in table.rows] == [["train", "1", "3", "4"], ["dev", "1", "1", "1"]]
    cells = dict(zip(table.header, table.rows[1], strict=True))
    assert cells["nodes deep"] == cells["whole, %"] == MISSING
    assert cells["one EDU, %"] == "100.00"
    assert "max_dependency_depth" in table.full, "the CSV file has all columns"
    relations = tree_relations_table(read_table(trees / "r.csv", needed=["name"], words=["name", "relation"]))
    assert relations.rows == [["cause", "2", "66.67", "50.00"], ["x", "1", "33.33", "100.00"]]
    assert trees_table(pd.DataFrame()) is None
    assert tree_relations_table(pd.DataFrame()) is None


def test_scores_of_segmenters():
    table = segmenter_table([("gum", {"scores": SCORES})])
    assert table.rows == [["gum", "300", "1,200", "92.00", "91.00", "91.50", "80.00", "70.00", "74.67"]]
    assert table.frame["inside f1"][0] == 74.667
    assert segmenter_table([]) is None


def test_baselines_stand_beneath_their_parser():
    evaluations = [("gum", EVALUATION | {"baselines": {"chain": CHAIN}}), ("old", EVALUATION)]
    table = parser_table(evaluations)
    assert [row[0] for row in table.rows] == ["gum", "baseline chain", "old"]
    assert (table.muted, table.breaks) == ({1}, {2})
    header = ["Trees", "EDUs", "S", "N", "R", "F", "UAS", "LAS", "sentence UAS", "S in sentences"]
    assert table.header == header, "what no trees have is no column"
    assert table.rows[1] == ["baseline chain", "1,200", *[MISSING] * 4, "44.00", "9.00", "37.00", MISSING]
    assert list(table.full["parser"]) == ["gum", "gum", "old"]
    assert parser_table([]) is None


def test_causes_of_all_languages_are_columns():
    languages = {
        "zh": {"lines": 4, "restored": 3, "share": 75.0, "share_but_white_space": 75.0, "causes": {"quotes": 1}},
        "en": {"lines": 2, "restored": 1, "share": 50.0, "share_but_white_space": 100.0, "causes": {"white space": 1}},
        "de": {"lines": 0, "restored": 0, "share": None, "share_but_white_space": None, "causes": {}},
    }
    table = roundtrip_table([("d", {"languages": languages})])
    assert table.header[-2:] == ["quotes", "white space"]
    assert table.rows == [
        ["zh", "4", "75.00", "75.00", "1", "0"],
        ["en", "2", "50.00", "100.00", "0", "1"],
        ["de", "0", MISSING, MISSING, "0", "0"],
    ]
    assert roundtrip_table([]) is None


@pytest.mark.parametrize(("name", "message"), [("x.json", "key 'scores' is missing"), ("no.json", "no such file")])
def test_other_files_are_one_line(tmp_path, name, message):
    (tmp_path / "x.json").write_text('{"parseval": {}}')
    with pytest.raises(UserError, match=message):
        read_measurements({"a": tmp_path / name}, key="scores")


def test_the_page_has_the_section(trees, tmp_path):
    parsing = {"parsers": EVALUATION | {"baselines": {"chain": CHAIN}}, "segmenters": {"scores": SCORES}}
    evaluations = {name: [tmp_path / f"discourse/{name}/gum/evaluation.json"] for name in parsing}
    for name, (path,) in evaluations.items():
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(parsing[name]))
    scores, out = write_scores(tmp_path / "score.json", [score("s", 20)]), tmp_path / "out"
    counted = {"tree-statistics": [trees / "s.csv"], "tree-relations": [trees / "r.csv"]}
    html = render_report(tmp_path, scores, options=evaluations | counted)
    for key in ("trees", "tree_relations", "segmenters", "parsers"):
        assert f'id="trees-{key}"' in html
    assert html.count("<script") == 1
    names = {path.name for folder in ("tables", "figures") for path in (out / folder).iterdir()}
    assert {"parsers.csv", "parsers.tex", "segmenters.csv", "trees.csv", "tree_relations.csv"} <= names
    assert "EDUs and trees" not in render_report(tmp_path, scores)
