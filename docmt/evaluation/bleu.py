"""BLEU and chrF of translated documents, by sentence, by instance and by document."""

from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric as SacreMetric

from docmt.evaluation.hypotheses import Hypothesis, Unit, is_aligned, join_segments
from docmt.evaluation.settings import EvaluationSettings
from docmt.logs import progress

UNITS: dict[str, Unit] = {
    "s-BLEU": "sentences",
    "d-BLEU (instances)": "instances",
    "d-BLEU (documents)": "documents",
    "tokenised s-BLEU": "sentences",
    "tokenised d-BLEU (instances)": "instances",
    "chrF": "sentences",
}
"""What each metric takes as one segment."""


def score_hypotheses(
    hypotheses: Sequence[Hypothesis], reference: Sequence[str], *, settings: EvaluationSettings, tgt_lang: str
) -> list[dict[str, Any]]:
    """BLEU and chrF of translations against the raw reference; other metrics of the settings are not looked at.

    When the hypotheses are not aligned, metrics over sentence pairs are left out, and a row `aligned instances` gives
    the share of instances with as many sentences as the source.

    Args:
        hypotheses: all instances of a split, in order (`read_hypotheses`).
        reference: the sentences of the split, untokenised.
        settings: which metrics, and how words are found.
        tgt_lang: language of hypotheses and reference.

    Returns:
        Rows with the keys metric, value (percent), n (segments) and signature.
    """
    aligned = is_aligned(hypotheses)
    texts = [hypothesis.sentences for hypothesis in hypotheses]
    metrics = [name for name in settings.metrics if name in UNITS]
    metrics = [name for name in metrics if aligned or UNITS[name] != "sentences"]
    words: tuple[list[list[str]], list[str]] | None = None
    if any(name.startswith("tokenised") for name in metrics):
        tokenize = word_tokenizer(settings, tgt_lang)
        every = progress([*texts, reference], label="tokenise", unit="instances")
        *tokens, reference_tokens = [[tokenize(sentence) for sentence in sentences] for sentences in every]
        words = tokens, reference_tokens
    rows = []
    for name in metrics:
        translations, references = words if name.startswith("tokenised") else (texts, reference)
        segments = join_segments(hypotheses, translations, references, UNITS[name])
        scorer = build_metric(name, settings, tgt_lang)
        score = scorer.corpus_score(segments[0], [segments[1]])
        signature = _signature(scorer, name, settings, tgt_lang)
        rows.append({"metric": name, "value": score.score, "n": len(segments[0]), "signature": signature})
    return rows + _describe_lengths(hypotheses, reference, settings=settings, tgt_lang=tgt_lang, aligned=aligned)


def build_metric(name: str, settings: EvaluationSettings, tgt_lang: str) -> SacreMetric:
    """The sacreBLEU metric behind one of our names."""
    if name == "chrF":
        return CHRF(lowercase=settings.lowercase)
    if name.startswith("tokenised"):
        # Moses' multi-bleu.perl: words as they stand between blanks, and no smoothing.
        return BLEU(lowercase=settings.lowercase, tokenize="none", smooth_method="none", force=True)
    tokenizer = settings.bleu_tokenizer
    if tokenizer == "auto":
        tokenizer = "zh" if tgt_lang == "zh" else "13a"
    # `force` only silences a warning about references that end in " .", which real corpora have.
    return BLEU(lowercase=settings.lowercase, tokenize=tokenizer, force=True)


def word_tokenizer(settings: EvaluationSettings, tgt_lang: str) -> Callable[[str], str]:
    """A function from a sentence to its words, separated by blanks."""
    if _word_tokenizer_name(settings, tgt_lang) == "jieba":
        import jieba

        return lambda text: " ".join(word for word in jieba.cut(text) if word.strip())
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=tgt_lang)
    return lambda text: tokenizer.tokenize(text, escape=False, return_str=True)


def _word_tokenizer_name(settings: EvaluationSettings, tgt_lang: str) -> str:
    if settings.word_tokenizer == "auto":
        return "jieba" if tgt_lang == "zh" else "moses"
    return settings.word_tokenizer


def _signature(scorer: SacreMetric, name: str, settings: EvaluationSettings, tgt_lang: str) -> str:
    """SacreBLEU's signature, with our tokeniser and the segments that the score is over."""
    signature = f"{scorer.get_signature().format()}|segments:{UNITS[name]}"
    if name.startswith("tokenised"):
        signature += f"|words:{describe_words(settings, tgt_lang)}"
    return signature


def describe_words(settings: EvaluationSettings, lang: str) -> str:
    """What a signature says of `word_tokenizer`."""
    tokenizer = _word_tokenizer_name(settings, lang)
    package = {"moses": "sacremoses", "jieba": "jieba"}[tokenizer]
    return f"{tokenizer}-{lang} ({package} {metadata.version(package)})"


def _describe_lengths(
    hypotheses: Sequence[Hypothesis],
    reference: Sequence[str],
    *,
    settings: EvaluationSettings,
    tgt_lang: str,
    aligned: bool,
) -> list[dict[str, Any]]:
    """Rows on length and alignment, all in percent."""
    scorer = build_metric("d-BLEU (instances)", settings, tgt_lang)
    texts = [hypothesis.sentences for hypothesis in hypotheses]
    segments = join_segments(hypotheses, texts, reference, "instances")
    score = scorer.corpus_score(segments[0], [segments[1]])
    rows = [
        {
            "metric": "length ratio",
            "value": 100 * score.sys_len / score.ref_len if score.ref_len else float("nan"),
            "n": score.ref_len,
            "signature": f"words of the hypotheses per word of the reference|tok:{scorer.tokenizer_signature}",
        }
    ]
    if not aligned:
        same = sum(len(hypothesis.sentences) == hypothesis.n_sentences for hypothesis in hypotheses)
        rows.append(
            {
                "metric": "aligned instances",
                "value": 100 * same / len(hypotheses),
                "n": len(hypotheses),
                "signature": "instances with as many sentences as the source",
            }
        )
    forced = sum(hypothesis.forced_ends for hypothesis in hypotheses)
    if forced:
        rows.append(
            {
                "metric": "forced ends",
                "value": 100 * forced / len(reference),
                "n": len(reference),
                "signature": "sentences that reached the length limit",
            }
        )
    return rows
