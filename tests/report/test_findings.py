"""The box above the first table, with one system, ties, several seeds, and without findings."""

from dataclasses import replace

import pytest
from score_rows import accuracy, best_cells, difference, long_table, score

from docmt.report.differences import UNTESTED
from docmt.report.findings import key_findings
from docmt.report.page import build_report
from docmt.report.score_tables import contrastive_table
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
ONE_SEED = "These results are limited, since one seed does not show how much trainings vary."
THREE = [bleu(system, value + seed, seed=seed) for system, value in (("base", 20), ("a", 22)) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    ("rows", "differences", "expected"),
    [
        ([bleu("a", 20.5)], [], ["A has 20.50 s-BLEU.", ONE_SEED]),
        (
            [bleu("base", 20), bleu("a", 20.001), bleu("b", 19)],
            [paired("a", 0.001, 0.8)],
            ["A and Base are level with 20.00 s-BLEU.", ONE_SEED],
        ),
        (
            THREE,
            [paired("a", 2.0, 0.0004)],
            ["A has the best s-BLEU, 24.00 ± 1.00, which differs from Base by +2.00 (p < 0.001)."],
        ),
        (
            [bleu("base", 20), bleu("a", 19.5)],
            [paired("a", -0.5, 0.22)],
            ["Base has the best s-BLEU, 20.00, and A differs from it by −0.50 (p = 0.22, not significant).", ONE_SEED],
        ),
        (
            [bleu("base", 20), bleu("a", 21), bleu("base", 20, test="u"), bleu("a", 20, test="u")],
            [paired("a", 1, 0.004)],
            [
                "A has the best s-BLEU on d/t, 21.00, which differs from Base by +1.00 (p = 0.004), and Base and A are "
                "level with 20.00 s-BLEU on d/u.",
                ONE_SEED,
            ],
        ),
        ([bleu("base", 20), bleu("a", 40) | {"signature": "y"}], [paired("a", 20, 0.001)], []),
        ([bleu("base", 20, metric=INSTANCES), bleu("a", 40, metric=INSTANCES) | {"n": 10}], [], []),
        (
            [bleu("base", 20, metric=INSTANCES), bleu("a", 40, metric=INSTANCES)],
            [],
            ["A has the best d-BLEU (instances), 40.00 (not tested).", ONE_SEED],
        ),
        (
            [bleu("base", 20.014), bleu("a", 20.016)],
            [paired("a", 0.002, 0.0001)],
            ["A has the best s-BLEU, 20.02, which differs from Base by less than 0.01.", ONE_SEED],
        ),
        (
            [bleu("base", 20.016), bleu("a", 20.014)],
            [paired("a", -0.002, 0.0001)],
            ["Base has the best s-BLEU, 20.02, and A differs from it by less than 0.01.", ONE_SEED],
        ),
        (
            [bleu("base", 20), bleu("a", 20.3)],
            [paired("a", 0.3, 0.0499)],
            ["A has the best s-BLEU, 20.30, which differs from Base by +0.30 (p = 0.0499).", ONE_SEED],
        ),
        (
            [bleu("base", 20), bleu("a", 20.3)],
            [paired("a", 0.3, 0.0504)],
            ["A has the best s-BLEU, 20.30, which differs from Base by +0.30 (p = 0.05, not significant).", ONE_SEED],
        ),
        (
            [bleu("base", 0.1), bleu("a", 0.9)],
            [paired("a", 0.8, 0.001)],
            ["No system translates yet: all BLEU scores are below 1.", ONE_SEED],
        ),
    ],
)
def test_who_is_best_against_the_baseline(rows, differences, expected):
    assert findings(rows, differences=differences) == expected


def test_intervals_and_quoted_leaders():
    comparison = replace(paired("a", -2.0, 0.0004), half_width=0.5)
    lead = findings([bleu("base", 24), bleu("a", 22)], differences=[comparison])[0]
    assert lead.endswith("and A differs from it by −2.00 (95 % interval −2.50 to −1.50, p < 0.001).")
    rows = [accuracy(system, 90) for system in ("base", "a", "b")]
    settings = ReportSettings(labels=LABELS | {"a": "A, tuned"})
    summary = summarize(long_table(rows))
    assert "Base, “A, tuned” and B are level in pronoun (90.0 %)" in key_findings(summary, settings, UNTESTED)[0]


