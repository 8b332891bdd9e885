"""Output of systems made elsewhere: what fits is taken line by line, what does not is refused in one line."""

import json

import pytest

from docmt.cli.main import main
from docmt.corpora.documents import DocumentIndex
from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.user_output import read_user_hypotheses, read_user_log_probabilities

INDEX = DocumentIndex(("a", "b"), (3, 2))
ITEMS = [ContrastiveItem(name, "p", ("s",), (("x",), ("y",), ("z",))[:n], 0) for name, n in (("i", 2), ("j", 3))]


def write(path, text):
    path.write_bytes(text.encode())
    return path


def test_a_line_for_each_sentence_keeps_the_alignment(tmp_path):
    found = read_user_hypotheses(write(tmp_path / "h.de", "1\r\n\n3 \u2028 x\n4\n5\n"), INDEX)
    assert [one.sentences for one in found] == [["1", "", "3 \u2028 x"], ["4", "5"]]
    assert [(one.instance, one.document, one.first_sentence, one.n_sentences) for one in found] == [
        (0, "a", 0, 3), (1, "b", 3, 2),
    ]  # fmt: skip
    assert all(one.aligned for one in found)


def test_a_line_for_each_document_is_not_aligned(tmp_path):
    found = read_user_hypotheses(write(tmp_path / "h.de", "1 2\n4 5\n"), INDEX)
    assert [one.sentences for one in found] == [["1 2"], ["4 5"]]
    assert [one.first_sentence for one in found] == [0, 3]
    assert not any(one.aligned for one in found)


def test_documents_of_one_sentence_are_aligned(tmp_path):
    found = read_user_hypotheses(write(tmp_path / "h", "x\ny\n"), DocumentIndex(("a", "b"), (1, 1)))
    assert [one.aligned for one in found] == [True, True]


@pytest.mark.parametrize("text", ["", "1\n2\n3\n", "1\n" * 6])
def test_other_numbers_of_lines_are_refused(tmp_path, text):
    with pytest.raises(UserError, match="5 sentences in 2 documents: write one line for each sentence"):
        read_user_hypotheses(write(tmp_path / "h.de", text), INDEX)


def test_own_jsonl_is_checked_and_kept(tmp_path):
    line = {"instance": 0, "document": "a", "first_sentence": 0, "n_sentences": 2, "aligned": True}
    rows = [
        line | {"sentences": ["1", "2"]},
        line | {"instance": 1, "first_sentence": 2, "n_sentences": 1, "sentences": ["3"]},
        line | {"instance": 2, "document": "b", "first_sentence": 3, "sentences": ["4", "5"]},
    ]
    path = write(tmp_path / "h.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [one.n_sentences for one in read_user_hypotheses(path, INDEX)] == [2, 1, 2]
    with pytest.raises(UserError, match="belong"):
        read_user_hypotheses(path, DocumentIndex(("a", "b"), (2, 3)))


def test_scores_are_taken_from_lines_or_json(tmp_path):
    expected = [{"id": "i", "scores": [-1.0, 2.5]}, {"id": "j", "scores": [0.0, float("-inf"), 1.0]}]
    assert read_user_log_probabilities(write(tmp_path / "s.txt", "-1 2.5\n0\t-inf 1\n"), ITEMS) == expected
    content = {"items": [{"id": "j", "scores": [0, 1, 2]}, {"id": "i", "scores": [3, 4]}]}
    path = write(tmp_path / "s.json", json.dumps(content))
    assert [row["id"] for row in read_user_log_probabilities(path, ITEMS)] == ["i", "j"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.txt", "1 2\n", "1 lines for 2 items"),
        ("s.txt", "1 2\n1 2\n", "item 2 (j) has 3 candidates"),
        ("s.txt", "1 2\n1 x 2\n", "line 2: '1 x 2' is not a list of numbers"),
        ("s.txt", "1 nan\n1 2 3\n", "item 1 (i)"),
        ("s.json", '{"items": [{"id": "i", "scores": [1, 2]}]}', "lacks item 'j'"),
        ("s.json", '{"items": [1]}', "not an output of"),
    ],
)
def test_scores_of_another_suite_are_refused(tmp_path, name, text, words):
    with pytest.raises(UserError) as caught:
        read_user_log_probabilities(write(tmp_path / name, text), ITEMS)
    assert words in str(caught.value)


def test_the_commands_write_what_scoring_reads(tmp_path):
    write(tmp_path / "t.documents.tsv", "document\tn_sentences\na\t3\nb\t2\n")
    given, out = write(tmp_path / "h.de", "1\n2\n3\n4\n5\n"), tmp_path / "h.jsonl"
    options = ["--hypotheses", str(given), "--prefix", str(tmp_path / "t"), "--out", str(out)]
    assert main(["evaluate", "take-hypotheses", *options]) == 0
    assert read_user_hypotheses(out, INDEX) == read_user_hypotheses(given, INDEX)
    suite = write(tmp_path / "s.jsonl", "".join(json.dumps(vars(item)) + "\n" for item in ITEMS))
    scores = write(tmp_path / "s.txt", "1 2\n3 4 5\n")
    options = ["--scores", str(scores), "--suite", str(suite), "--out", str(tmp_path / "o.json")]
    assert main(["evaluate", "take-log-probabilities", *options]) == 0
    assert json.loads((tmp_path / "o.json").read_text())["items"][1] == {"id": "j", "scores": [3, 4, 5]}
