"""Paired tests against a baseline: the rate of false positives, and agreement with other programs."""

import importlib.util
import itertools
import json
import logging
import random
from math import comb
from pathlib import Path

import numpy as np
import pytest
from architectures import slow_but
from evaluation_fixtures import (
    by_metric,
    evaluate,
    make_hypotheses,
    make_test,
    write_hypotheses,
    write_lines,
    write_split,
)
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from scipy.stats import t

from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation import metrics
from docmt.evaluation.bleu import count_segments
from docmt.evaluation.metrics import METRICS, EvaluationSettings, Metric
from docmt.evaluation.significance import (
    MIN_ITEMS,
    MIN_SEGMENTS,
    binomial_p,
    bootstrap,
    bootstrap_test,
    compare_systems,
    compare_translations,
    compare_verdicts,
    randomization_p,
)

FOLDER = Path(__file__).parents[2] / "benchmarks"
SPECIFICATION = importlib.util.spec_from_file_location("significance_benchmark", FOLDER / "significance.py")
simulation = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(simulation)

SETTINGS = EvaluationSettings(metrics=["s-BLEU"])
WORDS = [f"w{i}" for i in range(50)]
TESTED = [*simulation.TESTED, "contrastive accuracy"]
N_TRIALS = 200


def make_run(sentences, *, aligned=True, length=1):
    starts = range(0, len(sentences), length)
    translations = sentences if aligned else [sentences[start : start + length] for start in starts]
    documents = [f"d{start // 4}" for start in starts]
    return make_hypotheses(translations, [length] * len(starts), documents=documents, aligned=aligned)


def noisy(sentences, rng, share):
    return [" ".join(rng.choice(WORDS) if rng.random() < share else w for w in line.split()) for line in sentences]


def make_reference(rng, n=60):
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(4, 12))) for _ in range(n)]


def translated(run, reference, settings=SETTINGS):
    return make_test(run, reference, settings=settings)


def compare(ours, theirs, reference, settings=SETTINGS):
    tests = ([translated(run, reference, settings) for run in runs] for runs in (ours, theirs))
    return compare_translations(*tests)


@pytest.mark.parametrize("n", slow_but((1, 5), (1, 2, 3, 5, 8, 12, 25)))
@pytest.mark.parametrize("metric", TESTED)
def test_equal_systems_rarely_get_stars(metric, n):
    """benchmarks/significance.py tests 100 segments and more pairs."""
    rng = random.Random(f"{metric} {n}")
    marks = [simulation.simulate(metric, n, rng).mark for _ in range(100)]
    assert marks.count("**") <= 2
    assert marks.count("") >= (100 if n < 6 else 90)


@pytest.mark.parametrize("metric", slow_but(("s-BLEU", "contrastive accuracy"), TESTED))
def test_better_systems_are_mostly_found(metric):
    rng = random.Random(metric)
    marks = [simulation.simulate(metric, 100, rng, better=True).mark for _ in range(20)]
    assert marks.count("**") >= 10


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize(("n", "mark"), [(1, ""), (5, ""), (6, "*"), (11, "*"), (12, "**")])
def test_the_fewest_segments_for_marks(n, mark, seeds):
    """The clearest case is a system that is equally better at every segment."""
    reference = [f"a{i} b{i} c{i} d{i} e{i} f{i}" for i in range(n)]
    good, bad = make_run(reference), make_run([f"a{i} b{i} c{i} d{i} x y" for i in range(n)])
    (row,) = compare([good] * seeds, [bad] * seeds, reference)
    levels = {"": 1.1, "*": 0.05, "**": 0.01}
    assert max(row.p, row.randomization_p) < levels[mark]
    assert n >= MIN_SEGMENTS[len(mark) - 1] if mark else n < MIN_SEGMENTS[0]
    assert mark == "**" or max(row.p, row.randomization_p) >= {"": 0.05, "*": 0.01}[mark]


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("n", range(4, 10))
def test_the_fewest_items_for_marks(n, seeds):
    (row,) = compare_verdicts("accuracy", ["p"] * n, [[True] * n] * seeds, [[False] * n] * seeds)
    assert row.p == pytest.approx(2 / 2**n)
    assert [row.p < level for level in (0.05, 0.01)] == [n >= fewest for fewest in MIN_ITEMS]


