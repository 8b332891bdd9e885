"""Measure how often significance marks appear for two equal systems, and for a better system.

Two systems translate random sentences with random errors. They make equally many errors, or one makes fewer. The pair
is tested as in the report, over 1 to 100 segments, by all tested metrics and by McNemar's test.
docs/experiments/evaluation.md has the table.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tabulate import tabulate

from docmt.evaluation.hypotheses import Hypothesis
from docmt.evaluation.metrics import ACCURACY, METRICS, EvaluationSettings
from docmt.evaluation.scoring import TranslatedTest
from docmt.evaluation.significance import compare_translations, compare_verdicts
from docmt.report.differences import Difference

SEGMENTS = (1, 2, 3, 5, 8, 12, 25, 100)
TESTED = [name for name, metric in METRICS.items() if metric.counts and metric.unit]  # others count only some words
WORDS = [f"w{i}" for i in range(50)]
SENTENCES = 4
"""Number of sentences per document, in two instances."""
ERRORS, FEWER = 0.3, 0.22
"""Proportions of wrong words for equal systems and for a better system."""
RIGHT, MORE = 0.6, 0.8
"""Probabilities of correct items for equal systems and for a better system."""


def mangle(sentences: Sequence[str], rng: random.Random, share: float, difficulty: Sequence[float]) -> list[str]:
    """Sentences with a random proportion of replaced words. Documents differ in difficulty."""
    return [
        " ".join(
            rng.choice(WORDS) if rng.random() < share * difficulty[number // SENTENCES] else word
            for word in sentence.split()
        )
        for number, sentence in enumerate(sentences)
    ]


def difficulties(n: int, rng: random.Random) -> list[float]:
    """Difficulty per document with n sentences. The mean is 1."""
    return [rng.uniform(0.5, 1.5) for _ in range(0, n, SENTENCES)]


def translated(sentences: Sequence[str], reference: Sequence[str], metrics: list[str]) -> TranslatedTest:
    """A translation of documents with `SENTENCES` sentences. An instance is half a document."""
    length = SENTENCES // 2
    instances = [
        Hypothesis(
            instance=i,
            document=f"d{start // SENTENCES}",
            first_sentence=start,
            n_sentences=len(sentences[start : start + length]),
            aligned=True,
            sentences=list(sentences[start : start + length]),
        )
        for i, start in enumerate(range(0, len(sentences), length))
    ]
    settings = EvaluationSettings(metrics=metrics)
    return TranslatedTest(instances, reference, settings, Path("t"), src_lang="en", tgt_lang="de")


def simulate(
    metric: str, n: int, rng: random.Random, *, better: bool = False, seeds: int = 1, own_difficulty: bool = False
) -> Difference:
    """Test two systems over n segments with a metric, as in the report.

    With `own_difficulty`, the runs have different difficult documents, so that errors come in documents.
    """
    if metric == ACCURACY:
        shares = (MORE if better else RIGHT, RIGHT)
        pair = [[[rng.random() < share for _ in range(n)] for _ in range(seeds)] for share in shares]
        (row,) = compare_verdicts(metric, ["p"] * n, *pair)
    else:
        per_segment = {"sentences": 1, "instances": SENTENCES // 2, "documents": SENTENCES}[str(METRICS[metric].unit)]
        reference = [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(n * per_segment)]
        difficulty = difficulties(len(reference), rng)
        runs = [[], []]
        for system, share in zip(runs, (FEWER if better else ERRORS, ERRORS), strict=True):
            for _ in range(seeds):
                run_difficulty = difficulties(len(reference), rng) if own_difficulty else difficulty
                system.append(translated(mangle(reference, rng, share, run_difficulty), reference, [metric]))
        (row,) = compare_translations(*runs)
    return Difference(dataset="d", test="t", system="a", baseline="b", **vars(row))


def main() -> None:
    """Print proportions of marks for equal systems and for a better system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=500, help="of systems for each number of segments and metric")
    parser.add_argument("--seeds", type=int, default=1, help="of each system")
    parser.add_argument("--own-difficulty", action="store_true", help="errors come in documents")
    parser.add_argument("--segments", type=int, nargs="+", default=SEGMENTS)
    options = parser.parse_args()
    header = ["segments", "metric", "**", "* or **", "bootstrap < 0.01", "randomization or McNemar < 0.01"]
    for better in (False, True):
        rows = []
        for n in options.segments:
            for metric in (*TESTED, ACCURACY):
                rng = random.Random(f"{n} {metric} {better}")
                kind = {"better": better, "seeds": options.seeds, "own_difficulty": options.own_difficulty}
                differences = [simulate(metric, n, rng, **kind) for _ in range(options.pairs)]
                marks = [each.mark for each in differences]
                exact = [each.p if each.randomization_p is None else each.randomization_p for each in differences]
                shares = [
                    np.mean([mark == "**" for mark in marks]),
                    np.mean([mark != "" for mark in marks]),
                    np.mean([each.p < 0.01 for each in differences]),
                    np.mean(np.array(exact) < 0.01),
                ]
                rows.append([n, metric, *(f"{100 * share:.1f}" for share in shares)])
        title = "One system is better" if better else "Equal systems"
        table = tabulate(rows, header, "github", disable_numparse=True)
        print(f"\n{title}; percent of {options.pairs} pairs:\n\n{table}", flush=True)


if __name__ == "__main__":
    main()
