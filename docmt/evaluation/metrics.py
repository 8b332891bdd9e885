"""All metrics with functions, requirements and display, and settings that choose among them.

The report and the table in docs/evaluation.md are derived from them. To add a metric, write a function that returns
rows (for a sacreBLEU metric: a function that returns the scorer) and add an entry to `METRICS`. `make docs` updates the
pages.
"""

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from docmt.decoding.settings import ContrastScore
from docmt.errors import UserError
from docmt.evaluation.hypotheses import Unit
from docmt.evaluation.score_rows import ScoreRow, group_means, share_of_counts
from docmt.evaluation.scoring import (
    BLEU_TOKENIZERS,
    TER_CHARACTERS,
    MakeSacre,
    Metric,
    Scorer,
    ScoringSettings,
    SegmentCounts,
    TranslatedTest,
    bleu,
    chrf,
    multi_bleu,
    ter,
)
from docmt.languages import has_blanks, language_of
from docmt.provenance import package_versions
from docmt.settings import Settings, UserPath, one_of

Ties = Literal["wrong", "first"]
ACCURACY, GENERATIVE = ACCURACIES = ("contrastive accuracy", "generative accuracy")
CXMI, LOG_PROBABILITY = OF_REFERENCES = ("CXMI", "log probability")
COMET = "COMET"
LOWER = "↓"
"""Last character in the name of an external metric for which lower scores are better."""
DOC2DOC = "Doc2Doc d-BLEU"
JAVA, ALIGNER, TRAINING, MODEL = "Java", "eflomal", "the training text", "the model"
TOKENIZER_MODULES = {"ja-mecab": ("MeCab", "sacrebleu[ja]"), "ko-mecab": ("mecab_ko", "sacrebleu[ko]")}
"""Tokenizer → (imported module, package that contains it)."""


# Scorers are imported on demand, because sacreBLEU and the tokenizers take long to import.
def score_bleu(test: TranslatedTest) -> list[ScoreRow]:
    """Return sacreBLEU rows."""
    from docmt.evaluation.bleu import score_bleu as score

    return score(test, chosen_metrics(test, score_bleu))


def score_meteor(test: TranslatedTest) -> list[ScoreRow]:
    """Return METEOR rows."""
    from docmt.evaluation.meteor import score_meteor as score

    return score(test, chosen_metrics(test, score_meteor))


def score_apt(test: TranslatedTest) -> list[ScoreRow]:
    """Return APT rows."""
    from docmt.evaluation.pronouns import score_pronouns

    return score_pronouns(test)


def chosen_metrics(test: TranslatedTest, scorer: Scorer) -> dict[str, Metric]:
    """Return the metrics in the settings that a scorer computes over segments."""
    metrics = {}
    for name in test.settings.metrics:
        metric = find_metric(name)
        # Sentences in unaligned hypotheses have no counterparts in the reference.
        if metric.scorer is scorer and metric.unit and (test.is_aligned or metric.unit != "sentences"):
            metrics[name] = metric
    return metrics


def sacre_metric(
    about: str,
    sacre: MakeSacre,
    unit: Unit,
    *,
    on_request: bool = False,
    is_main: bool = True,
    lower_is_better: bool = False,
) -> Metric:
    """Return a sacreBLEU metric over raw text with significance tests."""

    def count(test: TranslatedTest) -> SegmentCounts:
        from docmt.evaluation.bleu import count_segments  # imports sacreBLEU

        return count_segments(sacre(test.settings, test.tgt_lang), unit, test)

    return Metric(
        about,
        score_bleu,
        sacre,
        unit=unit,
        on_request=on_request,
        is_main=is_main and not on_request,
        lower_is_better=lower_is_better,
        counts=count,
    )


words_metric = partial(Metric, scorer=score_bleu, is_tokenized=True)
"""A sacreBLEU metric over tokenized text. Differences are only tested over raw text."""

