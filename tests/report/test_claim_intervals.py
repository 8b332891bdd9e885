"""Intervals over seeds and documents, their errors in simulations, p values, and Holm's correction."""

import math

import numpy as np
import pytest

from docmt.evaluation.score_rows import group_means
from docmt.report.claims.intervals import (
    ErrorSource,
    error_source,
    half_width,
    holm,
    p_value,
    seeds_needed,
    smallest_effect,
    with_seeds,
)


def test_documents_widen_the_interval():
    documents = ErrorSource(2.0, 19)
    assert half_width(with_seeds(0.0, 3, [])) == 0.0
    assert half_width(with_seeds(0.0, 3, [documents])) == pytest.approx(1.729133 * 2, abs=1e-5)
    expected = math.hypot(2.919986 / math.sqrt(3), 1.729133 * 2)
    assert half_width(with_seeds(1.0, 3, [documents])) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("agreement", "n_items"), [(-1.0, 300), (-0.5, 300), (0.0, 300), (0.0, 18), (0.8, 250), (0.8, 300)]
)
def test_the_error_over_items_covers_suites_of_pairs(agreement, n_items):
    """Pairs of items that agree or disagree, as in a generated suite. A 90 % interval covers nine in ten."""
    rng, covered = np.random.default_rng(1), []
    share = abs(agreement) * (0.6 if agreement > 0 else 0.4) + (1 - abs(agreement)) * 0.6
    for _ in range(500):
        first, independent = rng.random((2, n_items // 2)) < 0.6
        depends = rng.random(n_items // 2) < abs(agreement)
        second = np.where(depends, first == (agreement > 0), independent)
        rights = 100.0 * np.stack((first, second), axis=1).ravel()
        groups = np.array(str(group_means(rights)).split(), dtype="float64")
        half = half_width([error_source(groups)])
        covered.append(abs(rights.mean() - 50 * (0.6 + share)) <= half + 1e-3)
    assert np.mean(covered) == 1 if agreement == -1 else 0.83 <= np.mean(covered) <= 0.95


def simulate(n_studies, n_seeds, n_groups, *, error, interaction=0.0, rng):
    """Draw differences with a deviation of 1 over seeds, and this standard error over documents.

    `interaction` is the proportion of the variance over seeds that comes from different documents per seed.
    """
    seeds = rng.normal(0, math.sqrt(1 - interaction), (n_studies, n_seeds, 1))
    documents = rng.normal(0, error * math.sqrt(n_groups), (n_studies, 1, n_groups))
    both = rng.normal(0, math.sqrt(interaction * n_groups), (n_studies, n_seeds, n_groups))
    return seeds + documents + both


def interval(differences):
    """Return mean and half width over simulated studies [studies, seeds, groups]."""
    sources = [error_source(differences.mean(2)), error_source(differences.mean(1))]
    return differences.mean((1, 2)), half_width(sources)


@pytest.mark.parametrize("n_seeds", [3, 5, 10])
@pytest.mark.parametrize("error", [0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("n_groups", "interaction"), [(5, 0.0), (20, 0.0), (20, 0.5)])
def test_false_support_is_rare(n_seeds, error, n_groups, interaction):
    """The true difference is the margin, so "supported" is wrong."""
    rng = np.random.default_rng([n_seeds, n_groups, int(100 * error)])
    mean, half = interval(simulate(10_000, n_seeds, n_groups, error=error, interaction=interaction, rng=rng))
    assert (mean - half > 0).mean() <= 0.06
    if not interaction:
        assert (mean - half > 0).mean() >= 0.02


@pytest.mark.parametrize(("n_seeds", "error"), [(3, 0.0), (10, 0.0), (10, 0.3), (10, 1.0), (3, 4.0)])
def test_effect_is_shown_with_power(n_seeds, error):
    effect = smallest_effect(with_seeds(1.0, n_seeds, [ErrorSource(error, 19)]))
    mean, half = interval(simulate(4000, n_seeds, 20, error=error, rng=np.random.default_rng(1)))
    assert (mean + effect > half).mean() == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize(
    ("distance", "error", "needed"),
    [
        (2.0, 0.0, 4),
        (0.5, 0.0, 27),
        (0.1, 0.0, 620),
        (0.01, 0.0, None),
        (2.0, 0.5, 5),
        (1.0, 0.5, None),
        (0.0, 0.0, None),
    ],
)
def test_seeds_needed_depend_on_documents(distance, error, needed):
    assert seeds_needed(distance, 1.0, [ErrorSource(error, 19)]) == needed


@pytest.mark.parametrize("tail", [1e-6, 0.01, 0.05, 0.3])
def test_p_value_inverts_the_interval(tail):
    sources = with_seeds(1.0, 4, [ErrorSource(0.7, 19)])
    distance = float(half_width(sources, tail=tail))
    assert p_value(distance, sources) == pytest.approx(tail, rel=1e-4)
    assert p_value(-distance, sources) == pytest.approx(1 - tail, rel=1e-4)
    assert p_value(0.0, sources) == 0.5


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),
        ([0.01, 0.02, 0.03, 0.9], [0.04, 0.06, 0.06, 0.9]),
        ([0.6, 0.6], [1.0, 1.0]),
        ([0.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ],
)
def test_holm_multiplies_by_remaining_claims(ps, adjusted):
    assert holm(ps) == pytest.approx(adjusted)
