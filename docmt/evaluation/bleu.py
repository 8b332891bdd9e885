"""sacreBLEU's metrics of translated documents, by sentence, by instance and by document, and the words they count."""

from collections.abc import Callable
from importlib import metadata

from docmt.evaluation import metrics
from docmt.evaluation.hypotheses import join_segments
from docmt.evaluation.metrics import METRICS, EvaluationSettings, TranslatedTest
from docmt.evaluation.score_rows import ScoreRow
from docmt.logs import progress
from docmt.text.tokenizer import chinese_words


def score_bleu(test: TranslatedTest) -> list[ScoreRow]:
    """BLEU and chrF of the settings against the raw reference, and the length of the translations.

    If the hypotheses are not aligned, metrics over sentence pairs are left out, and a row `aligned instances` gives the
    share of instances with as many sentences as the source.
    """
    settings, tgt_lang, hypotheses = test.settings, test.tgt_lang, test.hypotheses
    units = metrics.chosen_units(test, metrics.score_bleu)
    raw = words = [hypothesis.sentences for hypothesis in hypotheses], test.references
    if any(METRICS[name].is_tokenized for name in units):
        tokenize = word_tokenizer(settings, tgt_lang)
        texts = progress([*raw[0], *raw[1]], label="tokenize", unit="instances")
        tokenized = [[tokenize(sentence) for sentence in sentences] for sentences in texts]
        words = tokenized[: len(hypotheses)], tokenized[len(hypotheses) :]
    rows: list[ScoreRow] = []
    for name, unit in units.items():
        metric = METRICS[name]
        assert metric.sacre is not None
        scorer = metric.sacre(settings, tgt_lang)
        translations, references = join_segments(hypotheses, *(words if metric.is_tokenized else raw), unit)
        score = scorer.corpus_score(translations, references)
        signature = f"{scorer.get_signature().format()}|segments:{unit}"
        if metric.is_tokenized:
            signature += f"|words:{describe_words(settings, tgt_lang)}"
        rows.append({"metric": name, "value": score.score, "n": len(translations), "signature": signature})

    scorer = metrics.bleu(settings, tgt_lang)
    whole = scorer.corpus_score(*join_segments(hypotheses, *raw, "instances"))
    rows.append(
        {
            "metric": "length ratio",
            "value": 100 * whole.sys_len / whole.ref_len if whole.ref_len else float("nan"),
            "n": whole.ref_len,
            "signature": f"words of the hypotheses per word of the reference|tok:{scorer.tokenizer_signature}",
        }
    )
    n_same = sum(len(hypothesis.sentences) == hypothesis.n_sentences for hypothesis in hypotheses)
    n_forced = sum(hypothesis.forced_ends for hypothesis in hypotheses)
    shares = {
        "aligned instances": (n_same, len(hypotheses), "instances with as many sentences as the source"),
        "forced ends": (n_forced, len(test.reference), "sentences that reached the length limit"),
    }
    if test.is_aligned:  # by construction: a share of 100 % would tell nothing
        del shares["aligned instances"]
    if not n_forced:
        del shares["forced ends"]
    for name, (part, n, signature) in shares.items():
        rows.append({"metric": name, "value": 100 * part / n, "n": n, "signature": signature})
    return rows


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
    """The name and version of `word_tokenizer` in signatures."""
    tokenizer = _word_tokenizer_name(settings, lang)
    package = {"moses": "sacremoses", "jieba": "jieba"}[tokenizer]
    return f"{tokenizer}-{lang} ({package} {metadata.version(package)})"