METRICS: dict[str, Metric] = {
    "s-BLEU": sacre_metric("sacreBLEU, case-sensitive, detokenized", bleu, "sentences"),
    "d-BLEU (instances)": sacre_metric("the same, as in the code of G-Transformer", bleu, "instances"),
    "d-BLEU (documents)": sacre_metric("the same", bleu, "documents"),
    "tokenized s-BLEU": words_metric(
        "Moses words, no smoothing: equal to Moses' `multi-bleu.perl`", sacre=multi_bleu, unit="sentences"
    ),
    "tokenized d-BLEU (instances)": words_metric("Moses words, no smoothing", sacre=multi_bleu, unit="instances"),
    DOC2DOC: words_metric(
        "lower-cased Moses words, no smoothing: the d-BLEU of Doc2Doc (Sun et al. 2022)",
        sacre=partial(multi_bleu, lowercase=True),
        unit="documents",
        on_request=True,
    ),
    "chrF": sacre_metric("chrF2 of sacreBLEU", chrf, "sentences"),
    "d-chrF (documents)": sacre_metric("the same", chrf, "documents", is_main=False),
    "chrF++": sacre_metric("chrF2++ of sacreBLEU", partial(chrf, word_order=2), "sentences", on_request=True),
    "TER": sacre_metric("TER of sacreBLEU", ter, "sentences", on_request=True, lower_is_better=True),
    "length ratio": Metric("words of the hypotheses in % of the reference", score_bleu, always=True),
    "sentence count preserved": Metric(
        "share of instances with as many sentences as the source; only for unaligned systems", score_bleu, always=True
    ),
    "length-limited sentences": Metric(
        "share of sentences that reached the length limit; only when there are any", score_bleu, always=True
    ),
    "METEOR": Metric("METEOR 1.5", score_meteor, unit="sentences", needs=(JAVA,)),
    "d-METEOR (instances)": Metric("METEOR 1.5", score_meteor, unit="instances", needs=(JAVA,)),
    "APT": Metric("accuracy of pronouns", score_apt, needs=(ALIGNER, TRAINING)),
    CXMI: Metric("gain in log probability of a reference sentence from context, in nats", needs=(MODEL,)),
    LOG_PROBABILITY: Metric("mean over reference sentences, in nats; comes with CXMI", needs=(MODEL,), always=True),
    COMET: Metric("a trained metric, section `evaluation.comet`", unit="sentences", needs=("its own environment",)),
    ACCURACY: Metric("share of contrastive items in which the correct candidate wins", digits=1),
    GENERATIVE: Metric("share of items whose translation contains the expected words", digits=1),
}


def selectable_metrics() -> list[str]:
    """Return the metrics that `evaluation.metrics` can name."""
    names = []
    for name, metric in METRICS.items():
        if not metric.always and (metric.scorer is not None or MODEL in metric.needs):
            names.append(name)
    return names


MetricName = Annotated[
    str,
    one_of(selectable_metrics, "must name a metric"),
    WithJsonSchema({"enum": selectable_metrics(), "type": "string"}),
]


class ContrastSettings(Settings):
    """Scoring of contrastive test sets."""

    score: ContrastScore = "log_probability"
    """Candidate score over the target document: log probability, mean log probability per token, or the negative
    training loss with label smoothing 0.1 (as in Voita et al. 2019)."""
    context: Literal["gold", "own"] = "gold"
    """Preceding target sentences: reference (`gold`), or translated by the system (`own`)."""
    ties: Ties = "wrong"
    """Result if several candidates share the highest score: `wrong`, or the `first` of them wins. In Voita et al.'s
    scripts, the first wins, which is often the correct candidate."""


class CometSettings(Settings):
    """COMET. Computed if this section is set."""

    checkpoint: str
    """Model: a `.ckpt` file, or the folder that contains `checkpoints/model.ckpt`."""
    program: str = "comet-score"
    """Command, or its path in another environment (`workflow/envs/comet.yml`)."""
    context: int = Field(default=0, ge=0)
    """Number of sentences to put before each sentence. 0: COMET as published. 2: context as in Vernikos et al. (2022).
    """
    batch_size: int = Field(default=16, ge=1)
    """Batch size in sentences."""
    gpus: int = Field(default=0, ge=0, le=1)
    """Number of GPUs."""

    @property
    def model_file(self) -> str:
        """Checkpoint file."""
        path = Path(self.checkpoint)
        if path.suffix == ".ckpt":
            return self.checkpoint
        return str(path / "checkpoints" / "model.ckpt")


