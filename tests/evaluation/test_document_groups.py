"""Scores by groups of documents, and the standard errors that follow from these scores."""

import random

import numpy as np
import pytest
from evaluation_fixtures import by_metric, make_hypotheses, make_test

from docmt.evaluation.metrics import EvaluationSettings, find_metric, score_bleu
from docmt.evaluation.score_rows import N_GROUPS, group_means, group_values, share_of_counts

METRICS = ["s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "tokenized s-BLEU", "chrF", "chrF++", "TER"]


def values_of(row):
    return np.array(row["groups"].split(), dtype="float64")


def noisy_test(n_documents, *, seed=1, n_sentences=(1, 9)):
    """Translations with documents that differ in length and in the proportion of wrong words."""
    rng = random.Random(seed)
    lengths = [rng.randint(*n_sentences) for _ in range(n_documents)]
    reference, translation = [], []
    for length in lengths:
        error = rng.random() / 2
        for _ in range(length):
            words = [f"w{rng.randrange(50)}" for _ in range(rng.randint(4, 12))]
            reference.append(" ".join(words))
            translation.append(" ".join("x" if rng.random() < error else word for word in words))
    documents = [f"d{number}" for number in range(n_documents)]
    settings = EvaluationSettings(metrics=METRICS)
    return make_test(make_hypotheses(translation, lengths, documents=documents), reference, settings=settings)


@pytest.mark.slow
def test_groups_give_bootstrap_error_over_documents():
    test = noisy_test(100)
    rows = by_metric(score_bleu(test))
    draws = np.random.default_rng(2).multinomial(100, [0.01] * 100, size=500)
    numbers = np.array([int(document[1:]) for document in test.documents])
    for name in ("s-BLEU", "chrF", "TER"):
        count = find_metric(name).counts
        assert count is not None
        counts = test.counts(count)
        resampled = counts.score(draws[:, numbers] @ counts.rows)
        values = values_of(rows[name])
        assert len(values) == N_GROUPS
        assert values.mean() == pytest.approx(rows[name]["value"], abs=0.5)
        assert values.std(ddof=1) / N_GROUPS**0.5 == pytest.approx(resampled.std(), rel=0.35)


@pytest.mark.parametrize("n_documents", [1, 2, 7, 20, 21])
def test_every_metric_has_groups_of_documents(n_documents):
    rows = by_metric(score_bleu(noisy_test(n_documents)))
    assert list(rows) == [*METRICS, "length ratio"]
    for row in rows.values():
        if n_documents == 1:
            assert row.get("groups") is None
        else:
            assert len(values_of(row)) == min(n_documents, N_GROUPS)


def test_instances_of_a_document_stay_together():
    """The first document, with two instances, is right. The second is wrong."""
    hypotheses = make_hypotheses(
        ["a b c d e"] * 4 + ["x x x x x"] * 4, (2, 2, 2, 2), documents=("a", "a", "b", "b"), forced_ends=1
    )
    settings = EvaluationSettings(metrics=["s-BLEU", "d-BLEU (instances)", "TER"])
    rows = by_metric(score_bleu(make_test(hypotheses, ["a b c d e"] * 8, settings=settings)))
    assert {name: row.get("groups") for name, row in rows.items()} == {
        "s-BLEU": "100 0",
        "d-BLEU (instances)": "100 0",
        "TER": "0 100",
        "length ratio": "100 100",
        "length-limited sentences": "50 50",
    }


def test_unaligned_instances_have_groups():
    """Without the first document, which has two instances, no instance has as many sentences as its source."""
    rows = by_metric(score_bleu(make_test(make_hypotheses([["a", "b"], ["c"], ["d"]], aligned=False))))
    assert values_of(rows["sentence count preserved"]) == pytest.approx([200 / 3, 50 / 3], abs=1e-3)


@pytest.mark.parametrize(
    ("values", "documents", "groups"),
    [
        ([1.0] * 20 + [3.0] * 20, None, [1.0] * 10 + [3.0] * 10),
        ([1.0, 2.0, 6.0], None, [1.0, 2.0, 6.0]),
        ([0.0, 4.0, 4.0, 4.0], "abbb", [2 * 3.0 - 4.0, 2 * 3.0 - 0.0]),
        ([1.0, 5.0], "aa", None),
        ([1.0], None, None),
        ([], None, None),
        ([1.0, float("-inf")], None, None),
    ],
)
def test_means_by_group_of_documents(values, documents, groups):
    row = {"groups": group_means(values, documents)}
    assert row["groups"] is None if groups is None else values_of(row) == pytest.approx(groups)


def test_empty_remainders_have_no_groups():
    rows = np.array([[1.0, 2.0], [0.0, 0.0]])
    assert group_values(rows, ["a", "b"], share_of_counts) is None