@pytest.mark.parametrize("scorer", [BLEU(force=True), BLEU(smooth_method="none", tokenize="none", force=True), CHRF()])
def test_many_scores_at_once_are_those_of_sacrebleu(scorer):
    rng = random.Random(1)
    reference = [*make_reference(rng, 40), "", "w1", "w1 w2"]
    for share in (0.0, 0.3, 0.95, 1.0):
        run = make_run(["", "w1 w2 w3", "", *noisy(reference[3:], rng, share)])
        counts = count_segments(scorer, "sentences", translated(run, reference))
        drawn = np.random.default_rng(2).multinomial(3, [1 / 43] * 43, size=200) @ counts.rows
        sums = np.array([*counts.rows, *drawn, counts.rows.sum(0)])
        expected = [scorer._compute_score_from_stats(row).score for row in sums.tolist()]
        assert counts.score(sums) == pytest.approx(expected)
        assert float(counts.score(sums[-1])) == pytest.approx(expected[-1])


def test_compare_gives_differences_with_intervals():
    rng = random.Random(5)
    reference = make_reference(rng)
    shares = {"base": 0.3, "equal": 0.3, "worse": 0.6}
    runs = {name: make_run(noisy(reference, rng, share)) for name, share in shares.items()}
    base, equal, worse = compare_systems({name: translated(run, reference) for name, run in runs.items()})
    assert all(3 < row["score_half_width"] < 8 for row in (base, equal, worse))
    assert base["difference"] is base["p"] is base["half_width"] is None
    assert abs(equal["difference"]) < equal["half_width"] < worse["score_half_width"] + base["score_half_width"]
    assert equal["p"] > 0.05
    assert -worse["difference"] > worse["half_width"]
    assert max(worse["p"], worse["randomization_p"]) < 0.01
    (alone,) = compare_systems({"one": translated(make_run(["a b c d e"]), ["a b c d e"])})
    assert (alone["score"], alone["score_half_width"]) == (pytest.approx(100), None)  # one segment tells nothing


def test_a_metric_says_itself_how_it_is_tested(monkeypatch):
    def count_words(test):
        rows = [[len(one.sentences[0].split()), 1] for one in test.hypotheses]
        return metrics.SegmentCounts(np.array(rows, dtype="float64"), lambda sums: sums[..., 0] / sums[..., 1])

    monkeypatch.setitem(METRICS, "words", Metric("words per sentence", lambda test: [], counts=count_words))
    monkeypatch.setitem(METRICS, "untested", Metric("untested", lambda test: []))
    settings = EvaluationSettings(metrics=["words", "untested"])
    ours, theirs = [make_run([f"a {'b ' * k}c"] * 20) for k in (3, 1)]
    (row,) = compare([ours], [theirs], ["r"] * 20, settings)
    assert (row.metric, row.difference, row.n) == ("words", 2, 20)
    assert max(row.p, row.randomization_p) < 0.01
    with pytest.raises(UserError, match="'words' has statistics of different shapes"):
        compare([ours], [make_run(["a"] * 10, length=1)], ["r"] * 20, settings)


def test_missing_scores_are_no_evidence(monkeypatch):
    def share_of_right_words(sums):
        with np.errstate(invalid="ignore"):
            return sums[..., 0] / sums[..., 1]

    def count(test):
        words = [one.sentences[0].split() for one in test.hypotheses]
        rows = [[line.count("right"), len(line)] for line in words]
        return metrics.SegmentCounts(np.array(rows, dtype="float64"), share_of_right_words)

    monkeypatch.setitem(METRICS, "right words", Metric("right words", lambda test: [], counts=count))
    settings = EvaluationSettings(metrics=["right words"])
    ours, theirs, neither = (make_run([*words, *[""] * 18]) for words in (["right", ""], ["", "wrong"], ["", ""]))
    (row,) = compare([ours], [theirs], ["r"] * 20, settings)
    assert (row.difference, row.p, row.randomization_p, row.half_width) == (1, 1, 1, None)
    assert compare([ours], [neither], ["r"] * 20, settings) == []


@pytest.mark.parametrize("n", [12, 400])
def test_interval_of_a_mean_is_students(n):
    verdicts = []
    for seed in range(8):
        values = np.random.default_rng(seed).normal(0.1 * seed * (12 / n) ** 0.5, 1, size=(n, 1))
        ours, theirs = (metrics.SegmentCounts(rows, lambda sums: sums[..., 0] / n) for rows in (values, 0 * values))
        p, half_width = bootstrap_test([ours], [theirs])
        assert half_width == pytest.approx(t.isf(0.025, n - 1) * values.std(ddof=1) / n**0.5, rel=0.2)
        verdicts.append((p < 0.04, p < 0.06, abs(values.mean()) > half_width))
    assert all(surely <= is_outside <= barely for surely, barely, is_outside in verdicts)
    assert {is_outside for *_, is_outside in verdicts} == {False, True}


