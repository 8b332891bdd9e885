"""Paired tests of a system against a baseline, each with one or several seeds.

With several seeds, the difference is that of the means over seeds, and chance is what the choice of test sentences (or
items) contributes: the same sentences are resampled for all runs. How much seeds vary is what deviations show.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric

from docmt.corpora.contrastive import ContrastiveItem
from docmt.decoding.settings import Ties
from docmt.evaluation.bleu import build_metric
from docmt.evaluation.contrast import is_right
from docmt.evaluation.hypotheses import Hypothesis, Unit, join_segments
from docmt.evaluation.metrics import ACCURACY, METRICS
from docmt.evaluation.settings import EvaluationSettings

N_SAMPLES = 1000
SEED = 12345
TESTED = ("s-BLEU", "d-BLEU (instances)", "d-BLEU (documents)", "chrF")
"""Metrics of translations whose statistics add up over segments."""

Runs = Sequence[Sequence[Hypothesis]]
"""The hypotheses of a system: one list per seed."""


@dataclass(frozen=True)
class PairedDifference:
    """How a system differs from the baseline by one metric.

    Attributes:
        metric, phenomenon: what was measured.
        difference: of the mean scores over seeds, in percent points.
        p: of that difference, two-sided.
        sign_p: of the sign test of Collins et al. (2005); None for accuracies.
        randomization_p: of approximate randomization (Riezler and Maxwell 2005); None for accuracies.
        n: segments or items.
        method: how `p` was computed.
    """

    metric: str
    phenomenon: str | None
    difference: float
    p: float
    sign_p: float | None
    randomization_p: float | None
    n: int
    method: str


def compare_translations(
    system: Runs,
    baseline: Runs,
    reference: Sequence[str],
    *,
    settings: EvaluationSettings,
    tgt_lang: str,
    more_references: Sequence[Sequence[str]] = (),
) -> list[PairedDifference]:
    """Paired tests by the metrics of the settings that both have over the same segments.

    The first test is paired bootstrap resampling (Koehn 2004), two-sided: how often the difference of a resample is as
    far from their mean as the observed one is from zero. (sacreBLEU subtracts the mean of absolute differences, which
    tests one side only.) The second is the sign test of Collins et al. (2005): for each segment, whether the baseline's
    score rises or falls when its translation is replaced by the system's. The third is approximate randomization: how
    often the difference is as large when the two translations of each segment change places at random.
    """
    found = []
    for name in TESTED:
        unit = METRICS[name].unit
        if name in settings.metrics and unit is not None and _shares(unit, [*system, *baseline]):
            metric = build_metric(name, settings, tgt_lang)
            references = [reference, *more_references]
            ours, theirs = ([_statistics(metric, run, references, unit) for run in runs] for runs in (system, baseline))
            found.append(_test_metric(name, metric, ours, theirs))
    return found


def _shares(unit: Unit, runs: Runs) -> bool:
    """Whether all runs have the same segments."""
    if unit == "sentences":
        return all(hypothesis.aligned for run in runs for hypothesis in run)
    return unit == "documents" or len({tuple(hypothesis.n_sentences for hypothesis in run) for run in runs}) == 1


def _statistics(
    metric: SacreMetric, run: Sequence[Hypothesis], references: Sequence[Sequence[str]], unit: Unit
) -> np.ndarray:
    """The counts that the score of a corpus is made of, one row per segment; float64."""
    segments = join_segments(run, [hypothesis.sentences for hypothesis in run], references, unit)
    return np.array(metric._extract_corpus_statistics(*segments), dtype="float64")


def _score(metric: SacreMetric, statistics: np.ndarray) -> float:
    return metric._compute_score_from_stats(statistics.tolist()).score


def _test_metric(
    name: str, metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]
) -> PairedDifference:
    means = [fmean(_score(metric, run.sum(0)) for run in runs) for runs in (ours, theirs)]
    difference = means[0] - means[1]
    resampled = bootstrap(metric, ours, theirs)
    return PairedDifference(
        metric=name,
        phenomenon=None,
        difference=difference,
        p=_share_beyond(resampled - resampled.mean(), difference),
        sign_p=_sign_test(metric, ours, theirs),
        randomization_p=_randomize(metric, ours, theirs),
        n=len(ours[0]),
        method=f"paired bootstrap, {N_SAMPLES} resamples",
    )


def bootstrap(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> np.ndarray:
    """The difference of mean scores in each resample of the segments; float64 [samples]."""
    n = len(ours[0])
    counts = np.random.default_rng(SEED).multinomial(n, [1 / n] * n, size=N_SAMPLES).astype("float64")

    def resample(runs: Sequence[np.ndarray]) -> np.ndarray:
        return np.mean([_scores(metric, counts @ run) for run in runs], axis=0)

    return resample(ours) - resample(theirs)


def _randomize(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """Approximate randomization; runs are paired in their order, and a segment changes places in all pairs at once.

    The side with fewer runs begins again with its first one.
    """
    swapped = np.random.default_rng(SEED).integers(0, 2, size=(N_SAMPLES, len(ours[0]))).astype("float64")
    observed, shuffled = 0.0, np.zeros(N_SAMPLES)
    for number in range(max(len(ours), len(theirs))):
        our, their = ours[number % len(ours)], theirs[number % len(theirs)]
        observed += _score(metric, our.sum(0)) - _score(metric, their.sum(0))
        change = swapped @ (their - our)
        shuffled += _scores(metric, our.sum(0) + change) - _scores(metric, their.sum(0) - change)
    return _share_beyond(shuffled, observed)


def _scores(metric: SacreMetric, sums: np.ndarray) -> np.ndarray:
    """The score of each row of summed counts; float64 [samples]."""
    return np.array([_score(metric, row) for row in sums])


def _share_beyond(under_null: np.ndarray, observed: float) -> float:
    """The two-sided p value of an observed difference; the observation itself counts as one sample."""
    # Sums in another order differ in the last digits.
    beyond = np.abs(under_null) >= abs(observed) - 1e-9
    return (int(beyond.sum()) + 1) / (len(under_null) + 1)


def _sign_test(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """Over segments; runs are paired in their order, and a segment counts by its mean change over pairs."""
    changes = []
    for our, their in zip(ours, theirs, strict=False):
        total = their.sum(0)
        before = _score(metric, total)
        changes.append([_score(metric, total + change) - before for change in our - their])
    signs = np.sign(np.round(np.mean(changes, axis=0), 9))
    return binomial_p(int((signs > 0).sum()), int((signs < 0).sum()))


def binomial_p(wins: int, losses: int) -> float:
    """The exact two-sided p value of so many wins and losses, both equally likely."""
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(min(wins, losses) + 1))
    return min(1.0, float(2 * tail / 2**n)) if n else 1.0


def compare_accuracies(
    items: Sequence[ContrastiveItem],
    system: Sequence[Mapping[str, Sequence[float]]],
    baseline: Sequence[Mapping[str, Sequence[float]]],
    *,
    ties: Ties = "wrong",
) -> list[PairedDifference]:
    """McNemar's exact test of contrastive accuracy, over the suite and by phenomenon.

    With several seeds, each item's difference of mean accuracies has its sign drawn at random, in 1,000 samples; for
    one seed that is McNemar's test.

    Args:
        items: of the suite.
        system: log probabilities of the candidates by item id, for each seed.
        baseline: likewise.
        ties: what an item with equal scores counts.
    """
    verdicts = [[[is_right(item, run, ties=ties) for item in items] for run in runs] for runs in (system, baseline)]
    return compare_verdicts(ACCURACY, [item.phenomenon for item in items], *verdicts)


def compare_verdicts(
    metric: str, of_items: Sequence[str], system: Sequence[Sequence[bool]], baseline: Sequence[Sequence[bool]]
) -> list[PairedDifference]:
    """The tests of `compare_accuracies`, from the phenomenon of each item and, per seed, whether each is right."""
    differences = np.mean(system, axis=0) - np.mean(baseline, axis=0)
    is_single = len(system) == len(baseline) == 1
    phenomena = list(dict.fromkeys(of_items))
    found = []
    for phenomenon in [None, *phenomena] if len(phenomena) > 1 else phenomena:
        own = differences[[phenomenon in (None, of_item) for of_item in of_items]]
        found.append(
            PairedDifference(
                metric=metric,
                phenomenon=phenomenon,
                difference=100 * float(own.mean()),
                p=binomial_p(int((own > 0).sum()), int((own < 0).sum())) if is_single else _flip_signs(own),
                sign_p=None,
                randomization_p=None,
                n=len(own),
                method="McNemar, exact" if is_single else f"items' signs at random, {N_SAMPLES} samples",
            )
        )
    return found


def _flip_signs(differences: np.ndarray) -> float:
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(N_SAMPLES, len(differences)))
    return _share_beyond(signs @ differences / len(differences), float(differences.mean()))