def test_no_baseline_means_no_test():
    assert findings(THREE, baseline=None)[0].endswith("(not tested, as report.baseline names no system).")
    assert findings(THREE)[0].endswith("(not tested).")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([accuracy("a", 90)], "A is above chance in pronoun (90.0 %)."),
        ([accuracy("a", 52)], "no system is clearly above chance in pronoun."),
        ([accuracy("a", 60, low=45), accuracy("b", 58)], "the best system is not clearly above chance in pronoun."),
        ([accuracy("a", 60, low=45), accuracy("b", 60), accuracy("base", 55.1)], "B leads in pronoun (60.0 %)."),
        ([accuracy("a", 60, low=45), accuracy("b", 60)], "B is above chance in pronoun (60.0 %)."),
        ([accuracy("a", 90), accuracy("b", 80) | {"signature": "y"}], "scores are not comparable in pronoun."),
        ([accuracy("a", 50) | {"low": None, "high": None}], "no system is clearly above chance in pronoun."),
        ([accuracy("a", 51) | {"low": None, "high": None}], "A is above chance in pronoun (51.0 %)."),
        ([accuracy("a", 90), accuracy("b", 90.04)], "B and A are level in pronoun (90.0 %)."),
        ([accuracy("a", 90), accuracy("b", 90.04), accuracy("base", 80)], "B and A lead in pronoun (90.0 %)."),
        (
            [accuracy(system, value, phenomenon=name) for system in "ab" for name, value in (("x", 90), ("y", 50))]
            + [accuracy("a", 80), accuracy("b", 70)],
            "A and B are level in x (90.0 %), A leads in pronoun (80.0 %), and no system is clearly above chance in y.",
        ),
        (
            [accuracy("a", 90), accuracy("b", 80), accuracy("b", 90, dataset="e")],
            "A leads in pronoun of d (90.0 %), and B is above chance in pronoun of e (90.0 %).",
        ),
    ],
)
def test_who_is_best_above_chance_on_contrastive_sets(rows, expected):
    assert findings(rows)[0] == f"On contrastive sets, where context decides, {expected}"


@pytest.mark.parametrize("values", [(90, None), (60, 60), (60, 58), (60.04, 59.96)])
def test_only_marked_systems_lead(values):
    """A system that the findings call the best is bold in the table."""
    lows = {"a": 55.0, "b": 45.0}
    rows = [accuracy(system, value, low=lows[system]) for system, value in zip("ab", values, strict=True) if value]
    rows.append(accuracy("b", 70, phenomenon="deixis"))
    table = contrastive_table(summarize(long_table(rows)), ReportSettings())
    pronoun = table.header.index("pronoun")
    assert ("lead" in findings(rows)[0]) == any(j == pronoun for _, j in best_cells(table))


def test_limits_are_one_sentence():
    rows = [*THREE, bleu("b", 95, metric="length-limited sentences"), bleu("a", 3, metric="length-limited sentences")]
    *_, limits = findings(rows, updates_note="Trained with more updates.", generated=["d"])
    assert limits == (
        "These results are limited, since most sentences of B reach the length limit, trainings differ in length (see "
        "the note), and the text of d is generated and says nothing about other text."
    )


def test_many_names_become_numbers():
    rows = [accuracy("a", 90, phenomenon=f"x{n}") for n in range(9)]
    assert findings(rows)[0].endswith("x3 (90.0 %) and 5 more.")
    assert key_findings(summarize(long_table([])), ReportSettings(), UNTESTED) == []


def test_the_page_has_three_sentences_at_most():
    limited = bleu("a", 95, metric="length-limited sentences")
    rows = long_table([bleu("base", 20), bleu("a", 22), accuracy("a", 90), limited])
    assert len(build_report(rows, ReportSettings()).findings) == 3


def test_verbs_count_systems_not_words():
    settings = ReportSettings(labels={"a": "Gold and chain"})
    summary = summarize(long_table([accuracy("a", 90), accuracy("b", 80)]))
    assert "Gold and chain leads in pronoun" in key_findings(summary, settings, UNTESTED)[0]


def test_findings_and_table_agree_on_translating():
    """The table also contains other metrics, so a low first metric does not make its scores unusable."""
    rows = [bleu("a", 0.4), bleu("base", 0.2), bleu("a", 1.4, metric="d-BLEU (documents)")]
    assert findings(rows)[0].startswith("A has the best s-BLEU, 0.40")
