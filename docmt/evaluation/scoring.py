"""Scoring settings, translated test sets, segment counts, and `Metric`.

Scorers such as `bleu` and `meteor` import this module. `metrics` lists all metrics with their scorers. numpy and
sacreBLEU are imported inside functions, since planning a study imports this module without computing scores.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from docmt.corpora.documents import text_path
from docmt.errors import UserError
from docmt.evaluation.hypotheses import Hypothesis, Unit
from docmt.evaluation.score_rows import ScoreRow
from docmt.evaluation.segment_scores import SegmentScores
from docmt.files import read_lines
from docmt.languages import language_of
from docmt.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from sacrebleu.metrics.base import Metric as SacreMetric
    from sacrebleu.metrics.bleu import BLEU

BLEU_TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
"""BLEU tokenizers by language, as in sacreBLEU (default: `13a`)."""
TER_CHARACTERS = ("zh", "ja")
"""Languages for which TER compares characters."""


class ScoringSettings(Settings):
    """Settings for translation scores."""

    metrics: list[str]
    """Metrics to compute."""
    lowercase: bool = False
    """Ignore case, as is customary for Chinese to English. Signatures then contain `case:lc`."""
    bleu_tokenizer: Literal["auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char"] = "auto"
    """sacreBLEU tokenizer. `auto`: `zh` for Chinese, `ja-mecab` for Japanese, `ko-mecab` for Korean, otherwise
    `13a`."""
    word_tokenizer: Literal["auto", "moses", "jieba"] = "auto"
    """Tokenizer for metrics over tokenized text. `auto`: `jieba` for Chinese, otherwise `moses`."""
    meteor_language: Literal["auto", "independent"] = "auto"
    """`auto`: METEOR's parameters for the target language, if any (docs/evaluation.md). `independent`:
    language-independent parameters, which match identical words only."""
    aligner_runs: int = Field(default=3, ge=1, le=100)
    """Number of random word alignments for the mean APT."""
    aligner_sentences: int = Field(default=20_000, ge=0)
    """Number of sentence pairs at the start of the training text that are aligned together with the test set (APT)."""


@dataclass(frozen=True)
class TranslatedTest:
    """Translated test split with references."""

    hypotheses: Sequence[Hypothesis]  # all instances in the split, in order
    reference: Sequence[str]  # the split's sentences, untokenized
    settings: ScoringSettings
    prefix: Path  # the split's raw text, as PREFIX.{lang}
    src_lang: str
    tgt_lang: str
    training: Path | None = None  # prefix of the raw training text
    more_references: Sequence[Sequence[str]] = ()  # for BLEU, chrF, TER and METEOR
    segment_scores: Mapping[str, SegmentScores] = field(default_factory=dict)  # by metric, from other programs
    _counted: "dict[CountSegments, SegmentCounts]" = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def references(self) -> list[Sequence[str]]:
        """All references."""
        return [self.reference, *self.more_references]

    @property
    def sentences(self) -> list[str]:
        """All hypotheses' sentences, as many as in the source if they are aligned."""
        sentences: list[str] = []
        for hypothesis in self.hypotheses:
            sentences += hypothesis.sentences
        return sentences

    @property
    def texts(self) -> tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]:
        """Sentences by hypothesis, and sentences by reference."""
        return [hypothesis.sentences for hypothesis in self.hypotheses], self.references

    @property
    def documents(self) -> list[str]:
        """Document ids, one per source sentence."""
        return self.documents_of("sentences")

    def documents_of(self, unit: Unit) -> list[str]:
        """Return document ids, one per segment."""
        documents: list[str] = []
        for hypothesis in self.hypotheses:
            n_segments = hypothesis.n_sentences if unit == "sentences" else 1
            documents += [hypothesis.document] * n_segments
        if unit == "documents":
            return list(dict.fromkeys(documents))
        return documents

    def read_source(self) -> list[str]:
        """Read the source sentences."""
        path = text_path(self.prefix, self.src_lang)
        lines = read_lines(path)
        if len(lines) != len(self.reference):  # a user-supplied file can have blank lines
            lines = [line for line in lines if line.strip()]
        if len(lines) != len(self.reference):
            raise UserError(f"{path}: {len(lines)} sentences, but the reference has {len(self.reference)}")
        return lines

    @property
    def is_aligned(self) -> bool:
        """True if the hypotheses have one sentence per source sentence by construction."""
        return all(hypothesis.aligned for hypothesis in self.hypotheses)

    def counts(self, count: "CountSegments") -> "SegmentCounts":
        """Return a metric's counts. They are cached, since a baseline has many comparisons."""
        if count not in self._counted:
            self._counted[count] = count(self)
        return self._counted[count]


class SegmentCounts(NamedTuple):
    """Counts by segment whose sums determine a score."""

    rows: "np.ndarray"  # float64 [segments, numbers]
    score: "Callable[[np.ndarray], np.ndarray]"  # from sums [..., numbers] to percent


Scorer = Callable[[TranslatedTest], list[ScoreRow]]
CountSegments = Callable[[TranslatedTest], SegmentCounts]
MakeSacre = Callable[[ScoringSettings, str], "SacreMetric"]  # arguments: settings, target language


@dataclass(frozen=True)
class Metric:
    """One metric."""

    about: str  # definition
    scorer: Scorer | None = None  # computes related metrics together (None: another command computes them)
    sacre: MakeSacre | None = None
    is_tokenized: bool = False  # True if sacreBLEU reads `tokenized_texts`
    unit: Unit | None = None  # segment unit (None: no segments)
    needs: tuple[str, ...] = ()  # external requirements, so that the metric is only computed if the settings name it
    always: bool = False  # always reported by the scorer
    on_request: bool = False  # only computed if the settings name it, although it has no requirements
    is_main: bool = False  # column in the report's main table by default
    digits: int = 2  # after the decimal point in tables
    lower_is_better: bool = False
    counts: CountSegments | None = None  # for paired tests (None: not tested)


def bleu(settings: ScoringSettings, tgt_lang: str) -> "BLEU":
    """Build BLEU for untokenized text."""
    from sacrebleu.metrics.bleu import BLEU

    tokenizer = settings.bleu_tokenizer
    if tokenizer == "auto":
        tokenizer = BLEU_TOKENIZERS.get(language_of(tgt_lang), "13a")
    # `force` only silences a warning about references that end in " .". These occur in real corpora.
    return BLEU(lowercase=settings.lowercase, tokenize=tokenizer, force=True)


def multi_bleu(settings: ScoringSettings, tgt_lang: str, *, lowercase: bool = False) -> "BLEU":
    """Build BLEU as in Moses' multi-bleu.perl: words separated by spaces, no smoothing."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(lowercase=lowercase or settings.lowercase, tokenize="none", smooth_method="none", force=True)


def chrf(settings: ScoringSettings, tgt_lang: str, *, word_order: int = 0) -> "SacreMetric":
    """Build chrF, or chrF++ with a word order of 2."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(lowercase=settings.lowercase, word_order=word_order)


def ter(settings: ScoringSettings, tgt_lang: str) -> "SacreMetric":
    """Build TER, over characters for Chinese and Japanese."""
    from sacrebleu.metrics.ter import TER

    by_character = language_of(tgt_lang) in TER_CHARACTERS
    return TER(case_sensitive=not settings.lowercase, normalized=by_character, asian_support=by_character)
