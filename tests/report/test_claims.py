"""Claims: system comparisons, intervals over seeds and items, and verdicts."""

import math
from statistics import stdev

import numpy as np
import pytest
from score_rows import history, long_table, of_seeds, score, training

from docmt.errors import UserError
from docmt.evaluation.score_rows import group_means
from docmt.report.claims.claim import Claim, Term, parse_comparison
from docmt.report.claims.judging import correct, decide, judge

A, B, C = Term("a"), Term("b"), Term("c")


def claim(*comparisons, **keys):
    values = {"statement": "S", "metric": "s-BLEU", "test": "t", "comparisons": list(comparisons)} | keys
    return Claim.load(values, where="claim")


def judged(rows, *comparisons, histories=(), control=None, **keys):
    claims = {"name": claim(*comparisons, **keys, control="learned" if control else None), "learned": control}
    return judge("name", claims, long_table(rows), histories)


# Relations.


@pytest.mark.parametrize(
    ("text", "weights", "constant", "kind"),
    [
        ("a > b", {A: 1, B: -1}, 0, "above"),
        ("a < b", {A: -1, B: 1}, 0, "above"),
        ("a >= b", {A: 1, B: -1}, 0, "not below"),
        ("a <= b", {A: -1, B: 1}, 0, "not below"),
        ("a > 50", {A: 1}, -50, "above"),
        ("a - b > c - 2.5", {A: 1, B: -1, C: -1}, 2.5, "above"),
        ("a@x - a > b@x", {Term("a", "x"): 1, A: -1, Term("b", "x"): -1}, 0, "above"),
        ("a + a > b", {A: 2, B: -1}, 0, "above"),
        ("a-b > c", {Term("a-b"): 1, C: -1}, 0, "above"),
        ("  a   >\n b ", {A: 1, B: -1}, 0, "above"),
    ],
)  # fmt: skip
def test_relation_is_parsed(text, weights, constant, kind):
    (comparison,) = parse_comparison(text)
    assert (comparison.weights, comparison.constant, comparison.kind) == (weights, constant, kind)


def test_a_bound_and_a_chain():
    (comparison,) = parse_comparison("|a - b| <= 1.5")
    assert (comparison.weights, comparison.kind, comparison.bound) == ({A: 1, B: -1}, "within", 1.5)
    first, second = parse_comparison("a > b >= c")
    assert (first.text, first.kind, first.weights) == ("a > b", "above", {A: 1, B: -1})
    assert (second.text, second.kind, second.weights) == ("b >= c", "not below", {B: 1, C: -1})
    assert first.difference({A: 5.0, B: 3.0}) == 2.0


@pytest.mark.parametrize(
    "text",
    ["", "a", "a b", "a = b", "a >", "> b", "a>b", "a * b > c", "a - > b", "a > a", "5 > 4", "|a - b| < 1",
     "|a - b| <= x", "|a - b| <= -1", "|a| - b <= 1", "a > b c", "a@ > b", "a > -5", "a == b"],
)  # fmt: skip
def test_what_is_no_relation_is_refused_with_examples(text):
    with pytest.raises(UserError, match=r"claim\.comparisons\.0: .*valid: 'a > b'"):
        claim(text)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"metric": "s-BLUE"}, "must name a metric or a column of the training history (did you mean 's-BLEU'?)"),
        ({"test": None}, "test is missing: set the test set or suite for 's-BLEU'"),
        ({"metric": "dev_loss"}, "'dev_loss' is measured in training; remove test"),
        ({"step": 100}, "step applies to columns of the training history, not to 's-BLEU'"),
        ({"first_step_below": 1.5}, "first_step_below applies to columns of the training history, not to 's-BLEU'"),
        ({"metric": "dev_loss", "test": None, "step": 9, "first_step_below": 1.5}, "remove one of them"),
        (
            {"metric": "entropy_cross"},
            "'entropy_cross' depends on the number of keys that a mask leaves; use 'below_uniform_cross'",
        ),
        ({"distances": [1]}, "distances applies to contrastive accuracy and generative accuracy, not to 's-BLEU'"),
        ({"metric": "contrastive accuracy", "distances": [1], "kind": "k"}, "remove distances or kind"),
        ({"comparisons": []}, "claim.comparisons"),
        ({"margin": -1.0}, "claim.margin"),
        ({"min_seeds": 1}, "claim.min_seeds"),
        ({"margn": 1.0}, "claim.margn: unknown key; did you mean 'margin'?"),
    ],
)
def test_contradictions_in_a_claim_are_named(keys, message):
    with pytest.raises(UserError) as caught:
        claim("a > b", **keys)
    assert message in str(caught.value)


