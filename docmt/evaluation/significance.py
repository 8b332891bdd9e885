"""Paired significance tests of systems against a baseline.

`compare_systems` runs sacreBLEU's tests of single runs, for people. The other tests are for the report. They take
several seeds: the difference is that of the means over seeds, and chance is what the choice of test sentences (or
items) contributes, since the same sentences are resampled for all runs. How much seeds vary, standard deviations show.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal, get_args

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.significance import PairedTest, Result

from docmt.corpora.suite_items import ContrastiveItem
from docmt.errors import UserError
from docmt.evaluation.contrast_settings import Ties
from docmt.evaluation.contrastive_accuracy import is_right
from docmt.evaluation.hypotheses import Hypothesis, Unit, join_segments
from docmt.evaluation.metrics import ACCURACY, METRICS, EvaluationSettings, bleu, chrf

N_SAMPLES = 1000
SEED = 12345
UNITS: tuple[Unit, ...] = get_args(Unit)

Runs = Sequence[Sequence[Hypothesis]]
"""The hypotheses of a system: one list per seed."""


@dataclass(frozen=True)
class Comparison:
    """One system against the first one.

    Attributes:
        metric: BLEU or chrF, with the segments that it is over.
        value: score in percent.
        difference: score minus the score of the first system; None for the first system itself.
        p_value: of the difference; None for the first system itself.
    """

    system: str
    metric: str
    value: float
    difference: float | None
    p_value: float | None
    signature: str


def compare_systems(
    systems: Mapping[str, Sequence[Hypothesis]],
    reference: Sequence[str],
    *,
    settings: EvaluationSettings,
    tgt_lang: str,
    test: Literal["bootstrap", "randomization"],
    n_samples: int,
    more_references: Sequence[Sequence[str]] = (),
    unit: Unit | None = None,
) -> list[Comparison]:
    """Test every system against the first one, by BLEU and chrF over the shortest segments that all share, or `unit`.

    The test is paired bootstrap resampling with `n_samples` resamples, or paired approximate randomization with
    `n_samples` trials, both by sacreBLEU.
    """
    if len(systems) < 2:
        raise UserError("a comparison needs the hypotheses of at least two systems with different names")
    runs = list(systems.values())
    shortest: Unit = next(each for each in UNITS if _share_segments(each, runs))
    unit = unit if unit is not None else shortest
    if UNITS.index(unit) < UNITS.index(shortest):
        raise UserError(f"--unit {unit}: the systems share no segments shorter than {shortest}")
    texts = {name: [hypothesis.sentences for hypothesis in found] for name, found in systems.items()}
    all_references = [reference, *more_references]
    joined = {name: join_segments(found, texts[name], all_references, unit) for name, found in systems.items()}
    references = next(iter(joined.values()))[1]
    metrics = {"BLEU": bleu(settings, tgt_lang), "chrF": chrf(settings, tgt_lang)}
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    paired = PairedTest(
        [(name, segments[0]) for name, segments in joined.items()],
        metrics,
        references,
        test_type={"bootstrap": "bs", "randomization": "ar"}[test],
        n_samples=n_samples,
    )
    signatures, results = paired()
    names = results.pop("System")
    rows = []
    for metric, found in results.items():
        scores = [result for result in found if isinstance(result, Result)]
        for name, result in zip(names, scores, strict=True):
            difference = None if result.p_value is None else result.score - scores[0].score
            # sacreBLEU counts trials of a strictly larger difference, so equal systems would get the smallest p.
            p_value = 1.0 if difference == 0 else result.p_value
            rows.append(
                Comparison(
                    system=str(name),
                    metric=f"{metric} ({unit})",
                    value=result.score,
                    difference=difference,
                    p_value=p_value,
                    signature=f"{signatures[metric].format()}|segments:{unit}",
                )
            )
    return rows


@dataclass(frozen=True)
class PairedDifference:
    """The difference of a system to the baseline by one metric.

    Attributes:
        phenomenon: of the items of a suite; None for all of them, and for translations.
        difference: of the mean scores over seeds, in percent points.
        p: two-sided p value of the difference.
        sign_p: p value of the sign test of Collins et al. (2005); None for accuracies.
        randomization_p: p value of approximate randomization (Riezler and Maxwell 2005); None for accuracies.
        n: number of segments or items.
        method: the test that gives `p`.
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
    for name, described in METRICS.items():
        make, unit = described.sacre, described.unit
        if not (described.is_tested and make and unit and name in settings.metrics):
            continue
        if not _share_segments(unit, [*system, *baseline]):
            continue
        metric = make(settings, tgt_lang)
        references = [reference, *more_references]
        ours, theirs = ([_statistics(metric, run, references, unit) for run in runs] for runs in (system, baseline))
        difference = fmean(_score(metric, run.sum(0)) for run in ours) - fmean(
            _score(metric, run.sum(0)) for run in theirs
        )
        resampled = bootstrap(metric, ours, theirs)
        found.append(
            PairedDifference(
                metric=name,
                phenomenon=None,
                difference=difference,
                p=_share_beyond(resampled - resampled.mean(), difference),
                sign_p=_sign_test(metric, ours, theirs),
                randomization_p=_randomize(metric, ours, theirs),
                n=len(ours[0]),
                method=f"paired bootstrap, {N_SAMPLES} resamples",
            )
        )
    return found


