"""LaTeX tables that you can paste into a paper: captions, notes, columns, and LaTeX output."""

import shutil
import subprocess

import pandas as pd
import pytest
from score_rows import accuracy, difference, long_table, of_seeds, score

from docmt.report.page import build_report
from docmt.report.score_tables import contrastive_table, main_table, paper_table
from docmt.report.settings import CaseTable, PaperTable, ReportSettings
from docmt.report.study_tables import case_table, provenance_table
from docmt.report.summary import summarize
from docmt.report.tables import Table, label, number, prose, to_latex

HOSTILE = r"50 % of $x_1$ & {y} ~ ^ \ # <b> | “q” – × ✓ ✗ † ° − …"
SETTINGS = ReportSettings(
    baseline="base",
    labels={"a": "A system with a long name"},
    short_labels={"a": "Long"},
    tables={"t": PaperTable(title="Table 1", systems=["base", "a"], note=HOSTILE, columns=["Bi-sent", "Size"])},
    cases={"c": CaseTable(title="Case", system="a", baseline="base", test="d/t")},
)
SCORES = [
    *of_seeds("base", 20, 21),
    *of_seeds("a", 22, 23),
    *(accuracy(system, value, seed=seed) for system, value in (("base", 50), ("a", 80)) for seed in (1, 2)),
]
TESTS = {test.key: test for test in [difference("a", 0.001)]}


def study_tables():
    """Tables of all kinds: all tables in a report of scores, one in the layout of a paper, and a case study."""
    cases = pd.DataFrame(
        {"case": ["x", "x"], "part": ["source", SETTINGS.label("a")], "chrF": [None, 3.2], "text": [HOSTILE * 3, ""]}
    )
    facts = {"base": {"Bi-sent": "✗", "Size": "base"}, "a": {"Bi-sent": "✓", "Size": "base"}}
    paper = paper_table(long_table(SCORES), "t", SETTINGS, facts, TESTS)
    return [paper, case_table("c", cases, SETTINGS), *build_report(long_table(SCORES), SETTINGS).tables]


def test_captions_are_short():
    tables = {table.key: table for table in study_tables()}
    assert {"t", "c", "results", "contrastive", "signatures", "provenance"} <= set(tables)
    for table in tables.values():
        assert len(table.caption.split()) <= 25, table.caption
        assert table.caption.count(". ") == 0, table.caption
    latex = to_latex(main_table(summarize(long_table(SCORES)), SETTINGS, TESTS))
    assert (
        latex.index(r"\end{tabular}")
        < latex.index("{\\footnotesize\\raggedright Bold: best.")
        < latex.index(r"\caption{")
    )
    title = "Translation scores (dataset d, test t, 2 seeds)"
    assert rf"\caption{{{title}. In percent, mean $\pm$ sample deviation over seeds.}}" in latex


def test_constant_columns_move_to_the_title():
    latex = to_latex(main_table(summarize(long_table(SCORES)), SETTINGS, TESTS))
    assert r"System & s-BLEU \\" in latex
    assert r"Long & \textbf{22.50 $\pm$ 0.71}$^{**}$ \\" in latex
    paper = study_tables()[0]
    assert paper.heading == "Table 1 (size base, 2 seeds)"
    assert [paper.header[:2], paper.rows[1][:2]] == [["System", "Bi-sent"], ["A system with a long name", "✓"]]
    assert r" & Long & 3.2 & " in to_latex(study_tables()[1]), "also in case studies"


def test_wide_tables_take_both_columns():
    def table(n_columns):
        frame = pd.DataFrame({"system": ["a"], "value": [1]})
        return to_latex(Table("k", "T", frame, [label("system"), *[number("value", "x" * 8, form=str)] * n_columns]))

    assert [r"\begin{table}" in table(n) for n in (1, 4, 5, 10)] == [True, True, False, False]
    assert [r"\footnotesize" in table(n) for n in (1, 4, 5, 10)] == [False, False, False, True]
    long = Table("k", "T", pd.DataFrame({"text": ["word " * 99]}), [prose("text", "Text")])
    assert r"\begin{tabularx}{\linewidth}{X}" in to_latex(long)
    assert r"\begin{table}" in to_latex(long), "sentences are wrapped"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_latex_compiles_the_tables(tmp_path):
    rows = long_table([*SCORES, score(HOSTILE, 5), accuracy(HOSTILE, 50)])
    tables = [*study_tables(), main_table(summarize(rows), SETTINGS), contrastive_table(summarize(rows), SETTINGS)]
    preamble = r"\documentclass[twocolumn]{article}\usepackage{booktabs,xcolor,tabularx,array,longtable}"
    bodies = [to_latex(table).replace(r"\label{", rf"\label{{{i}") for i, table in enumerate(tables)]
    runs = provenance_table(long_table([score("a", 1, seed=seed, commit="c" * 12) for seed in range(150)]))
    text = "\n".join([preamble, r"\begin{document}", *bodies, r"\onecolumn", to_latex(runs), r"\end{document}"])
    (tmp_path / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert b"Float too large" not in done.stdout, "long tables are broken across pages"
