"""A table of formatted cells, and its forms: text, Markdown, LaTeX, CSV."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tabulate import tabulate

from docmt.files import atomic_writer
from docmt.report.dataframes import Record, is_missing, records

MISSING = "–"
NOTE_WIDTH = 100
LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
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
    """A table of formatted cells beside its full-precision values, for the CSV file.

    Attributes:
        key: name of its files.
        n_labels: leading columns that hold words; the others hold numbers and are right-aligned.
        n_texts: trailing columns that hold words.
        best: (row, column) of cells to highlight.
        links: the items behind a cell, as the part of the reader's address after #, by (row, column).
        muted: rows that are not ours (guessing, published counts).
        breaks: rows that begin a new group.
        is_long: whether the page folds it.
        note: the user's words under the table, and footnotes.
        widths: characters of each column in plain text, where long cells are wrapped.
    """

    key: str
    title: str
    caption: str
    header: list[str]
    rows: list[list[str]]
    values: pd.DataFrame
    n_labels: int
    n_texts: int = 0
    best: frozenset[tuple[int, int]] = frozenset()
    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    muted: frozenset[int] = frozenset()
    breaks: frozenset[int] = frozenset()
    is_long: bool = False
    note: str = ""
    widths: tuple[int, ...] = ()

    @property
    def kinds(self) -> list[str]:
        """`label`, `number` or `remark` for each column: the CSS classes of its cells."""
        n_numbers = len(self.header) - self.n_labels - self.n_texts
        return ["label"] * self.n_labels + ["number"] * n_numbers + ["remark"] * self.n_texts

    @property
    def lead(self) -> int:
        """The column with the first metric: on a narrow page, the columns after it are a touch away."""
        return self.n_labels + (self.header[self.n_labels : self.n_labels + 1] == ["Seeds"])

    @property
    def alignments(self) -> list[str]:
        """`left` or `right` for each column."""
        return ["right" if kind == "number" else "left" for kind in self.kinds]

    @property
    def pinned(self) -> int:
        """The column that stays in sight when a narrow page scrolls: the systems, or the first one."""
        return self.header.index("System") if "System" in self.header else 0


def format_score(value: float | None, deviation: float | None = None, *, digits: int = 2) -> str:
    """`23.45`, `23.45 ± 0.12` when there is a deviation, or a dash when there is no value."""
    if is_missing(value):
        return MISSING
    text = f"{value:.{digits}f}"
    return text if is_missing(deviation) else f"{text} ± {deviation:.{digits}f}"


def format_count(value: float | None) -> str:
    """A whole number with separators, another number with one digit, or a dash when there is none."""
    if value is None or is_missing(value):
        return MISSING
    number = float(value)
    return f"{int(number):,}" if number.is_integer() else f"{number:,.1f}"


@dataclass(frozen=True)
class Column:
    """Makes the cells of a column of a table from the values called `name`."""

    name: str
    form: Callable[[Any], str]

    def __call__(self, record: Record) -> str:
        return self.form(record[self.name])


CellMaker = Callable[[Record], str]  # makes one cell of a row: a Column, or a function of several values


def word(name: str) -> Column:
    """Cells with words."""
    return Column(name, lambda value: MISSING if is_missing(value) else str(value))


def count(name: str) -> Column:
    """Cells with counts, see `format_count`."""
    return Column(name, format_count)


def score(name: str, *, digits: int = 2) -> Column:
    """Cells with numbers, see `format_score`."""
    return Column(name, partial(format_score, digits=digits))


def build_table(
    values: pd.DataFrame,
    cells: Mapping[str, CellMaker],
    *,
    n_labels: int,
    n_repeated: int | None = None,
    **described: Any,
) -> Table:
    """A table with one row per row of `values`.

    Args:
        values: in full precision.
        cells: makers of the cells of each column, by heading; a Column of values that do not exist is left out.
        n_labels: leading columns that hold words.
        n_repeated: leading columns whose cells are blank where they repeat the row above; None: all labels but one.
        described: the other attributes of the table.
    """
    kept = {heading: cell for heading, cell in cells.items() if not isinstance(cell, Column) or cell.name in values}
    rows = [[cell(record) for cell in kept.values()] for record in records(values)]
    shown, breaks = blank_repeats(rows, n_labels - 1 if n_repeated is None else n_repeated)
    described = {"breaks": breaks, **described}
    return Table(header=list(kept), rows=shown, values=values, n_labels=n_labels, **described)


def blank_repeats(rows: list[list[str]], n_columns: int) -> tuple[list[list[str]], frozenset[int]]:
    """Blank the leading cells that repeat the row above, and find the rows where they change."""
    shown, breaks = [], set()
    for i, row in enumerate(rows):
        same = 0
        # Only up to the first cell that differs: the same split of another dataset is named again.
        while i and same < n_columns and row[same] == rows[i - 1][same]:
            same += 1
        if i and same < n_columns:
            breaks.add(i)
        shown.append([""] * same + row[same:])
    return shown, frozenset(breaks)


def write_table(prefix: Path, table: Table, *, suffixes: Sequence[str] = ("csv", "md", "tex", "txt")) -> None:
    """Write a table as `.csv` (full precision), `.md`, `.tex` and `.txt`, or some of these."""
    words = [text for text in (table.note, table.caption) if text]
    forms = {
        "csv": to_csv(table),
        "md": "\n\n".join([to_markdown(table), *map(escape_markdown, words)]) + "\n",
        "tex": to_latex(table),
        "txt": f"{to_text(table)}\n\n{table.caption}\n",
    }
    for suffix in suffixes:
        with atomic_writer(prefix.with_name(f"{prefix.name}.{suffix}")) as file:
            file.write(forms[suffix])


def to_csv(table: Table) -> str:
    """The values in full precision."""
    return table.values.to_csv(index=False)


def to_text(table: Table) -> str:
    """Plain text for a terminal, with the note but without the caption; wrapped cells in a grid without title."""
    if table.widths:
        return tabulate(table.rows, table.header, "grid", maxcolwidths=list(table.widths), disable_numparse=True)
    # Without `disable_numparse`, tabulate would read cells such as "1e5" or "007" as numbers and rewrite them.
    body = tabulate(table.rows, table.header, "simple", colalign=table.alignments, disable_numparse=True)
    note = f"\n\n{textwrap.fill(table.note, NOTE_WIDTH)}" if table.note else ""
    return f"{table.title}\n\n{body}{note}"


# A line of a form of a table; with cells, a list: the text before, between and after them, then the cells
Line = str | list[str]


@dataclass(frozen=True)
class Form:
    """A table in LaTeX or Markdown, line by line, so that the page can leave out rows and columns."""

    head: Sequence[Line]
    rows: Sequence[Line]
    rule: str  # the line before each row that begins a new group; empty for none
    foot: Sequence[Line]


def latex_form(table: Table) -> Form:
    """A booktabs table with caption and label."""

    def line(cells: Sequence[str], best: Sequence[bool]) -> Line:
        escaped = [escape_latex(cell) for cell in cells]
        bold = [f"\\textbf{{{cell}}}" if stressed else cell for cell, stressed in zip(escaped, best, strict=True)]
        return ["", " & ", " \\\\", *bold]

    caption = " ".join(filter(None, (f"{table.title}.", table.caption, table.note)))
    return Form(
        [
            "% Needs \\usepackage{booktabs}.",
            "\\begin{table}[t]",
            "\\centering",
            ["\\begin{tabular}{", "", "}", *(side[0] for side in table.alignments)],
            "\\toprule",
            line(table.header, [False] * len(table.header)),
            "\\midrule",
        ],
        [line(row, [(i, j) in table.best for j in range(len(row))]) for i, row in enumerate(table.rows)],
        "\\midrule",
        [
            "\\bottomrule",
            "\\end{tabular}",
            f"\\caption{{{escape_latex(caption)}}}",
            f"\\label{{tab:{table.key}}}",
            "\\end{table}",
        ],
    )


def markdown_form(table: Table) -> Form:
    """A pipe table."""
    rows = [
        [
            f"**{escape_markdown(cell)}**" if (i, j) in table.best else escape_markdown(cell)
            for j, cell in enumerate(row)
        ]
        for i, row in enumerate(table.rows)
    ]
    header = [escape_markdown(name) for name in table.header]
    text = tabulate(rows, header, "pipe", colalign=table.alignments, disable_numparse=True)
    # Escaped pipes belong to a cell.
    lines: list[Line] = [["|", "|", "|", *re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.split("\n")]
    return Form(lines[:2], lines[2:], "", [])


def _join_lines(form: Form, breaks: frozenset[int]) -> str:
    rows = [
        line for i, row in enumerate(form.rows) for line in ([form.rule] if form.rule and i in breaks else []) + [row]
    ]
    lines = [*form.head, *rows, *form.foot]
    return "\n".join(line if isinstance(line, str) else line[0] + line[1].join(line[3:]) + line[2] for line in lines)


def to_markdown(table: Table) -> str:
    """A pipe table, without title, caption and note."""
    return _join_lines(markdown_form(table), table.breaks)


def to_latex(table: Table) -> str:
    """A booktabs table with caption and label."""
    return _join_lines(latex_form(table), table.breaks) + "\n"


def one_line(text: str) -> str:
    """Text with blanks for its line ends, which would end a row or a paragraph."""
    return " ".join(text.splitlines())


def escape_latex(text: str) -> str:
    """Text that LaTeX typesets literally, in a line."""
    escaped = "".join(LATEX.get(character, character) for character in one_line(text))
    # At the start of a row, these would belong to the line end before it: `\\*`, `\\[2pt]`.
    return f"{{}}{escaped}" if escaped.lstrip().startswith(("*", "[")) else escaped


def escape_markdown(text: str) -> str:
    """Text that Markdown shows literally, in a line."""
    text = re.sub(r"([\\`*|\[\]<>~$]|&(?=#?\w+;))", r"\\\1", one_line(text))
    # A paragraph that begins so would be a heading or a list: `# `, `- `, `1. `.
    text = re.sub(r"^(\s*(?:\d+(?=[.)]))?)([-+#=.)])(?=[-+#=]*(?:\s|$))", r"\1\\\2", text)
    # An underscore inside a word is plain text in Markdown; at its edge it would start emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