@pytest.mark.parametrize("keys", [{}, {"metric": "dev_loss", "test": None, "step": 50}])
def test_default_settings_equal_the_command(keys):
    original = claim("a > b", **keys)
    assert Claim.load(original.model_dump(mode="json"), where="claim") == original


# Intervals and verdicts.


def test_interval_equals_the_paired_t_test():
    finding = judged(of_seeds("a", 12.0, 14.0, 13.0) + of_seeds("b", 10.0, 11.0, 12.0), "a > b").comparisons[0]
    differences = [2.0, 3.0, 1.0]
    half = 2.919986 * stdev(differences) / math.sqrt(3)  # t of 0.95 with two degrees of freedom
    assert finding.seeds == (1, 2, 3)
    assert finding.mean == pytest.approx(2.0)
    assert finding.sd == pytest.approx(1.0)
    assert (finding.low, finding.high) == pytest.approx((2 - half, 2 + half), abs=1e-5)


@pytest.mark.parametrize("groups", [None, "50 60 70"])
def test_range_of_aligners_is_no_interval(groups):
    rows = of_seeds("a", 60.0, 60.0, 60.0, metric="APT", low=50.0, high=70.0, groups=groups)
    half = 2.919986 * 10 / math.sqrt(3) if groups else 0.0
    (comparison,) = judged(rows, "a > 50", metric="APT").comparisons
    assert (comparison.low, comparison.high) == pytest.approx((10 - half, 10 + half), abs=1e-4)


def verses(system, values, **keys):
    mean, half = float(np.mean(values)), 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    grouped = {"low": mean - half, "high": mean + half, "groups": group_means(list(values))}
    return of_seeds(system, mean, mean, mean, **{"metric": "log probability", "n": len(values)} | grouped | keys)


def test_common_difficulty_widens_no_interval():
    rng = np.random.default_rng(3)
    hard, noise = rng.normal(-40, 20, 2000), rng.normal(0, 1, (2, 2000))
    b = verses("b", hard)
    better, no_better, other_verses = hard + 0.37 + noise[0], hard + noise[1], rng.permutation(hard) + 0.37
    expected = {"supported": better, "refuted": no_better, "underpowered": other_verses}
    for verdict, values in expected.items():
        result = judged(verses("a", values) + b, "a > b", metric="log probability", margin=0.2)
        assert result.verdict == verdict
    result = judged(verses("a", better) + b, "a > b", metric="log probability").comparisons[0]
    assert result.high - result.mean == pytest.approx(1.729 / math.sqrt(2000), rel=0.35)


def test_groups_of_several_distances_count_by_their_items():
    halves = [10.0] * 20 + [30.0] * 20
    rows = [*verses("a", halves, distance=1), *verses("a", [40.0] * 20, distance=2)]
    rows = [each | {"metric": "contrastive accuracy"} for each in rows]
    measured = judged(rows, "a > 5", metric="contrastive accuracy", distances=[1, 2]).measured[A][1]
    assert measured.value == pytest.approx(80 / 3)
    first, second = measured.groups.values()
    assert sum(first) / 20 + sum(second) / 20 == pytest.approx(80 / 3)
    assert (first[0], first[-1], second[0]) == pytest.approx((20 / 3, 20, 40 / 3))
    # A distance with too few items for an error, and equal distances of two phenomena.
    single = [score("a", 30, seed=seed, distance=3, n=1) for seed in (1, 2, 3)]
    rows += [each | {"metric": "contrastive accuracy"} for each in single]
    measured = judged(rows, "a > 5", metric="contrastive accuracy", distances=[1, 2, 3]).measured[A][1]
    assert len(measured.groups) == 2
    rows = [
        each | {"metric": "contrastive accuracy", "phenomenon": name}
        for name, values in {"p": halves, "q": [40.0] * 40}.items()
        for each in verses("a", values, distance=1)
    ]
    measured = judged(rows, "a > 5", metric="contrastive accuracy", distances=[1]).measured[A][1]
    assert measured.value == pytest.approx(30)
    assert sum(sum(values) / 20 for values in measured.groups.values()) == pytest.approx(30)


