"""Paired significance tests against a baseline.

With several seeds, the tested difference is between means over seeds. Chance is the choice of test segments (or items),
since the same segments are resampled for all runs. Standard deviations show the variation between seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from docmt.errors import UserError
from docmt.evaluation.external_programs import NotComputableError
from docmt.evaluation.hypotheses import Unit
from docmt.evaluation.metrics import find_metric, score_translations
from docmt.evaluation.scoring import SegmentCounts, TranslatedTest

N_SAMPLES = 1000
SEED = 12345
MIN_SEGMENTS, MIN_ITEMS = (6, 12), (6, 8)
"""Minimum number of segments, and of test set items, for p < 0.05 and p < 0.01 in paired tests."""


@dataclass(frozen=True)
class PairedDifference:
    """Difference between a system and the baseline by one metric."""

    metric: str
    phenomenon: str | None  # suite items with this phenomenon (None: all items, or translations)
    difference: float  # between mean scores over seeds, in percentage points
    p: float  # two-sided, by `method`
    sign_p: float | None  # sign test (None: accuracies)
    randomization_p: float | None
    n: int  # segments or items
    method: str
    half_width: float | None = None  # half the bootstrap's 95 % interval (None: accuracies)


def compare_translations(
    system: Sequence[TranslatedTest], baseline: Sequence[TranslatedTest]
) -> list[PairedDifference]:
    """Test a system by metrics in the settings and of other programs, over all seeds, if segments are the same."""
    differences = []
    names = list(system[0].settings.metrics)
    for name in system[0].segment_scores:
        if all(name in test.segment_scores for test in baseline):
            names.append(name)
    for name in names:
        metric = find_metric(name)
        count = metric.counts
        if count is None or (metric.unit and not _share_segments(metric.unit, [*system, *baseline])):
            continue
        try:
            ours = [test.counts(count) for test in system]
            theirs = [test.counts(count) for test in baseline]
        except NotComputableError:
            continue
        shapes = {counts.rows.shape for counts in (*ours, *theirs)}
        if len(shapes) > 1:
            raise UserError(f"metric {name!r} has statistics of different shapes: {sorted(shapes)}")
        difference = _difference(ours, theirs)
        if not np.isfinite(difference):
            continue
        p, half_width = bootstrap_test(ours, theirs)
        differences.append(
            PairedDifference(
                metric=name,
                phenomenon=None,
                difference=difference,
                p=p,
                sign_p=_sign_test(ours, theirs),
                randomization_p=randomization_p(ours, theirs),
                n=len(ours[0].rows),
                method=f"paired bootstrap, {N_SAMPLES} resamples",
                half_width=half_width,
            )
        )
    return differences


def compare_systems(systems: Mapping[str, TranslatedTest]) -> list[dict[str, Any]]:
    """Score systems as in the workflow, and test them against the first system.

    Returns a row per system and metric in the settings, with half the width of 95 % intervals. Missing numbers are
    None.
    """
    baseline, *_ = systems.values()
    rows = []
    for name, translated in systems.items():
        scores = {}
        for row in score_translations(translated):
            if row.get("kind") is None:
                scores[row["metric"]] = row
        differences = {}
        if translated is not baseline:
            for difference in compare_translations([translated], [baseline]):
                differences[difference.metric] = vars(difference)
        for label in translated.settings.metrics:
            if label not in scores:
                continue
            row = {"system": name, "metric": label, "score": scores[label]["value"], "score_half_width": None}
            count = find_metric(label).counts
            if count is not None and row["score"] is not None:
                counts = translated.counts(count)
                n = len(counts.rows)
                row["score_half_width"] = _half_width(counts.score(_draws(n) @ counts.rows), n)
            for key in ("difference", "half_width", "p", "randomization_p"):
                row[key] = differences.get(label, {}).get(key)
            rows.append({**row, "n": scores[label]["n"], "signature": scores[label]["signature"]})
    return rows


def _share_segments(unit: Unit, tests: Sequence[TranslatedTest]) -> bool:
    if unit == "sentences":
        return all(test.is_aligned for test in tests)
    if unit == "documents":
        return True
    lengths = []
    for test in tests:
        lengths.append([hypothesis.n_sentences for hypothesis in test.hypotheses])
    return all(other == lengths[0] for other in lengths)


def _difference(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> float:
    our_mean = np.mean([counts.score(counts.rows.sum(0)) for counts in ours])
    their_mean = np.mean([counts.score(counts.rows.sum(0)) for counts in theirs])
    return float(our_mean - their_mean)


def bootstrap(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> np.ndarray:
    """Return the difference between mean scores by resample, float64 [samples]."""
    # The same draws for all runs and both systems make the test paired. The product of draws and rows contains the
    # summed counts by resample.
    draws = _draws(len(ours[0].rows))
    our_means = np.mean([counts.score(draws @ counts.rows) for counts in ours], axis=0)
    their_means = np.mean([counts.score(draws @ counts.rows) for counts in theirs], axis=0)
    return our_means - their_means


def _draws(n: int) -> np.ndarray:
    """Return how often every resample draws every segment, float64 [samples, segments]."""
    return np.random.default_rng(SEED).multinomial(n, [1 / n] * n, size=N_SAMPLES).astype("float64")


def bootstrap_test(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> tuple[float, float | None]:
    """Return the two-sided p value by paired bootstrap resampling (Koehn 2004) and half the 95 % interval."""
    from scipy.stats import norm, t  # takes a second

    n = len(ours[0].rows)
    if n == 1:  # all resamples are equal
        return 1.0, None
    # Count resamples whose difference is as far from the mean as the observed difference is from zero. (sacreBLEU
    # subtracts the mean absolute difference, so that it only tests one side.)
    resampled = bootstrap(ours, theirs)
    deviations = resampled - resampled.mean()
    p = _share_beyond(deviations, _difference(ours, theirs))
    # Resamples of few segments vary too little: their variance is too small by the factor (n − 1) / n, and a variance
    # estimate requires Student's t. This inverts Hesterberg's (2015) expanded percentile interval.
    p = float(2 * t.sf(norm.isf(p / 2) * ((n - 1) / n) ** 0.5, n - 1))
    return p, _half_width(resampled, n)


def _half_width(resampled: np.ndarray, n: int) -> float | None:
    """Return half the 95 % interval for a score or difference, from its resamples of n segments."""
    from scipy.stats import norm, t  # takes a second

    if n == 1:
        return None
    outside = 2 * norm.sf(t.isf(0.025, n - 1) * (n / (n - 1)) ** 0.5)  # expanded like the p value
    half_width = float(np.quantile(np.abs(resampled - resampled.mean()), 1 - outside))
    if not np.isfinite(half_width):
        return None
    return half_width


def randomization_p(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> float:
    """Return the p value by approximate randomization: share of random swaps with as large a difference."""
    # A segment's two translations are swapped in all pairs of runs at once, since seeds share hard segments.
    swapped = (1 - _signs(len(ours[0].rows))) / 2
    observed = 0.0
    shuffled = np.zeros(len(swapped))
    for number in range(lcm(len(ours), len(theirs))):
        # Runs are paired in order, cyclically until all occur equally often, as in the difference between means.
        our = ours[number % len(ours)]
        their = theirs[number % len(theirs)]
        our_total = our.rows.sum(0)
        their_total = their.rows.sum(0)
        change = swapped @ (their.rows - our.rows)
        observed += float(our.score(our_total) - their.score(their_total))
        shuffled += our.score(our_total + change) - their.score(their_total - change)
    return _share_beyond(shuffled, observed)


def _signs(n: int) -> np.ndarray:
    """Return signs for n segments, [samples, n]: all combinations if there are few, otherwise random signs."""
    # All combinations include the observed one, so that p is exact and never below 2 / 2ⁿ.
    if 2**n < N_SAMPLES:
        return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    return np.random.default_rng(SEED).choice([-1.0, 1.0], size=(N_SAMPLES, n))


def _share_beyond(under_null: np.ndarray, observed: float) -> float:
    """Return the two-sided p value for an observed difference. The observation itself counts as one random sample.

    Fewer differences than `N_SAMPLES` come from all sign combinations, which include the observation.
    """
    # Sums in another order can differ in the last digits, but a resample that equals the observation must count as
    # beyond it. A resample without a score (0 / 0) is not evidence against chance, so it also counts as beyond.
    beyond = int((~(np.abs(under_null) < abs(observed) - 1e-9)).sum())
    if len(under_null) < N_SAMPLES:
        return beyond / len(under_null)
    return (beyond + 1) / (N_SAMPLES + 1)


def _sign_test(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> float:
    """Return the p value by Collins et al.'s (2005) sign test, over pairs of runs in order."""
    # Change of the baseline's score if the translation of one segment is replaced by the system's.
    changes = []
    for our, their in zip(ours, theirs, strict=False):
        total = their.rows.sum(0)
        changes.append(their.score(total + our.rows - their.rows) - their.score(total))
    # Float noise must not vote. Segments with equal translations are ties, which the test leaves out.
    signs = np.sign(np.round(np.mean(changes, axis=0), 9))
    return binomial_p(int((signs > 0).sum()), int((signs < 0).sum()))


