"""A table ready to show, and its forms: text, Markdown, LaTeX."""

import re
from dataclasses import dataclass

import pandas as pd
from tabulate import tabulate

MISSING = "–"
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
        caption: what the reader must know.
        header: names of the columns.
        rows: cells, as many as columns in each row.
        values: the same facts in full precision, for the CSV file.
        n_labels: leading columns that hold words; the others are numbers and set flush right.
        n_remarks: trailing columns that hold words.
        best: (row, column) of cells to stress.
        muted: rows that are not ours (guessing, published counts).
        breaks: rows before which a group ends.
        is_long: whether the page shows it folded.
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

    @property
    def alignments(self) -> list[str]:
        """`left` or `right` for each column."""
        return ["right" if kind == "number" else "left" for kind in self.kinds]

    @property
    def kinds(self) -> list[str]:
        """`label`, `number` or `remark` for each column."""
        n_numbers = len(self.header) - self.n_labels - self.n_remarks
        return ["label"] * self.n_labels + ["number"] * n_numbers + ["remark"] * self.n_remarks


def format_score(value: float, deviation: float | None = None, *, digits: int = 2) -> str:
    """`23.45`, `23.45 ± 0.12` when there is a deviation, or a dash when there is no value."""
    if pd.isna(value):
        return MISSING
    text = f"{value:.{digits}f}"
    return text if deviation is None or pd.isna(deviation) else f"{text} ± {deviation:.{digits}f}"


def format_count(value: object) -> str:
    """A whole number with separators, another number with one digit, or a dash when there is none."""
    if pd.isna(value):
        return MISSING
    number = float(value)
    return f"{int(number):,}" if number.is_integer() else f"{number:,.1f}"


def blank_repeats(rows: list[list[str]], n_columns: int) -> tuple[list[list[str]], frozenset[int]]:
    """Blank the leading cells that repeat those of the row above, and say where the first columns change."""
    shown, breaks = [], set()
    for i, row in enumerate(rows):
        same = 0
        while i and same < n_columns and row[same] == rows[i - 1][same]:
            same += 1
        if i and same < n_columns:
            breaks.add(i)
        shown.append([""] * same + row[same:])
    return shown, frozenset(breaks)


def to_text(table: Table) -> str:
    """Plain text for a terminal."""
    body = tabulate(table.rows, table.header, "simple", colalign=table.alignments, disable_numparse=True)
    return f"{table.title}\n\n{body}"


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
    caption = f"{table.title}. {table.caption}" if table.caption else f"{table.title}."
    lines += [
        "\\bottomrule",
        "\\end{tabular}",
        f"\\caption{{{escape_latex(caption)}}}",
        f"\\label{{tab:{table.key}}}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(LATEX.get(character, character) for character in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it stands."""
    text = re.sub(r"([\\`*|\[\]<>])", r"\\\1", text)
    # An underscore inside a word is plain text in Markdown; at its edge it would begin emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