@pytest.mark.parametrize(
    ("comparison", "margin", "low", "high", "verdict"),
    [
        ("a > b", 1.0, 1.1, 2.0, "supported"),
        ("a > b", 1.0, 1.0, 2.0, "inconclusive"),
        ("a > b", 1.0, 0.5, 1.5, "inconclusive"),
        ("a > b", 1.0, -0.5, 0.9, "refuted"),
        ("a > b", 0.0, 0.0, 0.0, "inconclusive"),
        ("a >= b", 1.0, -1.0, 0.0, "supported"),
        ("a >= b", 1.0, -1.1, 5.0, "inconclusive"),
        ("a >= b", 1.0, -3.0, -1.1, "refuted"),
        ("a >= b", 0.0, 0.0, 0.0, "supported"),
        ("|a - b| <= 1", 0.0, -1.0, 1.0, "supported"),
        ("|a - b| <= 1", 0.0, -1.5, 0.0, "inconclusive"),
        ("|a - b| <= 1", 0.0, -9.0, 9.0, "inconclusive"),
        ("|a - b| <= 1", 0.0, 1.1, 9.0, "refuted"),
        ("|a - b| <= 1", 0.0, -9.0, -1.1, "refuted"),
    ],
)
def test_interval_against_the_margin_decides(comparison, margin, low, high, verdict):
    (relation,) = parse_comparison(comparison)
    assert decide(relation, low, high, margin=margin) == verdict


def test_equal_scores_are_not_worse():
    rows = of_seeds("a", 5.0, 5.0, 5.0) + of_seeds("b", 5.0, 5.0, 5.0)
    assert judged(rows, "a > b", margin=1.0).verdict == "refuted"
    assert judged(rows, "a > b").verdict == "underpowered"
    assert judged(rows, "a >= b").verdict == judged(rows, "|a - b| <= 0").verdict == "supported"


def test_all_comparisons_are_claimed():
    rows = of_seeds("a", 9.0, 9.1, 9.2) + of_seeds("b", 5.0, 5.1, 5.2) + of_seeds("c", 1.0, 5.0, 9.0)
    assert judged(rows, "a > b", "b > 4").verdict == "supported"
    assert judged(rows, "a > b", "b > c").verdict == "underpowered"
    assert judged(rows, "a > b", "b > c", "b > a").verdict == "refuted"
    assert judged(rows, "a > b", "b > d").verdict == "not run"


@pytest.mark.parametrize(
    "rows",
    [
        [],
        of_seeds("a", 9.0, 9.0, 9.0),
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0),
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0, 5.0),
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0, math.nan, 5.0),
        of_seeds("a", 9.0, 9.0, 9.0) + [score("b", 5.0, seed=seed) for seed in (3, 4, 5)],
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0, 5.0, 5.0, test="u"),
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0, 5.0, 5.0, metric="chrF"),
        of_seeds("a", 9.0, 9.0, 9.0) + of_seeds("b", 5.0, 5.0, 5.0, dataset="e"),
    ],
)
def test_without_enough_seeds_there_is_no_verdict(rows):
    assert judged(rows, "a > b", dataset="d").verdict == "not run"


def test_the_seeds_that_all_systems_have_are_compared():
    rows = of_seeds("a", 9.0, 8.0, 7.0, 100.0) + of_seeds("b", 5.0, math.nan, 3.0)
    finding = judged(rows, "a > b", min_seeds=2).comparisons[0]
    assert (finding.seeds, finding.mean, finding.verdict) == ((1, 3), 4.0, "supported")


def test_datasets_of_one_relation_are_kept_apart():
    levels = {"x": 10.0, "y": 4.0}
    rows = [each for name, level in levels.items() for each in of_seeds("a", level, level, level, dataset=name)]
    assert judged(rows, "a@x - a@y > 5").comparisons[0].mean == 1.0
    assert judged(rows, "a > 5", dataset="y").verdict == "refuted"
    with pytest.raises(UserError, match=r"'S.*': a has scores on x, y: add `dataset`"):
        judged(rows, "a > 5")
    histories = [history("a", dataset=name, step=[100], dev_loss=[1.0]) for name in levels]
    with pytest.raises(UserError, match="a has scores on x, y"):
        judged([], "a > 5", metric="dev_loss", test=None, histories=histories)


# Controls and power.

LEARNED = claim("a > 90", metric="contrastive accuracy", test="suite")


