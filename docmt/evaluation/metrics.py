"""All metrics: what each is called, which function computes it, what it needs and how it is shown.

The settings accept these names, and the report and the table in docs/evaluation.md follow. To add a metric, write a
function that returns its rows and add an entry here; `make docs` updates the pages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from docmt.settings import nearest

if TYPE_CHECKING:  # planning a study reads this module and computes nothing
    from docmt.evaluation.hypotheses import Hypothesis, Unit
    from docmt.evaluation.rows import ScoreRow
    from docmt.evaluation.settings import EvaluationSettings

ACCURACY, GENERATIVE = ACCURACIES = ("contrastive accuracy", "generative accuracy")
CXMI, COMET = "CXMI", "COMET"
DOC2DOC = "Doc2Doc d-BLEU"
BLONDE = ("BlonDe pronouns", "BlonDe markers")
TERMS, ADDRESS = "term consistency", "address consistency"
JAVA, ALIGNER, TRAINING, MODEL = "Java", "eflomal", "the training text", "the model"


@dataclass(frozen=True)
class TranslatedTest:
    """The translation of a test split, and what it is scored against.

    Attributes:
        hypotheses: all instances of the split, in order.
        reference: the sentences of the split, untokenized.
        more_references: further translations of the same sentences, for BLEU, chrF, METEOR and BlonDe.
        settings: which metrics, and how they are computed.
        prefix: raw text of the split, as `PREFIX.{lang}`.
        src_lang, tgt_lang: languages.
        training: raw text of the training split likewise, where there is any.
    """

    hypotheses: Sequence["Hypothesis"]
    reference: Sequence[str]
    settings: "EvaluationSettings"
    prefix: Path
    src_lang: str
    tgt_lang: str
    training: Path | None = None
    more_references: Sequence[Sequence[str]] = ()

    @property
    def references(self) -> list[Sequence[str]]:
        """All references."""
        return [self.reference, *self.more_references]

    @property
    def is_aligned(self) -> bool:
        """Whether each sentence is the translation of a known source sentence by construction."""
        return all(hypothesis.aligned for hypothesis in self.hypotheses)


Scorer = Callable[[TranslatedTest], "list[ScoreRow]"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        about: how it is computed, in words.
        scorer: computes it, together with others, as far as the settings name them; None where another command does.
        unit: what it takes as one segment; None when it has none.
        needs: what it needs beyond Python. What needs something is computed only when the settings name it.
        always: whether its scorer reports it even when no setting names it.
        on_request: whether it is computed only when the settings name it, as what needs something is.
        is_main: whether it is a column of the report's main table by default.
        digits: after the decimal point in tables.
        lower_is_better: whether the lowest score is the best.
    """

    about: str
    scorer: Scorer | None = None
    unit: "Unit | None" = None
    needs: tuple[str, ...] = ()
    always: bool = False
    on_request: bool = False
    is_main: bool = False
    digits: int = 2
    lower_is_better: bool = False


def _imported(name: str) -> Scorer:
    """The scorer `module:name`, imported when it is first called."""
    return lambda test: resolve_name(name)(test)


score_bleu = _imported("docmt.evaluation.bleu:score_bleu")
score_meteor = _imported("docmt.evaluation.meteor:score_meteor")
score_apt = _imported("docmt.evaluation.pronouns:score_pronouns")
score_blonde = _imported("docmt.evaluation.blonde:score_blonde")
score_consistency = _imported("docmt.evaluation.consistency:score_consistency")

