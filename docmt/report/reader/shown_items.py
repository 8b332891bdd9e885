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
    rows = []
    for item in read_suite(suite):
        runs = {}
        for run, of_run in scores.items():
            right = is_right(item, of_run, ties=ties)
            rounded = []
            for score in of_run[item.id]:
                if isfinite(score):
                    rounded.append(round(score, 3))
                else:
                    rounded.append(None)
            runs[run] = {"right": right, "scores": rounded}
        rows.append(_facts(item) | {"candidates": item.candidates, "correct": item.correct, "runs": runs})
    return rows


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
        reference = None
        if item.reference:
            reference = _in_parts(item, item.reference, lang)
        runs = {}
        for run, of_run in payloads.items():
            parts = _in_parts(item, of_run[number], lang)
            runs[run] = {"right": len(parts) > 1, "payload": parts}
        facts = {"expected": item.expected, "sentence": item.sentence, "reference": reference, "runs": runs}
        rows.append(_facts(item) | facts)
    return rows


def _in_parts(item: GenerativeItem, text: str, lang: str) -> list[str]:
    bounds = find_expected(item, text, lang=lang)
    if bounds is None:
        return [text]
    start, end = bounds
    return [text[:start], text[start:end], text[end:]]


def _facts(item: ContrastiveItem | GenerativeItem) -> dict[str, Any]:
    facts = {key: getattr(item, key) for key in ("id", "phenomenon", "distance", "kind", "src")}
    facts["range"] = None
    if item.distance is not None:
        facts["range"] = range_of(item.distance)
    return facts