def suite(*values):
    return of_seeds("a", *values, metric="contrastive accuracy", test="suite")


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        (suite(99.0, 99.0, 99.0), "supported"),
        (suite(50.0, 50.0, 50.0), "control failed"),
        (suite(99.0, 99.0, 50.0), "control failed"),
        (suite(99.0, 99.0), "not run"),
        ([], "not run"),
    ],
)
def test_claim_needs_its_control(accuracies, verdict):
    rows = of_seeds("a", 9.0, 9.1, 9.2) + of_seeds("b", 5.0, 5.1, 5.2)
    assert judged(rows + accuracies, "a > b", control=LEARNED).verdict == verdict
    assert judged(rows + accuracies, "a > b").verdict == "supported"


def test_failed_control_precedes_missing_scores():
    assert judged(suite(50.0, 51.0, 52.0), "a > b", control=LEARNED).verdict == "control failed"
    assert judged(suite(99.0, 99.0, 99.0), "a > b", control=LEARNED).verdict == "not run"


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((4.0, 0.0, 4.0), "inconclusive"),  # 2.67 ± 2.31: ten seeds show 1.97
        ((3.0, -1.0, 3.0), "underpowered"),  # 1.67 ± 2.31
        ((-1.0, 1.0, 0.0), "underpowered"),
        ((4.0, 3.9, 4.0), "supported"),
    ],
)
def test_effects_that_ten_seeds_cannot_show_are_underpowered(values, verdict):
    finding = judged(of_seeds("a", *values) + of_seeds("b", 0.0, 0.0, 0.0), "a > b").comparisons[0]
    assert finding.verdict == verdict
    assert finding.detectable == pytest.approx(2.6969 * finding.sd / math.sqrt(10), rel=1e-4)


def family(**scores):
    """Judge `a > 0` for every name, or `a > 1000` if it starts with `no`, over scores by seed."""
    rows = [row for name, values in scores.items() for row in of_seeds("a", *values, test=name)]
    claims = {name: claim("a > 1000" if name.startswith("no") else "a > 0", test=name) for name in scores}
    judgments = [judge(name, claims, long_table(rows), []) for name in claims]
    return [judgment.verdict for judgment in judgments], correct(judgments)


CLOSE = (1.0, 2.0, 0.6, 1.1)  # p = 0.014 by the one-sided t test


@pytest.mark.parametrize(
    ("scores", "raw", "corrected"),
    [
        ({"x": CLOSE}, ["supported"], ["supported"]),
        ({f"x{i}": CLOSE for i in range(3)}, ["supported"] * 3, ["supported"] * 3),
        ({f"x{i}": CLOSE for i in range(4)}, ["supported"] * 4, ["undecided"] * 4),
        ({"x": CLOSE, **{f"y{i}": (9, 9, 9.1, 9) for i in range(9)}}, ["supported"] * 10, ["supported"] * 10),
        ({"x": CLOSE, "y": (-1, 0, 1, 2), "z": (1,)}, ["supported", "underpowered", "not run"],
         ["supported", "undecided", "–"]),
        ({"no": (3, 4, 5), "x": (-1, 0, 1), "y": (1, 1, 1)}, ["refuted", "underpowered", "supported"],
         ["refuted", "undecided", "supported"]),
    ],
)  # fmt: skip
def test_verdicts_are_corrected_over_claims(scores, raw, corrected):
    assert family(**scores) == (raw, corrected)


def test_claims_with_several_comparisons_are_corrected():
    rows = of_seeds("a", *CLOSE) + of_seeds("b", -9.0, -9.1, -9.0, -9.0)
    supported = judged(rows, "a > 0", "a > b")
    assert supported.p_supported == pytest.approx(supported.comparisons[0].p_supported)
    refuted = judged(rows, "a < 0", "a > b", "a > b")
    assert refuted.p_refuted == pytest.approx(3 * supported.p_supported)
    assert (refuted.verdict, correct([refuted])) == ("refuted", ["refuted"])


def test_underpowered_part_decides():
    rows = of_seeds("a", 4.0, 0.0, 4.0) + of_seeds("b", 0.0, 0.0, 0.0) + of_seeds("c", -1.0, 1.0, 0.0)
    assert judged(rows, "a > b").verdict == "inconclusive"
    assert judged(rows, "a > b", "c > b").verdict == "underpowered"
    assert judged(rows, "a > b", "c > b", "b > 5").verdict == "refuted"


# What is measured.