METRICS: dict[str, Metric] = {
    "s-BLEU": Metric("sacreBLEU, case-sensitive, detokenized", score_bleu, unit="sentences", is_main=True),
    "d-BLEU (instances)": Metric(
        "likewise; what the G-Transformer code computes", score_bleu, unit="instances", is_main=True
    ),
    "d-BLEU (documents)": Metric("likewise", score_bleu, unit="documents", is_main=True),
    "tokenised s-BLEU": Metric(
        "Moses words, no smoothing: the number of Moses' `multi-bleu.perl`", score_bleu, unit="sentences"
    ),
    "tokenised d-BLEU (instances)": Metric("likewise", score_bleu, unit="instances"),
    DOC2DOC: Metric(
        "lower-cased Moses words, no smoothing: the d-BLEU of Doc2Doc (Sun et al. 2022)",
        score_bleu,
        unit="documents",
        on_request=True,
    ),
    "chrF": Metric("chrF2 of sacreBLEU", score_bleu, unit="sentences", is_main=True),
    "length ratio": Metric("words of the hypotheses per word of the reference", score_bleu, always=True),
    "aligned instances": Metric(
        "share of instances with as many sentences as the source; only for unaligned systems", score_bleu, always=True
    ),
    "forced ends": Metric(
        "share of sentences that reached the length limit; only when there are any", score_bleu, always=True
    ),
    "METEOR": Metric("METEOR 1.5, see below", score_meteor, unit="sentences", needs=(JAVA,)),
    "d-METEOR (instances)": Metric("likewise", score_meteor, unit="instances", needs=(JAVA,)),
    "APT": Metric("accuracy of pronouns, see below", score_apt, needs=(ALIGNER, TRAINING)),
    "APT (neighbors)": Metric(
        "likewise; pronouns without a link are searched between their neighbors", score_apt, needs=(ALIGNER, TRAINING)
    ),
    BLONDE[0]: Metric("F1 of he and she by sentence, see below", score_blonde, on_request=True),
    BLONDE[1]: Metric("F1 of five kinds of discourse markers, likewise", score_blonde, on_request=True),
    ADDRESS: Metric("du or Sie as in the document so far, see below", score_consistency, on_request=True),
    TERMS: Metric("terms as in the document so far, see below", score_consistency, needs=(ALIGNER, TRAINING)),
    CXMI: Metric(
        "what context adds to the log probability of a reference sentence; in nats, see below", needs=(MODEL,)
    ),
    COMET: Metric("with the section `evaluation.comet`, see below", unit="sentences", needs=("its own environment",)),
    ACCURACY: Metric("share of contrastive items that are right, see below", digits=1),
    GENERATIVE: Metric("share of items whose translation contains what is expected, see below", digits=1),
}


def selectable_metrics() -> list[str]:
    """What the settings of evaluation may name."""
    return [
        name
        for name, metric in METRICS.items()
        if (metric.scorer is not None or MODEL in metric.needs) and not metric.always
    ]


def default_metrics() -> list[str]:
    """What is computed unless the settings say otherwise: all that needs nothing beyond Python."""
    return [name for name in selectable_metrics() if not (METRICS[name].needs or METRICS[name].on_request)]


def main_metrics() -> list[str]:
    """The default columns of the report's main table."""
    return [name for name, metric in METRICS.items() if metric.is_main]


def check_metric(name: str) -> str:
    """The name itself. Raises ValueError when the settings of evaluation may not name it."""
    known = selectable_metrics()
    if name not in known:
        raise ValueError(f"must name a metric ({nearest(name, known)})")
    return name


def find_metric(name: str) -> Metric:
    """The metric of a name, which may come from a score file of another program."""
    return METRICS.get(name, Metric(""))


def chosen_units(test: TranslatedTest, scorer: Scorer) -> "dict[str, Unit]":
    """The metrics of the settings that a scorer computes over segments, with their segments.

    Those over sentences are left out unless the hypotheses are aligned.
    """
    found = {name: METRICS[name] for name in test.settings.metrics}
    return {
        name: metric.unit
        for name, metric in found.items()
        if metric.scorer is scorer and metric.unit and (test.is_aligned or metric.unit != "sentences")
    }


def needs_training_text(names: Sequence[str]) -> bool:
    """Whether one of these metrics reads the training text."""
    return any(TRAINING in METRICS[name].needs for name in names)


def score_translations(test: TranslatedTest) -> "list[ScoreRow]":
    """All metrics that the settings name, and those that are always reported."""
    named = [METRICS[name].scorer for name in test.settings.metrics]
    scorers = dict.fromkeys(m.scorer for m in METRICS.values() if m.scorer and (m.always or m.scorer in named))
    return [row for scorer in scorers for row in scorer(test)]


def metrics_table() -> str:
    """The metrics as a Markdown table."""
    segments = {
        "sentences": "a sentence",
        "instances": "an instance, its sentences joined by a space",
        "documents": "a document, its instances joined by a space",
        None: "–",
    }
    lines = ["| metric | one segment is | how | needs |", "|---|---|---|---|"]
    for name, metric in METRICS.items():
        lines.append(f"| `{name}` | {segments[metric.unit]} | {metric.about} | {', '.join(metric.needs) or '–'} |")
    return "\n".join(lines) + "\n"
