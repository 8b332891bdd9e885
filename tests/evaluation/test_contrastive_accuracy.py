"""Contrastive accuracy by hand-counted cases."""

import pytest

from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.contrastive_accuracy import read_log_probabilities, score_contrast, wilson_interval
from docmt.evaluation.metrics import ContrastSettings


def item(name, *, phenomenon="pronoun", distance=None, kind=None, n=2, correct=0):
    return ContrastiveItem(name, phenomenon, ("s",), (("t",),) * n, correct, distance, kind)


def test_overall_by_distance_and_by_kind():
    items = [item("a", distance=1, kind="x"), item("b", distance=1), item("c", distance=10, kind="x", correct=1)]
    rows = score_contrast(items, {"a": [-1.0, -2.0], "b": [-2.0, -1.0], "c": [-9.0, -3.0]})
    found = [(row["phenomenon"], row["distance"], row["kind"], round(row["value"], 2), row["n"]) for row in rows]
    assert found == [
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


def test_signatures_differ_by_rule_and_the_default_is_what_it_was():
    def signature(**rules):
        return score_contrast([item("a")], {"a": [1, 0]}, ContrastSettings(**rules))[0]["signature"]

    assert signature() == (
        "the right candidate scores strictly highest|score:log probability of the whole target|interval:Wilson 95 %"
    )
    rules = [{}, {"ties": "first"}, {"score": "per_token"}, {"score": "label_smoothed"}, {"context": "own"}]
    assert len({signature(**rule) for rule in rules}) == len(rules)


def test_a_constant_scorer_an_oracle_and_their_opposite():
    items = [item(f"i{i}", n=2 + i % 3, correct=i % 2) for i in range(60)]
    constant = {one.id: [0.0] * len(one.candidates) for one in items}
    oracle = {one.id: [float(i == one.correct) for i in range(len(one.candidates))] for one in items}
    worst = {name: [-value for value in values] for name, values in oracle.items()}
    assert [score_contrast(items, each)[0]["value"] for each in (constant, oracle, worst)] == [0.0, 100.0, 0.0]
    assert score_contrast(items, constant, ContrastSettings(ties="first"))[0]["value"] == 50.0


def test_wilson_interval_against_published_values():
    # Newcombe 1998, Table I: 81 of 263 and 0 of 20.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(5, 5)[1] == 1.0


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "lack item 'a'"),
        ({"a": [1.0]}, "1 scores for 2 candidates"),
        ({"a": [1.0, float("nan")]}, "not numbers"),
        ({"a": [1.0, 0.0], "z": [1.0, 0.0]}, "item 'z'"),
    ],
)
def test_scores_that_do_not_fit_are_refused(scores, message):
    with pytest.raises(UserError, match=message):
        score_contrast([item("a")], scores)


@pytest.mark.parametrize("content", ["[]", '{"items": [{"id": 1}]}', '{"items": [{"id": "a", "scores": ["x"]}]}', "3"])
def test_other_json_is_no_log_probabilities(tmp_path, content):
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(UserError, match="not an output of `docmt decode contrast`"):
        read_log_probabilities(path)
