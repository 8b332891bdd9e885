"""Contrastive and generative test items in the reader."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from docmt.corpora.suite_items import ContrastiveItem, GenerativeItem, read_generative_suite, read_suite
from docmt.evaluation.contrastive_accuracy import is_right, range_of, read_log_probabilities
from docmt.evaluation.generative_accuracy import find_expected, read_payloads
from docmt.evaluation.metrics import Ties


def read_items(suite: Path, probabilities: Mapping[int, Path], *, ties: Ties = "wrong") -> list[dict[str, Any]]:
    """Return a suite's items with log probabilities from `docmt decode score-candidates`, by run number.

    Returns:
        In suite order, objects with the keys `id`, `phenomenon`, `distance`, `range`, `kind`, `src`, `candidates`
        (lists of sentences), `correct` and `runs`. `runs` contains by run number `right` (True or False) and `scores`
        (candidate log probabilities in nats, null if infinite).
    """
    scores = {run: read_log_probabilities(path)[0] for run, path in probabilities.items()}
    return [
        _facts(item)
        | {
            "candidates": item.candidates,
            "correct": item.correct,
            "runs": {
                run: {
                    "right": is_right(item, of_run, ties=ties),
                    "scores": [round(score, 3) if isfinite(score) else None for score in of_run[item.id]],
                }
                for run, of_run in scores.items()
            },
        }
        for item in read_suite(suite)
    ]


def read_generative_items(suite: Path, translations: Mapping[int, Path], *, lang: str) -> list[dict[str, Any]]:
    """Return a generative suite's items with translations from `docmt decode translate-suite`, by run number.

    Returns:
        In suite order, objects with the keys `id`, `phenomenon`, `distance`, `range`, `kind`, `src`, `expected`,
        `sentence` (payload index), `reference` (payload reference or null) and `runs`. `runs` contains by run number
        `right` (True or False) and `payload`. A text has three parts (before, match, after), or one without match.
    """
    items = read_generative_suite(suite)
    payloads = {run: read_payloads(path, items) for run, path in translations.items()}
    rows = []
    for number, item in enumerate(items):
        parts = {run: _in_parts(item, of_run[number], lang) for run, of_run in payloads.items()}
        facts = _facts(item) | {"expected": item.expected, "sentence": item.sentence}
        facts["reference"] = _in_parts(item, item.reference, lang) if item.reference else None
        facts["runs"] = {run: {"right": len(text) > 1, "payload": text} for run, text in parts.items()}
        rows.append(facts)
    return rows


def _in_parts(item: GenerativeItem, text: str, lang: str) -> list[str]:
    bounds = find_expected(item, text, lang=lang)
    return [text[: bounds[0]], text[slice(*bounds)], text[bounds[1] :]] if bounds else [text]


def _facts(item: ContrastiveItem | GenerativeItem) -> dict[str, Any]:
    facts = {key: getattr(item, key) for key in ("id", "phenomenon", "distance", "kind", "src")}
    return facts | {"range": None if item.distance is None else range_of(item.distance)}