@pytest.mark.parametrize(
    ("n", "lowest", "highest"), [(1, 0, 0.05), (3, 0, 0.05), pytest.param(60, 0.03, 0.07, marks=pytest.mark.slow)]
)
def test_equal_systems_differ_in_one_of_twenty(n, lowest, highest):
    """With few segments, at most as many."""
    rng = random.Random(1)
    p_values = []
    for _ in range(N_TRIALS):
        reference = make_reference(rng, n)
        pair = ([make_run(noisy(reference, rng, 0.3))] for _ in range(2))
        rows = compare(*pair, reference, EvaluationSettings(metrics=["s-BLEU", "chrF"]))
        p_values.append([(row.p, row.sign_p, row.randomization_p) for row in rows])
    differ = np.array(p_values) < 0.05  # [trials, metrics, tests]
    assert lowest <= differ.mean(0).min() <= differ.mean(0).max() <= highest


def test_p_values_equal_sacrebleu():
    """sacreBLEU's randomization. Its bootstrap is one-sided, and marks two to three times as many equal systems."""
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    rng = random.Random(2)
    for better in (0.3, 0.28, 0.25, 0.2):
        reference = make_reference(rng, 100)
        ours, theirs = noisy(reference, rng, better), noisy(reference, rng, 0.3)
        scorers = {"BLEU": metrics.bleu(SETTINGS, "de")}
        paired = PairedTest([("b", theirs), ("a", ours)], scorers, [reference], test_type="ar", n_samples=1000)
        theirs_row = paired()[1]["BLEU"]
        (row,) = compare([make_run(ours)], [make_run(theirs)], reference)
        assert row.p == pytest.approx(theirs_row[1].p_value, abs=0.08)
        assert row.randomization_p == pytest.approx(theirs_row[1].p_value, abs=0.05), "the same test, other draws"
        assert row.difference == pytest.approx(theirs_row[1].score - theirs_row[0].score)


def test_resamples_are_those_of_sacrebleus_bootstrap():
    """The bootstrap's p follows from docmt's resamples. Its rule subtracts the mean of absolute differences."""
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    rng = random.Random(8)
    metric = metrics.bleu(SETTINGS, "de")
    for better in (0.3, 0.27, 0.2):
        reference = make_reference(rng, 100)
        ours, theirs = noisy(reference, rng, better), noisy(reference, rng, 0.3)
        paired = PairedTest([("b", theirs), ("a", ours)], {"BLEU": metric}, [reference], test_type="bs", n_samples=1000)
        expected = paired()[1]["BLEU"][1].p_value
        counts = [count_segments(metric, "sentences", translated(make_run(side), reference)) for side in (ours, theirs)]
        resampled = np.abs(bootstrap(counts[:1], counts[1:]))
        observed = abs(metric.corpus_score(ours, [reference]).score - metric.corpus_score(theirs, [reference]).score)
        p = (np.sum(resampled - resampled.mean() > observed) + 1) / 1001
        assert p == pytest.approx(expected, abs=0.05)


def test_only_better_translations_differ():
    rng = random.Random(3)
    reference = make_reference(rng)
    run, bad = make_run(noisy(reference, rng, 0.2)), make_run(noisy(reference, rng, 0.6))
    (same,) = compare([run], [run], reference)
    assert (same.difference, same.p, same.sign_p, same.randomization_p) == (0, 1, 1, 1)
    (other,) = compare([run], [bad], reference)
    assert other.difference > 10
    assert max(other.p, other.sign_p, other.randomization_p) < 0.01
    (mirrored,) = compare([bad], [run], reference)
    assert (mirrored.difference, mirrored.p) == (pytest.approx(-other.difference), other.p)


def test_seeds_are_averaged_over_the_same_sentences():
    rng = random.Random(4)
    reference = make_reference(rng)
    seeds = [make_run(noisy(reference, rng, 0.3)) for _ in range(3)]
    (row,) = compare(seeds, [seeds[0]], reference)
    scores = [compare([seed], [seeds[0]], reference)[0].difference for seed in seeds]
    assert row.difference == pytest.approx(np.mean(scores))
    assert row.n == len(reference)
    assert 0.05 < row.randomization_p <= 1


@pytest.mark.parametrize("numbers", [(3, 2), (2, 3), (1, 2), (2, 2)])
def test_all_seeds_count_equally_often_in_randomization_too(numbers):
    """The plain computation applies all combinations of signs to the mean differences of segments."""
    rng = np.random.default_rng(1)
    rows = [rng.normal(mean, 1, size=(n, 8, 1)) for mean, n in zip((0.5, 0), numbers, strict=True)]
    pair = [[metrics.SegmentCounts(run, lambda sums: sums[..., 0]) for run in runs] for runs in rows]
    differences = (rows[0].mean(0) - rows[1].mean(0))[:, 0]
    sums = np.abs([np.dot(signs, differences) for signs in itertools.product([1, -1], repeat=8)])
    assert randomization_p(*pair) == (sums >= sums[0] - 1e-9).mean()


