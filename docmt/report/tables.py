"""A formatted table, and its forms: text, Markdown, LaTeX."""

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from tabulate import tabulate

from docmt.report.frames import Record, is_missing, records

MISSING = "–"
NOTE_WIDTH = 100
LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "\N{NO-BREAK SPACE}": "~",
}


@dataclass(frozen=True)
class Table:
    """A table of formatted cells beside its full-precision values.

    Attributes:
        key: name of its files.
        title: heading.
        caption: what readers need to know.
        header: headings of the columns.
        rows: cells, as many as columns in each row.
        values: the same facts in full precision, for the CSV file.
        n_labels: leading columns that hold words; the others hold numbers and are right-aligned.
        n_remarks: trailing columns that hold words.
        best: (row, column) of cells to highlight.
        muted: rows that are not ours (guessing, published counts).
        breaks: rows that begin a new group.
        is_long: whether the page folds it.
        note: words under it: the user's, and what the numbers do not mean.
    """

    key: str
    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    values: pd.DataFrame
    n_labels: int
    n_remarks: int = 0
    best: frozenset[tuple[int, int]] = frozenset()
    muted: frozenset[int] = frozenset()
    breaks: frozenset[int] = frozenset()
    is_long: bool = False
    note: str = ""

    @property
    def alignments(self) -> list[str]:
        """`left` or `right` for each column."""
        return ["right" if kind == "number" else "left" for kind in self.kinds]

    @property
    def kinds(self) -> list[str]:
        """`label`, `number` or `remark` for each column."""
        n_numbers = len(self.header) - self.n_labels - self.n_remarks
        return ["label"] * self.n_labels + ["number"] * n_numbers + ["remark"] * self.n_remarks

    @property
    def pinned(self) -> int:
        """The column that stays in sight when a narrow page scrolls: that of the systems, or the first."""
        return self.header.index("System") if "System" in self.header else 0


def format_score(value: float | None, deviation: float | None = None, *, digits: int = 2) -> str:
    """`23.45`, `23.45 ± 0.12` when there is a deviation, or a dash when there is no value."""
    if value is None or is_missing(value):
        return MISSING
    text = f"{value:.{digits}f}"
    return text if deviation is None or is_missing(deviation) else f"{text} ± {deviation:.{digits}f}"


def format_count(value: float | None) -> str:
    """A whole number with separators, another number with one digit, or a dash when there is none."""
    if value is None or is_missing(value):
        return MISSING
    number = float(value)
    return f"{int(number):,}" if number.is_integer() else f"{number:,.1f}"


CellMaker = Callable[[Record], str]
"""From a row to one of its cells."""


def word(name: str) -> CellMaker:
    """Cells with the words of a column."""
    return lambda record: MISSING if is_missing(record[name]) else str(record[name])


def count(name: str) -> CellMaker:
    """Cells with the counts of a column, as of `format_count`."""
    return lambda record: format_count(record[name])


def score(name: str, *, digits: int = 2) -> CellMaker:
    """Cells with the numbers of a column, as of `format_score`."""
    return lambda record: format_score(record[name], digits=digits)


def build_table(
    values: pd.DataFrame, cells: Mapping[str, CellMaker], *, n_repeated: int = 0, **described: Any
) -> Table:
    """A table with one row per row of `values`.

    Args:
        values: in full precision.
        cells: how the cells of each column are made, by heading.
        n_repeated: leading columns whose cells are blank where they repeat the row above.
        described: the other attributes of the table.
    """
    rows = [[cell(record) for cell in cells.values()] for record in records(values)]
    shown, breaks = blank_repeats(rows, n_repeated)
    return Table(header=list(cells), rows=shown, values=values, **{"breaks": breaks, **described})


def blank_repeats(rows: list[list[str]], n_columns: int) -> tuple[list[list[str]], frozenset[int]]:
    """Blank the leading cells that repeat those of the row above, and find the rows where they change."""
    shown, breaks = [], set()
    for i, row in enumerate(rows):
        same = 0
        while i and same < n_columns and row[same] == rows[i - 1][same]:
            same += 1
        if i and same < n_columns:
            breaks.add(i)
        shown.append([""] * same + row[same:])
    return shown, frozenset(breaks)


def to_csv(table: Table) -> str:
    """The values in full precision."""
    return table.values.to_csv(index=False)


def to_text(table: Table) -> str:
    """Plain text for a terminal, with the note but without the caption."""
    body = tabulate(table.rows, table.header, "simple", colalign=table.alignments, disable_numparse=True)
    note = f"\n\n{textwrap.fill(table.note, NOTE_WIDTH)}" if table.note else ""
    return f"{table.title}\n\n{body}{note}"


def to_markdown(table: Table) -> str:
    """A pipe table; cells are escaped."""
    rows = [
        [
            f"**{escape_markdown(cell)}**" if (i, j) in table.best else escape_markdown(cell)
            for j, cell in enumerate(row)
        ]
        for i, row in enumerate(table.rows)
    ]
    header = [escape_markdown(name) for name in table.header]
    return tabulate(rows, header, "pipe", colalign=table.alignments, disable_numparse=True)


def to_latex(table: Table) -> str:
    """A booktabs table with caption and label; cells are escaped."""
    lines = [
        "% Needs \\usepackage{booktabs}.",
        "\\begin{table}[t]",
        "\\centering",
        f"\\begin{{tabular}}{{{''.join(side[0] for side in table.alignments)}}}",
        "\\toprule",
        " & ".join(escape_latex(name) for name in table.header) + " \\\\",
        "\\midrule",
    ]
    for i, row in enumerate(table.rows):
        if i in table.breaks:
            lines.append("\\midrule")
        cells = [
            f"\\textbf{{{escape_latex(c)}}}" if (i, j) in table.best else escape_latex(c) for j, c in enumerate(row)
        ]
        lines.append(" & ".join(cells) + " \\\\")
    caption = " ".join(filter(None, (f"{table.title}.", table.caption, table.note)))
    lines += [
        "\\bottomrule",
        "\\end{tabular}",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{table.key}}}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX typesets literally."""
    return "".join(LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally."""
    text = re.sub(r"([\\`*|\[\]<>])", r"\\\1", text)
    # An underscore inside a word is plain text in Markdown; at its edge it would start emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
