"""Contrastive accuracy, counted by hand."""

import json

import pytest
from evaluation_fixtures import evaluate, write_lines

from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import (
    read_log_probabilities,
    read_user_log_probabilities,
    score_contrast,
    wilson_interval,
)
from docmt.evaluation.metrics import ContrastSettings


def item(name, *, phenomenon="pronoun", distance=None, kind=None, n=2, correct=0):
    return ContrastiveItem(name, phenomenon, ("s",), (("t",),) * n, correct, distance, kind)


def test_overall_by_distance_and_by_kind():
    items = [item("a", distance=1, kind="x"), item("b", distance=1), item("c", distance=10, kind="x", correct=1)]
    rows = score_contrast(items, {"a": [-1.0, -2.0], "b": [-2.0, -1.0], "c": [-9.0, -3.0]})
    accuracies = [(row["phenomenon"], row["distance"], row["kind"], round(row["value"], 2), row["n"]) for row in rows]
    assert accuracies == [
        ("pronoun", None, None, 66.67, 3),
        ("pronoun", 1, None, 50.0, 2),
        ("pronoun", 10, None, 100.0, 1),
        ("pronoun", None, "x", 100.0, 2),
    ]


def test_several_phenomena_get_a_row_over_all():
    items = [item("a"), item("b", phenomenon="deixis")]
    rows = score_contrast(items, {"a": [1, 0], "b": [0, 1]})
    assert [(row["phenomenon"], row["value"]) for row in rows] == [(None, 50.0), ("pronoun", 100.0), ("deixis", 0.0)]


@pytest.mark.parametrize(
    ("correct", "scores", "wrong", "first"),
    [
        (0, [-1.0, -1.0, -5.0], 0.0, 100.0),
        (1, [-1.0, -1.0, -5.0], 0.0, 0.0),
        (1, [-9.0, -1.0, -1.0], 0.0, 100.0),
        (2, [-1.0, -1.1, -0.5], 100.0, 100.0),
        (0, [-3.0, float("-inf"), -4.0], 100.0, 100.0),
        (0, [float("-inf")] * 3, 0.0, 100.0),
    ],
)
def test_ties_count_by_the_rule(correct, scores, wrong, first):
    for ties, value in (("wrong", wrong), ("first", first)):
        rules = ContrastSettings(ties=ties)
        (row,) = score_contrast([item("a", n=3, correct=correct)], {"a": scores}, rules)
        assert (row["value"], row["chance"]) == (value, pytest.approx(100 / 3))


def test_signatures_differ_by_rule():
    def signature(**rules):
        return score_contrast([item("a")], {"a": [1, 0]}, ContrastSettings(**rules))[0]["signature"]

    assert signature() == (
        "the right candidate scores strictly highest|score:log probability of the whole target|interval:Wilson 95 %"
    )
    rules = [{}, {"ties": "first"}, {"score": "per_token"}, {"score": "label_smoothed"}, {"context": "own"}]
    assert len({signature(**rule) for rule in rules}) == len(rules)


def test_wilson_interval_against_published_values():
    # Newcombe 1998, Table I: 81 of 263 and 0 of 20.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(5, 5)[1] == 1.0


NO_OUTPUT = "not written by `docmt decode score-candidates`"


def test_scores_that_do_not_fit_are_refused():
    """`test_scores_of_another_suite_are_refused` tests other differences."""
    with pytest.raises(UserError, match="1 scores for 2 candidates"):
        score_contrast([item("a")], {"a": [1.0]})
    with pytest.raises(UserError, match="item 'z'"):
        score_contrast([item("a")], {"a": [1.0, 0.0], "z": [1.0, 0.0]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, NO_OUTPUT) for content in ("[]", '{"items": [{"id": 1}]}', "3")),
        ('{"items": [{"id": "a", "scores": ["x"]}]}', NO_OUTPUT),
        (f'{{"items": [{{"id": "a", "scores": [{10**400}]}}]}}', NO_OUTPUT),
        ('{"items": [], "provenance": []}', "must be objects"),
        ('{"items": [], "provenance": {"contrast": 1}}', "must be objects"),
    ],
)
def test_other_json_is_no_log_probabilities(tmp_path, content, message):
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        read_log_probabilities(path)


ITEMS = [item("i"), item("j", n=3)]


def test_scores_are_taken_from_lines_or_json(tmp_path):
    expected = [{"id": "i", "scores": [-1.0, -0.025]}, {"id": "j", "scores": [0.0, float("-inf"), -1.0]}]
    lines = ["-1 -2.5e-2", "0\t-inf -1."]
    assert read_user_log_probabilities(write_lines(tmp_path / "s.txt", lines), ITEMS) == expected
    content = {"items": [{"id": "j", "scores": [0, -1, -2]}, {"id": "i", "scores": [-3, -4]}]}
    path = write_lines(tmp_path / "s.json", [json.dumps(content)])
    assert [row["id"] for row in read_user_log_probabilities(path, ITEMS)] == ["i", "j"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.txt", "1 2", "1 lines for 2 items"),
        ("s.txt", "1 2\n1 2", "item 'j' has 2 scores for 3 candidates"),
        ("s.txt", "1 2\n1 x 2", "line 2: '1 x 2' is not a list of numbers"),
        ("s.txt", "-1 nan\n-1 -2 -3", "scores of item 'i' are NaN"),
        ("s.txt", "-1 -2\n-1 -1_0 -2", "line 2: '-1 -1_0 -2' is not a list of numbers"),
        ("s.txt", "-1 -2\n-1 -٣ -2", "is not a list of numbers"),
        ("s.txt", "-1 -2\n-1 -0x1p3 -2", "is not a list of numbers"),
        ("s.txt", "3.5 7\n1 2 4", "item 'i' has the score 7, but log probabilities are at most 0: negate"),
        ("s.txt", "-1 -2\n-1 inf -2", "item 'j' has the score inf"),
        ("s.json", '{"items": [{"id": "i", "scores": [-1, 2]}, {"id": "j", "scores": [-1, -2, -3]}]}', "the score 2,"),
        ("s.json", '{"items": [{"id": "i", "scores": [1, 2]}]}', "the scores do not contain item 'j'"),
        (
            "s.json",
            '{"items": [{"id": "i", "scores": [1, 2]}, {"id": "k", "scores": [1, 2, 3]}]}',
            "item 'k' is not in",
        ),
        ("s.json", '{"items": [1]}', "not written by"),
    ],
)
def test_scores_of_another_suite_are_refused(tmp_path, name, text, words):
    with pytest.raises(UserError) as caught:
        read_user_log_probabilities(write_lines(tmp_path / name, [text]), ITEMS)
    assert words in str(caught.value)
    assert name in str(caught.value)


def test_the_command_writes_what_scoring_reads(tmp_path):
    suite = write_lines(tmp_path / "s.jsonl", (json.dumps(vars(one)) for one in ITEMS))
    scores, out = write_lines(tmp_path / "s.txt", ["-1 -2", "-3 -4 -5"]), tmp_path / "o.json"
    assert evaluate("import-output", file=scores, suite=suite, out=out) == 0
    assert json.loads(out.read_text())["items"][1] == {"id": "j", "scores": [-3, -4, -5]}
