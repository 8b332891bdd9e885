"""Numbers as text, compared with decimal arithmetic and a standard HTML parser."""

import random
from decimal import ROUND_HALF_EVEN, Decimal
from html.parser import HTMLParser

import pandas as pd
import pytest
from score_rows import accuracy, long_table

from docmt.report.markup import to_latex, to_markdown
from docmt.report.numbers import MISSING, format_count, format_number, format_p, format_score
from docmt.report.page import build_report, write_report
from docmt.report.settings import ReportSettings
from docmt.report.tables import Table, score, to_text

EDGES = [0.0, -0.0, -0.001, -0.004999, -0.005, 0.005, -35.2, 99.995, -99.995, 1e-300, -1e-300, 12345.678, -1e15]


def decimal_text(value, digits):
    """A number rounded by decimal arithmetic, with a minus sign and without negative zero."""
    exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
    return f"{abs(exact) if exact == 0 else exact:f}".replace("-", "−")


@pytest.mark.parametrize("digits", [0, 1, 2, 4])
def test_numbers_equal_decimal_arithmetic(digits):
    chance = random.Random(digits)
    for value in [*EDGES, *(chance.uniform(-1, 1) * 10 ** chance.randint(-4, 6) for _ in range(2000))]:
        text = format_number(value, digits=digits)
        assert text == decimal_text(value, digits)
        assert format_number(value, digits=digits, sign="+") == (text if text[0] == "−" else f"+{text}")
        assert format_score(value, abs(value), digits=digits) == f"{text} ± {decimal_text(abs(value), digits)}"
        assert format_number(value, digits=digits, separator=",").replace(",", "") == text


def test_counts_and_missing_values():
    assert [format_count(value) for value in (-0.0, -0.04, -1234.0, 1234.25)] == ["0", "0.0", "−1,234", "1,234.2"]
    assert [format_score(value) for value in (None, float("nan"), pd.NA)] == [MISSING] * 3


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_p_shows_its_side_of_the_level(level):
    for step in range(-40, 41):
        p = level + step * 1e-5
        assert (float(format_p(p, levels=(0.01, 0.05)).split()[-1]) < level) == (p < level)
    assert format_p(0.0009, levels=(0.01, 0.05)) == "p < 0.001"
    assert format_p(0.2249, levels=(0.01, 0.05)) == "p = 0.22"


def test_negative_numbers_in_all_forms_of_a_table():
    table = Table("further", "Further", pd.DataFrame({"log": [-35.2, -0.001]}), [score("log")])
    assert "$-$35.20" in to_latex(table)
    for form in (to_latex, to_markdown, to_text):
        assert "0.00" in form(table)
        assert not {"-0.00", "−0.00", "$-$0.00", "-35.20"} & set(form(table).split())


class Cells(HTMLParser):
    """Attributes of all table cells on a page."""

    def __init__(self):
        super().__init__()
        self.cells = []

    def handle_starttag(self, tag, attrs):
        if tag == "td":
            self.cells.append(dict(attrs))


def test_cells_at_chance_have_a_tooltip(tmp_path):
    rows = [accuracy("a", 52), accuracy('b" onclick="x', 90), accuracy("c", 20)]
    write_report(tmp_path, build_report(long_table(rows), ReportSettings()))
    parser = Cells()
    parser.feed((tmp_path / "report.html").read_text(encoding="utf-8"))
    at_chance = [cell for cell in parser.cells if cell.get("title") == "at chance"]
    assert [cell["class"].split() for cell in at_chance] == [["number", "chance"]]
    assert {name for cell in parser.cells for name in cell} == {"class", "title"}
    assert not any('"' in cell["class"] or ";" in cell["class"] for cell in parser.cells)
