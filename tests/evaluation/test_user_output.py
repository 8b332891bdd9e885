"""Output of systems made elsewhere: what fits is taken line by line, what does not is refused in one line."""

import json

import pytest
from evaluation_fixtures import evaluate, make_hypotheses, write_hypotheses, write_split

from docmt.corpora.documents import DocumentIndex
from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import read_user_log_probabilities
from docmt.evaluation.hypotheses import read_user_hypotheses

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


def test_a_line_for_each_document_is_not_aligned_unless_it_is_a_sentence(tmp_path):
    found = read_user_hypotheses(write(tmp_path / "h.de", "1 2\n4 5\n"), INDEX)
    assert [one.sentences for one in found] == [["1 2"], ["4 5"]]
    assert [one.first_sentence for one in found] == [0, 3]
    assert not any(one.aligned for one in found)
    single = read_user_hypotheses(tmp_path / "h.de", DocumentIndex(("a", "b"), (1, 1)))
    assert [one.aligned for one in single] == [True, True]


@pytest.mark.parametrize("text", ["", "1\n2\n3\n", "1\n" * 6])
def test_other_numbers_of_lines_are_refused(tmp_path, text):
    with pytest.raises(UserError, match="5 sentences in 2 documents: write one line for each sentence"):
        read_user_hypotheses(write(tmp_path / "h.de", text), INDEX)


def test_own_jsonl_is_checked_and_kept(tmp_path):
    own = make_hypotheses(["1", "2", "3", "4", "5"], (2, 1, 2))
    path = write_hypotheses(tmp_path / "h.jsonl", own)
    assert read_user_hypotheses(path, INDEX) == own
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
        ("s.txt", "1 2\n1 2\n", "item 'j' has 2 scores for 3 candidates"),
        ("s.txt", "1 2\n1 x 2\n", "line 2: '1 x 2' is not a list of numbers"),
        ("s.txt", "1 nan\n1 2 3\n", "scores of item 'i' are not numbers (NaN)"),
        ("s.json", '{"items": [{"id": "i", "scores": [1, 2]}]}', "the scores lack item 'j'"),
        (
            "s.json",
            '{"items": [{"id": "i", "scores": [1, 2]}, {"id": "k", "scores": [1, 2, 3]}]}',
            "item 'k' is not in",
        ),
        ("s.json", '{"items": [1]}', "not an output of"),
    ],
)
def test_scores_of_another_suite_are_refused(tmp_path, name, text, words):
    with pytest.raises(UserError) as caught:
        read_user_log_probabilities(write(tmp_path / name, text), ITEMS)
    assert words in str(caught.value)
    assert name in str(caught.value)


def test_the_commands_write_what_scoring_reads(tmp_path):
    prefix = write_split(tmp_path, {"a": 3, "b": 2})["prefix"]
    given, out = write(tmp_path / "h.de", "1\n2\n3\n4\n5\n"), tmp_path / "h.jsonl"
    assert evaluate("take-hypotheses", hypotheses=given, prefix=prefix, out=out) == 0
    assert read_user_hypotheses(out, INDEX) == read_user_hypotheses(given, INDEX)
    suite = write(tmp_path / "s.jsonl", "".join(json.dumps(vars(item)) + "\n" for item in ITEMS))
    scores, out = write(tmp_path / "s.txt", "1 2\n3 4 5\n"), tmp_path / "o.json"
    assert evaluate("take-log-probabilities", scores=scores, suite=suite, out=out) == 0
    assert json.loads(out.read_text())["items"][1] == {"id": "j", "scores": [3, 4, 5]}