class EvaluationSettings(ScoringSettings):
    """Translation metrics."""

    metrics: list[MetricName] = Field(
        default=[name for name in selectable_metrics() if not (METRICS[name].needs or METRICS[name].on_request)],
        min_length=1,
    )
    """Metrics to compute. Sentence-level metrics require systems with sentence alignment. METEOR requires Java, and APT
    (pronoun accuracy) requires eflomal. Otherwise their scores are missing."""
    comet: CometSettings | None = None
    """COMET. Default: not computed."""
    external: dict[str, dict[str, dict[str, UserPath]]] = {}
    """Files with scores from other programs, by metric, test set (`DATASET/TEST`) and run (`SYSTEM`, or
    `SYSTEM/seedN` for several seeds). A file has one number per sentence or per document. If lower scores are better,
    the name of the metric ends in `↓`."""
    contrast: ContrastSettings = ContrastSettings()
    """Scoring of contrastive test sets."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.metrics:
            if self.metrics.count(name) > 1:
                raise ValueError(f"duplicate metric {name!r}")
        for name in self.external:
            if name in METRICS or not name.strip() or {*"=/|"} & {*name}:
                raise ValueError(
                    f"external: {name!r} must not be a metric of docmt, nor contain '=', '/' or '|': rename it"
                )
        return self


def check_target_language(settings: ScoringSettings, tgt_lang: str) -> None:
    """Raise UserError for word-based metrics that do not support the target language."""
    language = language_of(tgt_lang)
    tokenizer = settings.bleu_tokenizer
    if tokenizer == "auto":
        tokenizer = BLEU_TOKENIZERS.get(language, "13a")
        if tokenizer == "13a" and not has_blanks(language):
            raise UserError(f"BLEU: {tgt_lang} has no blanks between words: set evaluation.bleu_tokenizer to char")
    module, package = TOKENIZER_MODULES.get(tokenizer, ("sacrebleu", ""))
    if find_spec(module) is None:
        raise UserError(
            f"BLEU of {tgt_lang}: the tokenizer {tokenizer} is missing: pip install '{package}', or set "
            "evaluation.bleu_tokenizer to char"
        )
    for name, languages in (("chrF++", ()), ("TER", TER_CHARACTERS)):
        if name in settings.metrics and not has_blanks(language) and language not in languages:
            raise UserError(f"{name}: {tgt_lang} does not separate words by blanks: remove it from evaluation.metrics")


def find_metric(name: str) -> Metric:
    """Return the metric with this name. Metrics of other programs (`evaluation.external`) have other names."""
    return METRICS.get(name, Metric("", counts=partial(_external_counts, name), lower_is_better=name.endswith(LOWER)))


def _external_counts(name: str, test: TranslatedTest) -> SegmentCounts:
    import numpy as np

    values = test.segment_scores[name].values
    return SegmentCounts(np.stack([values, np.ones(len(values))], axis=1), share_of_counts)


def scoring_packages(names: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages that compute metrics, since scores can differ between versions."""
    packages = ["sacrebleu", "sacremoses", "jieba"]
    for need, package in ((ALIGNER, "eflomal"), (JAVA, "pycocoevalcap")):
        if any(need in find_metric(name).needs for name in names):
            packages.append(package)
    return package_versions(packages)


def score_translations(test: TranslatedTest) -> list[ScoreRow]:
    """Return rows for all metrics in the settings, metrics that are always reported, and metrics of other programs."""
    check_target_language(test.settings, test.tgt_lang)
    scorers: dict[Scorer, None] = {}
    for name, metric in METRICS.items():
        if metric.scorer is not None and (metric.always or name in test.settings.metrics):
            scorers[metric.scorer] = None
    rows: list[ScoreRow] = []
    for scorer in scorers:
        rows += scorer(test)
    for name, scores in test.segment_scores.items():
        row: ScoreRow = {
            "metric": name,
            "value": float(scores.values.mean()),
            "n": len(scores.values),
            "signature": f"from a file|segments:{scores.unit}|mean of segments",
            "groups": group_means(scores.values, test.documents_of(scores.unit)),
        }
        rows.append(row)
    return rows