def _share_segments(unit: Unit, runs: Runs) -> bool:
    """Whether all runs have the same segments of a kind."""
    if unit == "sentences":
        return all(hypothesis.aligned for run in runs for hypothesis in run)
    return unit == "documents" or len({tuple(hypothesis.n_sentences for hypothesis in run) for run in runs}) == 1


def _statistics(
    metric: SacreMetric, run: Sequence[Hypothesis], references: Sequence[Sequence[str]], unit: Unit
) -> np.ndarray:
    """SacreBLEU's counts (n-grams and lengths), one row per segment; float64.

    The score of a corpus, or of a resample, follows from their sum.
    """
    segments = join_segments(run, [hypothesis.sentences for hypothesis in run], references, unit)
    return np.array(metric._extract_corpus_statistics(*segments), dtype="float64")


def _score(metric: SacreMetric, statistics: np.ndarray) -> float:
    return metric._compute_score_from_stats(statistics.tolist()).score


def bootstrap(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> np.ndarray:
    """The difference of mean scores in each resample of the segments; float64 [samples]."""
    n = len(ours[0])
    # How often each resample draws each segment [samples, segments], the same for all runs and both systems: that is
    # what makes the test paired. Counts @ statistics are then the summed statistics of all resamples.
    counts = np.random.default_rng(SEED).multinomial(n, [1 / n] * n, size=N_SAMPLES).astype("float64")

    def resample(runs: Sequence[np.ndarray]) -> np.ndarray:
        return np.mean([_scores(metric, counts @ run) for run in runs], axis=0)

    return resample(ours) - resample(theirs)


def _randomize(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """The p value of approximate randomization; a segment changes sides in all pairs of runs at once.

    Runs are paired in their order. The system with fewer runs begins again with its first run.
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
    # Sums in another order differ in the last digits: a resample that equals the observation must count as beyond it.
    beyond = np.abs(under_null) >= abs(observed) - 1e-9
    return (int(beyond.sum()) + 1) / (len(under_null) + 1)


def _sign_test(metric: SacreMetric, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """The p value of the sign test over segments, each by its mean change over pairs of runs in their order."""
    changes = []
    for our, their in zip(ours, theirs, strict=False):
        total = their.sum(0)
        before = _score(metric, total)
        changes.append([_score(metric, total + change) - before for change in our - their])
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

    With several seeds, each item's difference of mean accuracies has its sign drawn at random, in 1,000 samples; for
    one seed that is McNemar's test.

    Args:
        items: of the suite.
        system: log probabilities of the candidates by item id, for each seed.
        baseline: log probabilities of the baseline.
        ties: the verdict on an item with equal scores.
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
        # Items on which both are right or both wrong are no evidence: McNemar's test counts only the others.
        if is_single:
            p = binomial_p(int((own > 0).sum()), int((own < 0).sum()))
        else:
            signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=(N_SAMPLES, len(own)))
            p = _share_beyond(signs @ own / len(own), float(own.mean()))
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
