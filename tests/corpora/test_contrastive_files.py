"""Reading contrastive test sets."""

import json

import pytest

from docmt.corpora.suite_items import ContrastiveItem, read_suite
from docmt.errors import UserError

GOOD = {"id": "first", "phenomenon": "p", "src": ["s"], "distance": 2, "candidates": [["x"], ["y"]], "correct": 1}


def write(path, *values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


def test_an_item_keeps_what_scoring_needs(tmp_path):
    path = write(tmp_path / "suite.jsonl", GOOD, GOOD | {"id": "second", "kind": "k", "sentence": 0})
    assert read_suite(path) == [
        ContrastiveItem("first", "p", ("s",), (("x",), ("y",)), 1, 2, None),
        ContrastiveItem("second", "p", ("s",), (("x",), ("y",)), 1, 2, "k"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": [["x"]], "correct": 0}, "line 2: `correct` is 0, but there are 1"),
        ({"correct": 2}, "`correct` is 2"),
        ({"is_prefix": "no"}, "`is_prefix` must be true or false, not 'no'"),
        ({"correct": "0"}, "`correct` is '0'"),
        ({"id": "first"}, "duplicate item 'first'"),
        ({"candidates": [["x"], ["y", "z"]]}, "a candidate has 2 sentences, but src has 1"),
        ({"candidates": ["x", "y"]}, "list of lists of sentences"),
        ({"candidates": [[1], [2]]}, "list of lists of sentences"),
        ({"src": []}, "at least one sentence"),
        ({"src": "s"}, "at least one sentence"),
    ],
)
def test_bad_items_are_refused_with_their_line(tmp_path, change, message):
    path = write(tmp_path / "suite.jsonl", GOOD, GOOD | {"id": "second"} | change)
    with pytest.raises(UserError, match=message):
        read_suite(path)


@pytest.mark.parametrize("key", ["id", "phenomenon", "src", "candidates", "correct"])
def test_a_missing_key_is_named(tmp_path, key):
    path = write(tmp_path / "suite.jsonl", GOOD, {k: v for k, v in GOOD.items() if k != key})
    with pytest.raises(UserError, match=f"line 2: key '{key}' is missing"):
        read_suite(path)


def test_other_json_and_empty_files_are_refused(tmp_path):
    with pytest.raises(UserError, match="line 2: must be an object"):
        read_suite(write(tmp_path / "suite.jsonl", GOOD, []))
    with pytest.raises(UserError, match="empty"):
        read_suite(write(tmp_path / "suite.jsonl"))
