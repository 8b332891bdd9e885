"""LaTeX tables that you can paste into a paper: captions, notes, columns, and LaTeX output."""

import re
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib import get_data_path
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from score_rows import accuracy, difference, long_table, of_seeds, score

from docmt.report.markup import break_heading, escape_latex, text_width, to_latex
from docmt.report.page import build_report
from docmt.report.score_tables import contrastive_table, main_table, paper_table
from docmt.report.settings import CaseTable, PaperTable, ReportSettings
from docmt.report.study_tables import case_table, provenance_table
from docmt.report.summary import summarize
from docmt.report.tables import Table, label, number, prose

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


@pytest.mark.slow
def test_constant_columns_move_to_the_title():
    latex = to_latex(main_table(summarize(long_table(SCORES)), SETTINGS, TESTS))
    assert r"System & s-BLEU \\" in latex
    assert r"Long & \textbf{22.50 $\pm$ 0.71}$^{**}$ \\" in latex
    paper = study_tables()[0]
    assert paper.heading == "Table 1 (size base, 2 seeds)"
    assert [paper.header[:2], paper.rows[1][:2]] == [["System", "Bi-sent"], ["A system with a long name", "✓"]]
    assert r" & Long & 3.2 & " in to_latex(study_tables()[1]), "also in case studies"


def test_wide_tables_take_both_columns():
    long = Table("k", "T", pd.DataFrame({"text": ["word " * 99]}), [prose("text", "Text")])
    assert r"\begin{tabularx}{\linewidth}{>{\raggedright\arraybackslash}X}" in to_latex(long)
    assert r"\begin{table}" in to_latex(long), "sentences are wrapped"


def wide_table(n_columns, heading="xxxxxxxx", n_rows=1):
    frame = pd.DataFrame({"system": ["a"] * n_rows, "value": [1] * n_rows})
    return Table("k", "T", frame, [label("system"), *[number("value", heading, form=str)] * n_columns])


@pytest.mark.parametrize(
    ("n_columns", "heading", "environment", "is_small", "n_parts"),
    [
        (1, "xxxxxxxx", "table", False, 1),
        (3, "xxxxxxxx", "table", False, 1),
        (6, "xxxxxxxx", "table*", False, 1),
        (8, "xxxxxxxx", "table*", True, 1),
        (12, "xxxxxxxx", "table*", True, 2),
        (12, "s", "table*", True, 2),  # more columns than a part can have
        (60, "x" * 30, "longtable", False, 30),
    ],
)
def test_tables_are_as_wide_as_their_page(n_columns, heading, environment, is_small, n_parts):
    latex = to_latex(wide_table(n_columns, heading))
    assert rf"\begin{{{environment}}}" in latex
    assert ("\n\\footnotesize\n" in latex) == is_small
    headers = re.findall(r"\\toprule\n(.*) \\\\", latex)
    assert len(headers) == n_parts
    assert [header.split(" & ")[0] for header in headers] == ["system"] * n_parts
    assert sum(header.count(" & ") for header in headers) == n_columns
    assert latex.count(r"\label{") == latex.count(r"\caption{") == 1


def claim_table(n_rows):
    row = {name: f"rst_parallel_finetuned is {name}" for name in ("Claim", "Measured", "underpowered")}
    return Table("claims", "Claims", pd.DataFrame([row] * n_rows), list(map(label, row)), widths=(30, 30, 12))


def test_wrapped_columns_fill_a_page():
    latex = to_latex(claim_table(2))
    shares = [float(share) for share in re.findall(r"p\{([\d.]+)\\linewidth}", latex)]
    assert len(shares) == 3
    assert 0.9 < sum(shares) < 1
    assert shares[0] == pytest.approx(shares[1], abs=0.02)
    assert r"rst\_\allowbreak{}parallel" in latex, "names can be broken"
    assert r"\begin{longtable}" in latex, "lines of wrapped text can fill more than a page"


def test_published_numbers_stay_beside_scores():
    frame = pd.DataFrame({"system": ["a"], "value": [1]})
    pair = [number("value", "xxxxxxxx", form=str), number("value", "published", form=str)]
    latex = to_latex(Table("k", "T", frame, [label("system"), *pair * 9]))
    headers = re.findall(r"\\toprule\n(.*) \\\\", latex)
    assert len(headers) > 1
    assert all(header.startswith("system & xxxxxxxx & published") for header in headers)


def test_headings_are_broken_at_words():
    assert break_heading("sentences / instance", 20) == ["sentences /", "instance"]
    assert break_heading("a longer heading", 200) == ["a longer heading"]
    latex = to_latex(wide_table(1, "but for white space, %"))
    assert r"\shortstack[r]{but for\\white\\space, \%}" in latex


@pytest.mark.parametrize(
    "text", ["RST-Transformer, parallel, fine-tuned", "d-BLEU (instances)", "49,356", "length-limited sentences", "UAS"]
)
def test_widths_are_those_of_the_font(text):
    path = TextPath((0, 0), text, size=10, prop=FontProperties(fname=f"{get_data_path()}/fonts/ttf/cmr10.ttf"))
    width = path.get_extents().width
    assert 0.97 * width <= text_width(text) <= 1.15 * width


def test_notes_have_few_words():
    rest = " ".join(f"Sentence {n} on the data of Bao et al. (2021), e.g. Table {n}." for n in range(8))
    signs = "Bold: best. * and **: differs from Base (paired). °: at chance."
    table = replace(wide_table(1), note=f"{rest} {signs}")
    latex = to_latex(table)
    (printed,) = re.findall(r"\\raggedright (.*)\\par}", latex)
    assert printed.startswith("Bold: best. * and **: differs from Base (paired). $^{\\circ}$: at chance. Sentence 0")
    assert len(printed.split()) <= 40
    assert printed.count("Table") + latex.count("% Note: Sentence") == 8, "nothing is lost"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ('decides "structure", not ("it")', "decides ``structure'', not (``it'')"),
        ("“er” or „sie“", "``er'' or „sie``"),
        ('5" disk', "5'' disk"),
        ('"', "''"),
    ],
)
def test_quotes_are_typographic(text, latex):
    assert escape_latex(text) == latex


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="LaTeX is not installed")
def test_latex_compiles_the_tables(tmp_path):
    rows = long_table([*SCORES, score(HOSTILE, 5), accuracy(HOSTILE, 50)])
    tables = [*study_tables(), main_table(summarize(rows), SETTINGS), contrastive_table(summarize(rows), SETTINGS)]
    tables += [wide_table(n, heading) for n in (1, 3, 5, 8, 30) for heading in ("value", "instances left out", "EDUs")]
    preamble = r"\documentclass[twocolumn,a4paper]{article}\usepackage{booktabs,xcolor,tabularx,array,longtable}"
    bodies = [to_latex(table).replace(r"\label{", rf"\label{{{i}") for i, table in enumerate(tables)]
    runs = provenance_table(long_table([score("a", 1, seed=seed, commit="c" * 12) for seed in range(150)]))
    long = [to_latex(runs), to_latex(claim_table(60)).replace(r"\label{", r"\label{long")]
    text = "\n".join([preamble, r"\begin{document}", *bodies, r"\onecolumn", *long, r"\end{document}"])
    (tmp_path / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert b"Float too large" not in done.stdout, "long tables are broken across pages"
    assert b"Overfull" not in done.stdout, "no table is wider than a column or a page"
