"""BLEU and chrF of translated documents, by sentence, by instance and by document."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata

from sacrebleu.metrics.base import Metric as SacreMetric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from docmt.evaluation import metrics
from docmt.evaluation.hypotheses import Hypothesis, Unit, join_segments
from docmt.evaluation.metrics import DOC2DOC, TranslatedTest
from docmt.evaluation.rows import ScoreRow
from docmt.evaluation.settings import EvaluationSettings
from docmt.logs import progress
from docmt.text.chinese import chinese_words


@dataclass(frozen=True)
class Sides:
    """The sentences of each instance, and those of each reference."""

    translations: Sequence[Sequence[str]]
    references: Sequence[Sequence[str]]

    def join(self, hypotheses: Sequence[Hypothesis], unit: Unit) -> tuple[list[str], list[list[str]]]:
        """The segments of the translations and of each reference."""
        return join_segments(hypotheses, self.translations, self.references, unit)


def score_bleu(test: TranslatedTest) -> list[ScoreRow]:
    """BLEU and chrF against the raw reference, as far as the settings name them, and how long the translations are.

    If the hypotheses are not aligned, metrics over sentence pairs are left out, and a row `aligned instances` gives the
    share of instances with as many sentences as the source.
    """
    settings, tgt_lang = test.settings, test.tgt_lang
    units = metrics.chosen_units(test, metrics.score_bleu)
    raw = words = Sides([hypothesis.sentences for hypothesis in test.hypotheses], test.references)
    if any(_is_tokenized(name) for name in units):
        words = _tokenize(raw, word_tokenizer(settings, tgt_lang))
    rows: list[ScoreRow] = []
    for name, unit in units.items():
        sides = words if _is_tokenized(name) else raw
        translations, references = sides.join(test.hypotheses, unit)
        scorer = build_metric(name, settings, tgt_lang)
        score = scorer.corpus_score(translations, references)
        signature = f"{scorer.get_signature().format()}|segments:{unit}"
        if _is_tokenized(name):
            signature += f"|words:{describe_words(settings, tgt_lang)}"
        rows.append({"metric": name, "value": score.score, "n": len(translations), "signature": signature})
    return rows + _describe_lengths(test, raw, build_bleu(settings, tgt_lang))


def _is_tokenized(name: str) -> bool:
    return name.startswith("tokenised") or name == DOC2DOC


def _tokenize(raw: Sides, tokenize: Callable[[str], str]) -> Sides:
    every = progress([*raw.translations, *raw.references], label="tokenize", unit="instances")
    tokenized = [[tokenize(sentence) for sentence in sentences] for sentences in every]
    n = len(raw.translations)
    return Sides(tokenized[:n], tokenized[n:])


def build_metric(name: str, settings: EvaluationSettings, tgt_lang: str) -> SacreMetric:
    """The sacreBLEU metric of one of our names."""
    if name == "chrF":
        return CHRF(lowercase=settings.lowercase)
    if _is_tokenized(name):
        # Moses' multi-bleu.perl: words as separated by spaces, and no smoothing.
        is_lower = settings.lowercase or name == DOC2DOC
        return BLEU(lowercase=is_lower, tokenize="none", smooth_method="none", force=True)
    return build_bleu(settings, tgt_lang)


def build_bleu(settings: EvaluationSettings, tgt_lang: str) -> BLEU:
    """BLEU of untokenized text."""
    tokenizer = settings.bleu_tokenizer
    if tokenizer == "auto":
        tokenizer = "zh" if tgt_lang == "zh" else "13a"
    # `force` only silences a warning about references that end in " .", which occur in real corpora.
    return BLEU(lowercase=settings.lowercase, tokenize=tokenizer, force=True)


def word_tokenizer(settings: EvaluationSettings, tgt_lang: str) -> Callable[[str], str]:
    """A function from a sentence to its words, separated by spaces."""
    if _word_tokenizer_name(settings, tgt_lang) == "jieba":
        return lambda text: " ".join(word for word in chinese_words(text) if word.strip())
    from sacremoses import MosesTokenizer

    tokenizer = MosesTokenizer(lang=tgt_lang)
    return lambda text: str(tokenizer.tokenize(text, escape=False, return_str=True))


def _word_tokenizer_name(settings: EvaluationSettings, tgt_lang: str) -> str:
    if settings.word_tokenizer == "auto":
        return "jieba" if tgt_lang == "zh" else "moses"
    return settings.word_tokenizer


def describe_words(settings: EvaluationSettings, lang: str) -> str:
    """How signatures describe `word_tokenizer`."""
    tokenizer = _word_tokenizer_name(settings, lang)
    package = {"moses": "sacremoses", "jieba": "jieba"}[tokenizer]
    return f"{tokenizer}-{lang} ({package} {metadata.version(package)})"


def _describe_lengths(test: TranslatedTest, raw: Sides, scorer: BLEU) -> list[ScoreRow]:
    """Rows on length and alignment, all in percent."""
    hypotheses = test.hypotheses
    score = scorer.corpus_score(*raw.join(hypotheses, "instances"))
    rows: list[ScoreRow] = [
        {
            "metric": "length ratio",
            "value": 100 * score.sys_len / score.ref_len if score.ref_len else float("nan"),
            "n": score.ref_len,
            "signature": f"words of the hypotheses per word of the reference|tok:{scorer.tokenizer_signature}",
        }
    ]
    if not test.is_aligned:
        n_same = sum(len(hypothesis.sentences) == hypothesis.n_sentences for hypothesis in hypotheses)
        signature = "instances with as many sentences as the source"
        rows.append(_share("aligned instances", n_same, len(hypotheses), signature=signature))
    n_forced = sum(hypothesis.forced_ends for hypothesis in hypotheses)
    if n_forced:
        signature = "sentences that reached the length limit"
        rows.append(_share("forced ends", n_forced, len(raw.references[0]), signature=signature))
    return rows


def _share(metric: str, part: int, whole: int, *, signature: str) -> ScoreRow:
    return {"metric": metric, "value": 100 * part / whole, "n": whole, "signature": signature}
