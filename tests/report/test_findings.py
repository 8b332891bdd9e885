"""The box above the first table: what it says of one system, of ties, of seeds, and with nothing to say."""

from dataclasses import replace

import pytest
from score_rows import accuracy, difference, long_table, score

from docmt.report.differences import UNTESTED
from docmt.report.findings import key_findings
from docmt.report.page import build_report
from docmt.report.settings import ReportSettings
from docmt.report.summary import summarize

LABELS = {"base": "Base", "a": "A", "b": "B"}


def bleu(system, value, **keys):
    return score(system, value, n=1200, **keys)


def paired(system, points, p):
    return difference(system, p, difference=points, randomization_p=p, n=1200)


def findings(rows, *, differences=(), baseline="base", **facts):
    summary = summarize(long_table(rows))
    settings = ReportSettings(baseline=baseline, labels=LABELS)
    return key_findings(summary, settings, {test.key: test for test in differences}, **facts)


INSTANCES = "d-BLEU (instances)"
ONE_SEED = "Mind that one seed does not show how much trainings vary."
PRONOUN = "pronoun (which noun “it” means, as in er, sie or es"
THREE = [bleu(system, value + seed, seed=seed) for system, value in (("base", 20), ("a", 22)) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    ("rows", "differences", "expected"),
    [
        (
            [bleu("a", 20.5)],
            [],
            ["A is scored on d/t (1,200 sentences), with 1 seed.", "A has 20.50 s-BLEU.", ONE_SEED],
        ),
        (
            [bleu("base", 20), bleu("a", 20.001), bleu("b", 19)],
            [paired("a", 0.001, 0.8)],
            [
                "3 systems are compared on d/t (1,200 sentences), with 1 seed each.",
                "A and Base are level with 20.00 s-BLEU.",
                ONE_SEED,
            ],
        ),
        (
            THREE,
            [paired("a", 2.0, 0.0004)],
            [
                "2 systems are compared on d/t (1,200 sentences), with 3 seeds each.",
                "A has the best s-BLEU, 24.00 ± 1.00 (it differs from Base by +2.00, p < 0.001).",
            ],
        ),
        (
            [bleu("base", 20), bleu("a", 19.5)],
            [paired("a", -0.5, 0.22)],
            [
                "2 systems are compared on d/t (1,200 sentences), with 1 seed each.",
                "Base has the best s-BLEU, 20.00 (A differs from Base by −0.50, p = 0.22: not significant).",
                ONE_SEED,
            ],
        ),
        (
            [bleu("base", 20), bleu("a", 21), bleu("base", 20, test="u"), bleu("a", 20, test="u")],
            [paired("a", 1, 0.004)],
            [
                "2 systems are compared on d/t (1,200 sentences) and d/u (1,200 sentences), with 1 seed each.",
                "A has the best s-BLEU on d/t, 21.00 (it differs from Base by +1.00, p = 0.004) and Base and A are "
                "level with 20.00 s-BLEU on d/u.",
                ONE_SEED,
            ],
        ),
        (
            [bleu("base", 20), bleu("a", 40) | {"signature": "y"}],
            [paired("a", 20, 0.001)],
            ["2 systems are compared on d/t (1,200 sentences), with 1 seed each.", ONE_SEED],
        ),
        (
            [bleu("base", 20, metric=INSTANCES), bleu("a", 40, metric=INSTANCES) | {"n": 10}],
            [],
            ["2 systems are compared on d/t, with 1 seed each.", ONE_SEED],
        ),
        (
            [bleu("base", 20, metric=INSTANCES), bleu("a", 40, metric=INSTANCES)],
            [],
            [
                "2 systems are compared on d/t, with 1 seed each.",
                "A has the best d-BLEU (instances), 40.00 (not tested).",
                ONE_SEED,
            ],
        ),
    ],
)
def test_what_was_compared_and_who_is_best(rows, differences, expected):
    assert findings(rows, differences=differences) == expected


def test_the_interval_is_beside_the_difference_and_leaders_with_commas_are_quoted():
    found = replace(paired("a", -2.0, 0.0004), half_width=0.5)
    lead = findings([bleu("base", 24), bleu("a", 22)], differences=[found])[1]
    assert lead.endswith("(A differs from Base by −2.00, 95 % interval −2.50 to −1.50, p < 0.001).")
    rows = [accuracy(system, 90) for system in ("base", "a", "b")]
    settings = ReportSettings(labels=LABELS | {"a": "A, tuned"})
    summary = summarize(long_table(rows))
    assert "best Base, “A, tuned” and B, 90.0 %" in key_findings(summary, settings, UNTESTED)[1]


def test_without_a_baseline_nothing_is_tested_and_said_so():
    assert "not tested, as report.baseline names no system" in findings(THREE, baseline=None)[1]
    assert findings(THREE)[1].endswith("(not tested).")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([accuracy("a", 90)], f"{PRONOUN}; 90.0 %)."),
        ([accuracy("a", 52)], f"{PRONOUN}; 52.0 %, not above guessing)."),
        ([accuracy("a", 52), accuracy("b", 51)], f"{PRONOUN}; nobody above guessing)."),
        ([accuracy("a", 60, low=45), accuracy("b", 58)], f"{PRONOUN}; best A, 60.0 %, not above guessing)."),
        ([accuracy("a", 90), accuracy("b", 80) | {"signature": "y"}], f"{PRONOUN}; scores are not comparable)."),
        ([accuracy("a", 50) | {"low": None, "high": None}], f"{PRONOUN}; 50.0 %, not above guessing)."),
        ([accuracy("a", 51) | {"low": None, "high": None}], f"{PRONOUN}; 51.0 %)."),
        ([accuracy("a", 90), accuracy("b", 90.04)], f"{PRONOUN}; best B and A, 90.0 %)."),
        (
            [accuracy("a", 90, phenomenon="x"), accuracy("b", 80, phenomenon="x"), accuracy("a", 70)],
            f"x (best A, 90.0 %);\nand {PRONOUN}; 70.0 %).",
        ),
    ],
)
def test_what_contrastive_sets_test_and_who_is_best_above_guessing(rows, expected):
    sentence = next(sentence for sentence in findings(rows) if sentence.startswith("Contrastive"))
    assert sentence == f"Contrastive sets test a choice that context decides:\n{expected}"


def test_caveats_are_one_sentence():
    rows = [*THREE, bleu("b", 95, metric="forced ends"), bleu("a", 3, metric="forced ends")]
    *_, caveats = findings(rows, updates_note="Trained with more updates.", generated=["d"])
    assert caveats == (
        "Mind that most sentences of B reach the length limit; trainings differ in length (see the note); and the text "
        "of d is generated and says nothing about other text."
    )


def test_many_names_are_numbers_and_no_scores_say_nothing():
    rows = [accuracy("a", 90, phenomenon=f"x{n}") for n in range(9)]
    assert findings(rows)[1].endswith("x3 (90.0 %);\nand 5 more.")
    assert key_findings(summarize(long_table([])), ReportSettings(), UNTESTED) == []


def test_the_page_has_at_most_five_sentences():
    rows = long_table([*THREE, accuracy("a", 90)])
    assert 3 <= len(build_report(rows, ReportSettings()).findings) <= 5