def test_sign_test_counts_segments():
    reference = ["a b c d e f", "g h i j k l", "m n o p q r", "s t u v w x"]
    theirs = ["a b c d e x", "g h i j k l", "m n o p q r", "s t u v w x"]
    ours = ["a b c d e f", "g h i j x l", "m n x p q r", "s t u v w x"]
    (row,) = compare([make_run(ours)], [make_run(theirs)], reference)
    assert row.sign_p == binomial_p(1, 2) == 1


def test_only_metrics_over_shared_segments_are_compared():
    rng = random.Random(5)
    reference = make_reference(rng, 8)
    settings = EvaluationSettings()
    whole, single = make_run(reference, aligned=False, length=4), make_run(reference)
    names = [row.metric for row in compare([whole], [single], reference, settings)]
    assert names == ["d-BLEU (documents)", "d-chrF (documents)"]
    both = [row.metric for row in compare([single], [single], reference, settings)]
    assert both == ["s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "chrF", "d-chrF (documents)"]


def test_mcnemar_counts_items_that_only_one_gets_right():
    ours, theirs = [1] * 8 + [0] * 2 + [1, 0], [0] * 8 + [1] * 2 + [1, 0]
    (row,) = compare_verdicts("accuracy", ["p"] * 12, [ours], [theirs])
    assert row.p == pytest.approx(2 * sum(comb(10, k) for k in range(3)) / 2**10)
    assert row.difference == pytest.approx(50)
    assert binomial_p(0, 0) == 1
    assert binomial_p(5, 5) == 1


def test_seeded_equal_pairs_rarely_differ():
    rng, n_items = random.Random(6), 300
    p_values = []
    for _ in range(N_TRIALS):
        pair = [[[rng.random() < 0.6 for _ in range(n_items)] for _ in range(2)] for _ in range(2)]
        p_values.append(compare_verdicts("accuracy", ["p"] * n_items, *pair)[0].p)
    assert 0.03 <= (np.array(p_values) < 0.05).mean() <= 0.07


def test_accuracies_of_a_suite_and_of_each_phenomenon():
    good, bad = [True] * 10, [False] * 10
    rows = compare_verdicts("accuracy", ["p", "q"] * 5, [good, good], [bad])
    assert [(row.phenomenon, row.n, row.difference) for row in rows] == [(None, 10, 100), ("p", 5, 100), ("q", 5, 100)]
    assert rows[0].p < 0.01 < rows[1].p
    assert [row.phenomenon for row in compare_verdicts("accuracy", ["p"] * 4, [good[:4]], [bad[:4]])] == ["p"]


def test_the_commands_write_what_the_report_reads(tmp_path):
    reference = make_reference(random.Random(7), 8)
    text = write_split(tmp_path, {"d0": 4, "d1": 4}, en=reference, de=reference)
    hypotheses, out = write_hypotheses(tmp_path / "test_t.jsonl", make_run(reference)), tmp_path / "o.json"
    options = {**text, "names": ["a", "b"], "dataset": "d", "fingerprint": "f00", "out": out}
    assert evaluate("difference", outputs=[hypotheses] * 2, baseline=[hypotheses], **options) == 0
    content = json.loads(out.read_text())
    assert content["provenance"]["fingerprint"] == "f00"
    first = by_metric(content["differences"])["s-BLEU"]
    values = [first[key] for key in ("dataset", "test", "system", "baseline", "p")]
    assert values == ["d", "t", "a", "b", 1]
    items = [ContrastiveItem(str(i), "p", ["s"], [["x"], ["y"]], 0) for i in range(3)]
    suite = write_lines(tmp_path / "s.jsonl", (json.dumps(vars(item)) for item in items))
    files = []
    for name, right in (("good", [0, -1]), ("bad", [-1, 0])):
        path = tmp_path / name / "suite_s.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"items": [{"id": item.id, "scores": right} for item in items]}))
        files.append(path)
    ours, theirs = [hypotheses, files[0], hypotheses], [files[1], hypotheses]
    assert evaluate("difference", outputs=ours, baseline=theirs, suites=suite, **options) == 0
    *rows, row = json.loads(out.read_text())["differences"]
    assert rows == content["differences"]
    assert (row["test"], row["method"], row["difference"], row["n"]) == ("s", "McNemar, exact", 100, 3)
