"""Paired significance tests of systems against a baseline.

The tests take several seeds: the difference is that of the means over seeds, and chance is what the choice of test
segments (or items) contributes, since the same segments are resampled for all runs. How much seeds vary, standard
deviations show.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.bleu import count_segments
from docmt.evaluation.contrast_settings import Ties
from docmt.evaluation.contrastive_accuracy import is_right
from docmt.evaluation.hypotheses import Unit
from docmt.evaluation.metrics import ACCURACY, SegmentCounts, TranslatedTest, bleu, chrf, find_metric

N_SAMPLES = 1000
SEED = 12345
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True)
class Comparison:
    """One system against the first one, whose own difference and p value are None. Scores are in percent."""

    system: str
    metric: str
    value: float
    difference: float | None
    p_value: float | None
    signature: str


def compare_systems(
    systems: Mapping[str, TranslatedTest],
    *,
    test: Literal["bootstrap", "randomization"],
    n_samples: int,
    unit: Unit | None = None,
) -> list[Comparison]:
    """Test every system against the first one, by BLEU and chrF over the shortest segments that all share, or `unit`.

    The test is paired bootstrap resampling with `n_samples` resamples, or paired approximate randomization with
    `n_samples` trials, as in `compare_translations`.
    """
    if len(systems) < 2:
        raise UserError("a comparison needs the hypotheses of at least two systems with different names")
    shortest: Unit = next(each for each in UNITS if _share_segments(each, list(systems.values())))
    unit = unit if unit is not None else shortest
    if UNITS.index(unit) < UNITS.index(shortest):
        raise UserError(f"--unit {unit}: the systems share no segments shorter than {shortest}")
    baseline, *others = systems
    rows = []
    for label, make in (("BLEU", bleu), ("chrF2", chrf)):
        # One scorer for all: it counts the references once.
        scorer = make(systems[baseline].settings, systems[baseline].tgt_lang)
        counts = {name: count_segments(scorer, unit, translated) for name, translated in systems.items()}
        values = {name: float(found.score(found.rows.sum(0))) for name, found in counts.items()}
        signature = f"{scorer.get_signature().format()}|test:{test}, two-sided|samples:{n_samples}|seed:{SEED}"
        facts = f"{label} ({unit})", f"{signature}|segments:{unit}"
        rows.append(Comparison(baseline, facts[0], values[baseline], None, None, facts[1]))
        for name in others:
            sides = [counts[name]], [counts[baseline]]
            p = bootstrap_test(*sides, n_samples)[0] if test == "bootstrap" else randomization_p(*sides, n_samples)
            rows.append(Comparison(name, facts[0], values[name], values[name] - values[baseline], p, facts[1]))
    return rows


@dataclass(frozen=True)
class PairedDifference:
    """The difference of a system to the baseline by one metric.

    Attributes:
        phenomenon: of the items of a suite; None for all of them, and for translations.
        difference: of the mean scores over seeds, in percent points.
        p: two-sided p value of the difference, by `method`.
        sign_p, randomization_p: p values of further tests; None for accuracies.
        n: number of segments or items.
        half_width: of the 95 % interval of the difference, by the bootstrap; None for accuracies.
    """

    metric: str
    phenomenon: str | None
    difference: float
    p: float
    sign_p: float | None
    randomization_p: float | None
    n: int
    method: str
    half_width: float | None = None


def compare_translations(
    system: Sequence[TranslatedTest], baseline: Sequence[TranslatedTest]
) -> list[PairedDifference]:
    """Paired tests, over all seeds, by the tested metrics of the settings that both have over the same segments.

    Raises UserError when a metric counts other segments in one translation than in another.
    """
    found = []
    for name in system[0].settings.metrics:
        metric = find_metric(name)
        if metric.counts is None or (metric.unit and not _share_segments(metric.unit, [*system, *baseline])):
            continue
        ours, theirs = ([metric.counts(test) for test in tests] for tests in (system, baseline))
        shapes = {counts.rows.shape for counts in (*ours, *theirs)}
        if len(shapes) > 1:
            raise UserError(f"metric {name!r} counts other segments or numbers in one translation: {sorted(shapes)}")
        difference = _difference(ours, theirs)
        if not np.isfinite(difference):
            continue
        p, half_width = bootstrap_test(ours, theirs)
        found.append(
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
    return found


def _share_segments(unit: Unit, tests: Sequence[TranslatedTest]) -> bool:
    if unit == "sentences":
        return all(test.is_aligned for test in tests)
    return unit == "documents" or len({tuple(part.n_sentences for part in test.hypotheses) for test in tests}) == 1


def _difference(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> float:
    means = [np.mean([counts.score(counts.rows.sum(0)) for counts in runs]) for runs in (ours, theirs)]
    return float(means[0] - means[1])


def bootstrap(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts], n_samples: int = N_SAMPLES) -> np.ndarray:
    """The difference of mean scores in each resample of the segments; float64 [samples]."""
    n = len(ours[0].rows)
    # How often each resample draws each segment [samples, segments], the same for all runs and both systems: that is
    # what makes the test paired. Times the rows, they are the summed counts of all resamples.
    drawn = np.random.default_rng(SEED).multinomial(n, [1 / n] * n, size=n_samples).astype("float64")
    means = [np.mean([counts.score(drawn @ counts.rows) for counts in runs], axis=0) for runs in (ours, theirs)]
    return means[0] - means[1]


def bootstrap_test(
    ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts], n_samples: int = N_SAMPLES
) -> tuple[float, float | None]:
    """The two-sided p value of paired bootstrap resampling (Koehn 2004), and half the width of the 95 % interval."""
    from scipy.stats import norm, t  # takes a second

    n = len(ours[0].rows)
    if n == 1:  # all resamples are equal
        return 1.0, None
    # How often the difference of a resample is as far from their mean as the observed one is from zero. (sacreBLEU
    # subtracts the mean of absolute differences, which tests one side only.)
    resampled = bootstrap(ours, theirs, n_samples)
    deviations = resampled - resampled.mean()
    p = _share_beyond(deviations, _difference(ours, theirs))
    # Resamples of few segments vary too little: their variance is (n − 1) / n of what it estimates, and an estimate of
    # it has Student's tails. This inverts the expanded percentile interval of Hesterberg (2015).
    narrowing = ((n - 1) / n) ** 0.5
    half_width = float(np.quantile(np.abs(deviations), 1 - 2 * norm.sf(t.isf(0.025, n - 1) / narrowing)))
    p = float(2 * t.sf(norm.isf(p / 2) * narrowing, n - 1))
    return p, half_width if np.isfinite(half_width) else None


def randomization_p(
    ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts], n_samples: int = N_SAMPLES
) -> float:
    """The p value of approximate randomization: how often the difference is as large when segments change sides."""
    # The two translations of a segment change places in all pairs of runs at once: seeds share what is hard.
    swapped = (1 - _signs(len(ours[0].rows), n_samples)) / 2
    observed, shuffled = 0.0, np.zeros(len(swapped))
    for number in range(max(len(ours), len(theirs))):
        # Runs are paired in their order; the system with fewer runs begins again with its first run.
        our, their = ours[number % len(ours)], theirs[number % len(theirs)]
        totals = our.rows.sum(0), their.rows.sum(0)
        change = swapped @ (their.rows - our.rows)
        observed += float(our.score(totals[0]) - their.score(totals[1]))
        shuffled += our.score(totals[0] + change) - their.score(totals[1] - change)
    return _share_beyond(shuffled, observed, is_exact=len(swapped) != n_samples)


def _signs(n: int, n_samples: int = N_SAMPLES) -> np.ndarray:
    """Signs of n segments: all combinations if those are fewer than the samples, else random ones; [samples, n]."""
    # All combinations have the observed one among them, so that p is exact and never below 2 / 2ⁿ.
    if 2**n < n_samples:
        return 1.0 - 2 * (np.arange(2**n)[:, None] >> np.arange(n) & 1)
    return np.random.default_rng(SEED).choice([-1.0, 1.0], size=(n_samples, n))


def _share_beyond(under_null: np.ndarray, observed: float, *, is_exact: bool = False) -> float:
    """The two-sided p value of an observed difference; the observation itself counts as one random sample."""
    # Sums in another order differ in the last digits: a resample that equals the observation must count as beyond it.
    # A resample without a score (0 / 0) is no evidence against chance: it counts as beyond, too.
    beyond = int((~(np.abs(under_null) < abs(observed) - 1e-9)).sum())
    return beyond / len(under_null) if is_exact else (beyond + 1) / (len(under_null) + 1)


def _sign_test(ours: Sequence[SegmentCounts], theirs: Sequence[SegmentCounts]) -> float:
    """The p value of the sign test of Collins et al. (2005), over pairs of runs in their order."""
    # For each segment, whether the baseline's score rises or falls when its translation is replaced by the system's.
    changes = [
        their.score(their.rows.sum(0) + our.rows - their.rows) - their.score(their.rows.sum(0))
        for our, their in zip(ours, theirs, strict=False)
    ]
    # Float noise must not vote: a segment whose translations are equal is a tie, and the test leaves ties out.
    signs = np.sign(np.round(np.mean(changes, axis=0), 9))
    return binomial_p(int((signs > 0).sum()), int((signs < 0).sum()))


def binomial_p(wins: int, losses: int) -> float:
    """The exact two-sided p value of wins and losses that are equally likely."""
    from scipy.stats import binomtest  # takes a second

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def compare_accuracies(
    items: Sequence[ContrastiveItem],
    system: Sequence[Mapping[str, Sequence[float]]],
    baseline: Sequence[Mapping[str, Sequence[float]]],
    *,
    ties: Ties = "wrong",
) -> list[PairedDifference]:
    """McNemar's exact test of contrastive accuracy, over the suite and by phenomenon.

    `system` and `baseline` are log probabilities of the candidates by item id, for each seed.
    """
    verdicts = [[[is_right(item, run, ties=ties) for item in items] for run in runs] for runs in (system, baseline)]
    return compare_verdicts(ACCURACY, [item.phenomenon for item in items], *verdicts)


def compare_verdicts(
    metric: str, of_items: Sequence[str], system: Sequence[Sequence[bool]], baseline: Sequence[Sequence[bool]]
) -> list[PairedDifference]:
    """The tests of `compare_accuracies`, from the phenomenon of each item and its verdicts by seed."""
    differences = np.mean(system, axis=0) - np.mean(baseline, axis=0)
    is_single = len(system) == len(baseline) == 1
    phenomena = list(dict.fromkeys(of_items))
    found = []
    for phenomenon in [None, *phenomena] if len(phenomena) > 1 else phenomena:
        own = differences[[phenomenon in (None, of_item) for of_item in of_items]]
        # Items on which both are right or both wrong are no evidence: McNemar's test counts only the others. With
        # several seeds, each item's difference of mean accuracies has its sign drawn at random, in 1,000 samples or,
        # for few items, in all ways; with a single seed that would be McNemar's test.
        if is_single:
            p = binomial_p(int((own > 0).sum()), int((own < 0).sum()))
        else:
            moved = own[own != 0]  # the others keep their difference of zero whatever their sign
            signs = _signs(len(moved))
            p = _share_beyond(signs @ moved / len(own), float(own.mean()), is_exact=len(signs) != N_SAMPLES)
        found.append(
            PairedDifference(
                metric=metric,
                phenomenon=phenomenon,
                difference=100 * float(own.mean()),
                p=p,
                sign_p=None,
                randomization_p=None,
                n=len(own),
                method="McNemar, exact" if is_single else f"items' signs at random, {N_SAMPLES} samples",
            )
        )
    return found
