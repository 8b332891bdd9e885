"""The long table: accepted and refused input, and reading after writing."""

import json

import pandas as pd
import pytest
from score_rows import score, write_scores

from docmt.errors import UserError
from docmt.report.input_files import gather_scores, read_scores_table
from docmt.report.score_files import COLUMNS, gather_rows, write_scores_table

ROW = score("s", 12.5, n=3, phenomenon=None, distance=None, signature="sig")


def write(path, *rows, **provenance):
    return write_scores(path, rows, commit="abc", **provenance)


def test_rows_of_all_files_with_provenance(tmp_path):
    one = write(tmp_path / "1.json", ROW, fingerprint="f00", docmt="0.1", versions={"python": "3.11"})
    two = write(tmp_path / "2.json", ROW | {"seed": 2, "distance": 4, "data": "a" * 12})
    table = gather_scores([one, two])
    assert list(table.columns) == COLUMNS
    assert table["seed"].tolist() == [1, 2]
    assert table.loc[0, ["commit", "fingerprint", "versions"]].tolist() == ["abc", "f00", "docmt 0.1; python 3.11"]
    assert table.loc[1, "data"] == "a" * 12
    assert table.loc[1, "distance"] == 4


def test_reads_back_what_was_written(tmp_path):
    names = ["NA", "nan", "a,b", 'q"q', "ü 🙂", "null"]
    rows = [
        ROW | {"system": name, "value": value, "data": "1e" * 6}
        for name, value in zip(names, [1 / 3, None, 1e-9, 5, 6, 7], strict=True)
    ]
    path = write(tmp_path / "1.json", *rows, fingerprint="001234567890")
    table = gather_scores([path])
    write_scores_table(tmp_path / "scores.csv", gather_rows([path]))
    assert (tmp_path / "scores.csv").read_text(encoding="utf-8") == table.to_csv(index=False)
    again = read_scores_table(tmp_path / "scores.csv")
    pd.testing.assert_frame_equal(table, again)
    assert again.loc[0, ["fingerprint", "data"]].tolist() == ["001234567890", "1e1e1e1e1e1e"]
    assert again["system"].tolist() == names
    assert pd.isna(again["value"][1])


def test_same_score_twice_is_refused_naming_both_files(tmp_path):
    one, two = write(tmp_path / "1.json", ROW), write(tmp_path / "2.json", ROW | {"value": 9})
    with pytest.raises(UserError) as caught:
        gather_scores([one, two])
    assert str(one) in str(caught.value)
    assert str(two) in str(caught.value)
    assert "metric s-BLEU" in str(caught.value)


def test_rows_scored_against_different_texts_are_refused(tmp_path):
    one = write(tmp_path / "1.json", ROW | {"data": "a" * 12})
    other = ROW | {"system": "z", "data": "b" * 12}
    two = write(tmp_path / "2.json", other)
    message = "s-BLEU of dataset d, test t: system z was scored against a different text .SHA-256 b+….* than system s "
    with pytest.raises(UserError, match=message):
        gather_rows([one, two])
    elsewhere = [other | change for change in ({"test": "u"}, {"metric": "CXMI"}, {"dataset": "e"})]
    rows = gather_rows([one, write(tmp_path / "3.json", *elsewhere), write(tmp_path / "4.json", ROW | {"seed": 3})])
    assert len(rows) == 5
    write_scores_table(tmp_path / "scores.csv", [rows[0], rows[1] | {"test": "t"}])
    with pytest.raises(UserError, match="against a different text"):
        read_scores_table(tmp_path / "scores.csv")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", ["value", "low"])
def test_what_is_no_number_is_said(tmp_path, caplog, key, number):
    (row,) = gather_rows([write(tmp_path / "1.json", ROW | {key: number})])
    assert row[key] is None
    assert row["value"] == (None if key == "value" else 12.5)
    assert (
        row["signature"] == ("not computed: " if key == "value" else "sig|warning:") + f"no number, but {key} {number}"
    )
    assert f"s-BLEU has no number, but {key} {number}" in caplog.text


def test_rows_that_differ_in_kind_only_are_two(tmp_path):
    path = write(tmp_path / "1.json", ROW | {"kind": "x"}, ROW | {"kind": "y"})
    assert gather_scores([path])["kind"].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "key 'scores' is missing"),
        ("[]", "not a score file"),
        ('{"scores": [1]}', "not a score file"),
        ('{"scores": [], "provenance": [1]}', "not a score file"),
        ('{"scores": [], "provenance": {"versions": 1}}', "not a score file"),
        ('{"scores": [{"dataset": "d"}]}', "score 1 has no key 'system'"),
        ('{"scores": []}', "no scores"),
        (json.dumps({"scores": [ROW | {"system": ""}]}), "score 1 has no key 'system'"),
        ("{", "line 1 is not JSON"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UserError, match=message):
        gather_scores([tmp_path / "x.json"])


@pytest.mark.parametrize(
    "bad",
    [
        {"value": "high"}, {"value": 10**400}, {"low": "x"}, {"chance": {}}, {"seed": 1.5}, {"distance": "near"},
        {"n": 10**30}, {"n": float("nan")}, {"kind": ["a"]}, {"system": "\ud800"}, {"system": "a\rb"},
    ],
)  # fmt: skip
def test_impossible_values_are_refused(tmp_path, bad):
    (key,) = bad
    with pytest.raises(UserError, match=rf"1.json: score 2: the {key} cannot be "):
        gather_rows([write(tmp_path / "1.json", ROW, ROW | bad)])


@pytest.mark.parametrize(
    "bad", [{"n": 0}, {"n": None}, {"groups": "1"}, {"groups": " 1" * 21}, {"groups": " ".join(["x"] * 20)}]
)
def test_values_without_items_and_odd_groups_are_refused(tmp_path, bad):
    with pytest.raises(UserError, match=r"scores of dataset d, .* n must be above 0"):
        gather_rows([write(tmp_path / "1.json", ROW | bad)])
    write_scores_table(tmp_path / "scores.csv", [ROW | bad])
    with pytest.raises(UserError, match=r"scores of dataset d, .* n must be above 0"):
        read_scores_table(tmp_path / "scores.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "column 'dataset' is missing"),
        ("", "not a CSV table"),
        (
            "dataset,system,seed,test,metric,value,n,signature\nd,s,1,t,m,many,3,x\n",
            "line 2, column 'value' is not a number: 'many'",
        ),
        ("dataset,system,seed,test,metric,value,n,signature\nd,,1,t,m,1,3,x\n", "column 'system' has empty cells"),
    ],
)
def test_other_tables_are_refused(tmp_path, content, message):
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(UserError, match=message):
        read_scores_table(tmp_path / "x.csv")


def test_scores_of_another_study_are_refused(tmp_path):
    one = write(tmp_path / "1.json", ROW, fingerprint="f00")
    two = write(tmp_path / "2.json", ROW | {"seed": 2}, fingerprint="f01")
    write_scores_table(tmp_path / "scores.csv", gather_rows([one, two], fingerprints=["f01", "f00", "f02"]))
    for read, files in ((gather_scores, [one, two]), (read_scores_table, tmp_path / "scores.csv")):
        assert len(read(files, fingerprints=["f01", "f00"])) == len(read(files)) == 2
        with pytest.raises(UserError, match=r"scores of dataset d, system s, seed 2, test t: their fingerprint f01"):
            read(files, fingerprints=["f00"])
    with pytest.raises(UserError, match="seed 1"):
        gather_scores([write(tmp_path / "3.json", ROW)], fingerprints=["f00"])
