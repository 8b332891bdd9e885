"""Paired significance tests between systems, by sacreBLEU."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sacrebleu.significance import PairedTest, Result

from docmt.errors import UserError
from docmt.evaluation.bleu import build_metric
from docmt.evaluation.hypotheses import Hypothesis, Unit, join_segments
from docmt.evaluation.settings import EvaluationSettings

UNITS: list[Unit] = ["sentences", "instances", "documents"]
TESTS = {"bootstrap": "bs", "randomization": "ar"}


@dataclass(frozen=True)
class Comparison:
    """One system against the first one.

    Attributes:
        system: its name.
        metric: BLEU or chrF, with the segments they are over.
        value: the score in percent.
        difference: minus the score of the first system; None for the first system itself.
        p_value: of that difference; None for the first system itself.
        signature: how it was made.
    """

    system: str
    metric: str
    value: float
    difference: float | None
    p_value: float | None
    signature: str


def common_unit(systems: Mapping[str, Sequence[Hypothesis]]) -> Unit:
    """The shortest segments that all systems share: sentences, else equal instances, else documents."""
    if all(hypothesis.aligned for hypotheses in systems.values() for hypothesis in hypotheses):
        return "sentences"
    cuts = {tuple(hypothesis.n_sentences for hypothesis in hypotheses) for hypotheses in systems.values()}
    return "instances" if len(cuts) == 1 else "documents"


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

    The test is paired bootstrap resampling with `n_samples` resamples, or paired approximate randomization with as many
    trials. Raises UserError for fewer than two systems, and for segments that they do not share.
    """
    if len(systems) < 2:
        raise UserError("a comparison needs the hypotheses of at least two systems with different names")
    shortest = common_unit(systems)
    unit = unit or shortest
    if UNITS.index(unit) < UNITS.index(shortest):
        raise UserError(f"--unit {unit}: the systems share no segments shorter than {shortest}")
    texts = {name: [hypothesis.sentences for hypothesis in found] for name, found in systems.items()}
    all_references = [reference, *more_references]
    joined = {name: join_segments(found, texts[name], all_references, unit) for name, found in systems.items()}
    references = next(iter(joined.values()))[1]
    metrics = {
        "BLEU": build_metric("s-BLEU", settings, tgt_lang),
        "chrF": build_metric("chrF", settings, tgt_lang),
    }
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    paired = PairedTest(
        [(name, segments[0]) for name, segments in joined.items()],
        metrics,
        references,
        test_type=TESTS[test],
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
