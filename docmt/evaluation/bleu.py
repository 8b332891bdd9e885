"""sacreBLEU metrics over sentences, instances and documents."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.ter import TER

from docmt.evaluation.external_programs import NotComputableError, missing_row
from docmt.evaluation.hypotheses import Unit, join_segments
from docmt.evaluation.score_rows import ScoreRow, group_values, share_of_counts
from docmt.evaluation.scoring import Metric, SegmentCounts, TranslatedTest, bleu
from docmt.evaluation.words import describe_words, tokenized_texts


def score_bleu(test: TranslatedTest, metrics: Mapping[str, Metric]) -> list[ScoreRow]:
    """Return rows with sacreBLEU metrics against the raw reference, lengths, and instance shares."""
    settings = test.settings
    tgt_lang = test.tgt_lang
    hypotheses = test.hypotheses
    raw = words = test.texts
    rows: list[ScoreRow] = []
    problem = None
    if any(metric.is_tokenized for metric in metrics.values()):
        try:
            words = tokenized_texts(test)  # once for all metrics, since it takes longer than scoring
        except NotComputableError as error:
            problem = str(error)
    for name, metric in metrics.items():
        assert metric.sacre is not None
        assert metric.unit is not None
        if metric.is_tokenized and problem is not None:
            rows.append(missing_row(name, problem))
            continue
        scorer = metric.sacre(settings, tgt_lang)
        texts = words if metric.is_tokenized else raw
        translations, references = join_segments(hypotheses, *texts, metric.unit)
        # The two steps of `corpus_score`, since counts by segment also give the score by groups of documents.
        statistics = scorer._extract_corpus_statistics(translations, references)
        score = scorer._aggregate_and_compute(statistics)
        counts = segment_counts(scorer, statistics)
        signature = f"{scorer.get_signature().format()}|segments:{metric.unit}"
        if metric.is_tokenized:
            signature += f"|words:{describe_words(tgt_lang, settings.word_tokenizer)}"
        row: ScoreRow = {"metric": name, "value": score.score, "n": len(translations), "signature": signature}
        row["groups"] = group_values(counts.rows, test.documents_of(metric.unit), counts.score)
        rows.append(row)

    # Shares in percent, as two counts per instance.
    scorer = bleu(settings, tgt_lang)
    lengths = count_segments(scorer, "instances", test).rows[:, :2]  # hypothesis, reference
    signature = f"words of the hypotheses per word of the reference|tok:{scorer.tokenizer_signature}"
    shares = {"length ratio": (lengths, signature)}
    # Otherwise, the share is 100 % by construction, or unknown.
    if not test.is_aligned and not any(hypothesis.one_line for hypothesis in hypotheses):
        same = [(len(hypothesis.sentences) == hypothesis.n_sentences, 1) for hypothesis in hypotheses]
        shares["sentence count preserved"] = np.array(same, float), "instances with as many sentences as the source"
    if any(hypothesis.forced_ends for hypothesis in hypotheses):
        forced = []
        for hypothesis in hypotheses:
            forced.append((hypothesis.forced_ends, 1 if hypothesis.joined else hypothesis.n_sentences))
        shares["length-limited sentences"] = np.array(forced, float), "sentences that reached the length limit"
    for name, (counts, signature) in shares.items():
        part, n = counts.sum(0).tolist()
        if n == 0:
            rows.append(missing_row(name, "the reference has no words"))
            continue
        groups = group_values(counts * (100, 1), test.documents_of("instances"), share_of_counts)
        rows.append({"metric": name, "value": 100 * part / n, "n": int(n), "signature": signature, "groups": groups})
    return rows


def count_segments(scorer: SacreMetric, unit: Unit, test: TranslatedTest) -> SegmentCounts:
    """Return sufficient statistics by segment, as used by sacreBLEU's scorer."""
    segments = join_segments(test.hypotheses, *test.texts, unit)
    return segment_counts(scorer, scorer._extract_corpus_statistics(*segments))


def segment_counts(scorer: SacreMetric, statistics: Sequence[Sequence[int | float]]) -> SegmentCounts:
    """Return sacreBLEU's statistics by segment, with the function from their sums to the score."""
    rows = np.array(statistics, dtype="float64")
    if isinstance(scorer, BLEU):
        return SegmentCounts(rows, partial(bleu_of_counts, smooth=scorer.smooth_method == "exp"))
    if isinstance(scorer, TER):
        return SegmentCounts(rows, ter_of_counts)
    return SegmentCounts(rows, chrf_of_counts)


def bleu_of_counts(counts: np.ndarray, *, smooth: bool) -> np.ndarray:
    """Return BLEU for summed counts [..., 10]: lengths on both sides, matches and n-grams by order."""
    # sacreBLEU's formula, vectorized for thousands of resamples.
    length = counts[..., 0]
    expected = counts[..., 1]
    correct = counts[..., 2:6]
    total = counts[..., 6:10]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Smoothing `exp`: the first order without a match counts half a match, the second a quarter, and so on.
        smoothed = 0.5 ** np.cumsum(correct == 0, axis=-1) if smooth else 0.0
        precisions = np.where(total > 0, np.where(correct > 0, correct, smoothed) / total, 0.0)
        brevity = np.minimum(0.0, 1 - expected / length)
        # An order without any n-gram makes log 0 = −∞, and the score 0.
        scores = 100 * np.exp(np.log(precisions).mean(-1) + brevity)
    return np.where(correct.any(-1), scores, 0.0)


def chrf_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return chrF2 for summed counts [..., 18], chrF2++ for [..., 24]: n-grams on both sides and matches by order."""
    # As in sacreBLEU, orders do not count if one side is too short.
    ours, theirs, matches = np.moveaxis(counts.reshape(*counts.shape[:-1], -1, 3), -1, 0)
    orders = (ours > 0) & (theirs > 0)
    n = np.maximum(orders.sum(-1), 1)
    precision = np.divide(matches, ours, where=orders, out=np.zeros_like(matches)).sum(-1) / n
    recall = np.divide(matches, theirs, where=orders, out=np.zeros_like(matches)).sum(-1) / n
    total = 4 * precision + recall
    return np.divide(500 * precision * recall, total, where=total > 0, out=np.zeros_like(total))


def ter_of_counts(counts: np.ndarray) -> np.ndarray:
    """Return TER for summed counts [..., 2]: edits and reference words."""
    edits = counts[..., 0]
    words = counts[..., 1]
    return np.divide(100 * edits, words, where=words > 0, out=np.where(edits > 0, 100.0, 0.0))