def test_accuracy_by_distance_or_kind():
    keys = {"metric": "contrastive accuracy"}
    rows = of_seeds("a", 90.0, 90.0, 90.0, phenomenon="p", **keys)
    for value, n, part in ((100.0, 10, {"distance": 1}), (40.0, 30, {"distance": 2}), (0.0, 10, {"distance": 3}),
                           (7.0, 9, {"kind": "k"})):  # fmt: skip
        rows += of_seeds("a", value, value, value, phenomenon="p", n=n, **part, **keys)
    assert judged(rows, "a > 50", **keys).comparisons[0].mean == 40.0
    assert judged(rows, "a > 50", distances=[1, 2], **keys).comparisons[0].mean == pytest.approx(5.0)
    assert judged(rows, "a > 50", kind="k", **keys).comparisons[0].mean == -43.0
    assert judged(rows, "a > 50", distances=[9], **keys).verdict == "not run"


def test_suite_counts_as_a_whole_by_default():
    keys = {"metric": "contrastive accuracy"}
    rows = of_seeds("a", 80.0, 80.0, 80.0, **keys)
    rows += of_seeds("a", 70.0, 70.0, 70.0, phenomenon="p", **keys)
    rows += of_seeds("a", 90.0, 90.0, 90.0, phenomenon="q", **keys)
    assert judged(rows, "a > 50", **keys).comparisons[0].mean == 30.0
    assert judged(rows, "a > 50", phenomenon="q", **keys).comparisons[0].mean == 40.0


TRAININGS = [training("a", seed) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    ("metric", "step", "value"),
    [
        ("dev_loss", "best", 3.0),
        ("dev_loss", "last", 4.0),
        ("dev_loss", 50, 5.0),
        ("below_uniform_cross", "best", 5.0),
        ("below_uniform_cross", "last", 5.0),
        ("below_uniform_cross", 100, 6.0),
        ("below_uniform_cross", 200, None),
        ("below_uniform_cross", 75, None),
        ("below_uniform_cross_window", "best", None),
    ],
)
def test_history_is_read_at_an_update(metric, step, value):
    conclusion = judged([], "a > 0", histories=TRAININGS, metric=metric, test=None, step=step)
    assert conclusion.verdict == ("not run" if value is None else "supported")
    if value is not None:
        assert conclusion.comparisons[0].mean == value


def test_of_equal_losses_the_first_is_the_best():
    runs = [history("a", seed, step=[1, 2, 3], dev_loss=[4, 3, 3], below_uniform_cross=[7, 6, 5]) for seed in (1, 2, 3)]
    conclusion = judged([], "a > 0", histories=runs, metric="below_uniform_cross", test=None)
    assert conclusion.comparisons[0].mean == 6


def test_the_update_at_which_a_loss_is_reached():
    """Losses are 4, 5 and 6 at update 50, 2, 3 and 4 at 150."""
    conclusion = judged([], "a > 0", histories=TRAININGS, metric="dev_loss", test=None, first_step_below=4.5)
    assert {seed: each.value for seed, each in conclusion.measured[A].items()} == {1: 50, 2: 150, 3: 150}
    assert conclusion.verdict == "supported"


@pytest.mark.parametrize(
    ("comparison", "verdict", "low", "high"),
    [
        ("a > 100", "supported", 34.67, math.inf),
        ("a > 300", "inconclusive", -165.33, math.inf),
        ("a < 300", "inconclusive", -math.inf, 165.34),
        ("a < 100", "refuted", -math.inf, -34.66),
        ("a - b > 30", "inconclusive", -math.inf, math.inf),
        ("|a - 150| <= 100", "inconclusive", -15.34, math.inf),
        ("|a - 10| <= 100", "refuted", 124.66, math.inf),
    ],
)
def test_unreached_update_is_the_last(comparison, verdict, low, high):
    """Seed 1 reaches 2.5 at update 150. The other losses stay above it until the end, at update 200."""
    histories = [training(system, seed=seed) for system in "ab" for seed in (1, 2, 3)]
    conclusion = judged([], comparison, histories=histories, metric="dev_loss", test=None, first_step_below=2.5)
    updates = [(each.value, each.is_at_least) for each in conclusion.measured[A].values()]
    assert updates == [(150, False), (200, True), (200, True)]
    assert conclusion.verdict == verdict
    assert (conclusion.comparisons[0].low, conclusion.comparisons[0].high) == pytest.approx((low, high), abs=0.01)