def binomial_p(wins: int, losses: int) -> float:
    """Return the exact two-sided p value for wins and losses (null hypothesis: equally likely)."""
    from scipy.stats import binomtest  # takes a second

    if wins + losses == 0:
        return 1.0
    return float(binomtest(wins, wins + losses).pvalue)


def compare_verdicts(
    metric: str, of_items: Sequence[str], system: Sequence[Sequence[bool]], baseline: Sequence[Sequence[bool]]
) -> list[PairedDifference]:
    """Test an accuracy over a suite and by phenomenon, with McNemar's exact test for a single seed.

    `of_items` contains phenomena by item, `system` and `baseline` correctness by seed and item.
    """
    differences = np.mean(system, axis=0) - np.mean(baseline, axis=0)
    is_single = len(system) == len(baseline) == 1
    phenomena: list[str | None] = list(dict.fromkeys(of_items))
    if len(phenomena) > 1:
        phenomena.insert(0, None)  # all items
    rows = []
    for phenomenon in phenomena:
        changes = differences[[phenomenon in (None, of_item) for of_item in of_items]]
        # Items that both or neither has right are not evidence, so McNemar's test only counts the others. With
        # several seeds, the signs of the items' mean accuracy differences are drawn at random in 1,000 samples or,
        # for few items, enumerated. With a single seed, that would be McNemar's test.
        if is_single:
            p = binomial_p(int((changes > 0).sum()), int((changes < 0).sum()))
            method = "McNemar, exact"
        else:
            moved = changes[changes != 0]  # a sign does not change a difference of zero
            p = _share_beyond(_signs(len(moved)) @ moved / len(changes), float(changes.mean()))
            method = f"items' signs at random, {N_SAMPLES} samples"
        rows.append(
            PairedDifference(
                metric=metric,
                phenomenon=phenomenon,
                difference=100 * float(changes.mean()),
                p=p,
                sign_p=None,
                randomization_p=None,
                n=len(changes),
                method=method,
            )
        )
    return rows
