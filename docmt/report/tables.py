"""Tables, made from a frame and a list of columns, in CSV, plain text, Markdown and LaTeX."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from tabulate import tabulate

from docmt.files import atomic_writer
from docmt.report.dataframes import Record, is_missing, records
from docmt.report.numbers import MISSING, format_count, format_score

NOTE_WIDTH = 100
# Maximum characters for a LaTeX table in one page column, and for the normal font size
COLUMN_WIDTH, PAGE_WIDTH = 50, 100
LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar\allowbreak{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "×": r"$\times$",
    "↓": r"$\downarrow$",
    "✓": r"$\surd$",
    "✗": r"$\times$",
    "\N{NO-BREAK SPACE}": "~",
}


LATEX_COLUMNS = {"number": "r", "text": "X"}  # by kind (default: `l`)
NARROW = r">{\raggedright}p{.17\linewidth}"  # labels next to sentences, which wrap
MAX_LATEX_ROWS = 50  # longer tables are broken across pages
# Signs after a score, in LaTeX: significance, not comparable, at chance
MARKS = {"*": "*", "**": "**", "†": r"\dagger", "°": r"\circ"}


@dataclass(frozen=True)
class Cell:
    """A table cell.

    Attributes:
        marks: `MARKS` after a score.
        short: text in LaTeX, if it differs.
        is_best: shown in bold.
        is_at_chance: shown in gray.
        link: reader address of the number's items, after #.
    """

    text: str
    marks: tuple[str, ...] = ()
    short: str = ""
    is_best: bool = False
    is_at_chance: bool = False
    link: str = ""

    @property
    def shown(self) -> str:
        """The text with its marks."""
        return " ".join((self.text, *self.marks))


Kind = Literal["group", "label", "number", "text"]


@dataclass(frozen=True)
class Column:
    """A table column.

    Attributes:
        make: returns the cell for a frame row.
        kind: numbers are right-aligned. A `group` cell is blank if it repeats the cell above.
        name: frame column. If the frame does not have the column, the table omits it. None: always shown.
        scope: words for a column with a single value, such as `2 seeds`. The words replace the column and follow the
            title.
    """

    heading: str
    make: Callable[[Record], Cell | str]
    kind: Kind = "number"
    name: str | None = None
    scope: Callable[[str], str] | None = None


def _column(kind: Kind, form: Callable[[Any], str], name: str, heading: str | None) -> Column:
    return Column(name if heading is None else heading, lambda row: form(row[name]), kind, name)


def _named(heading: str) -> Callable[[str], str]:
    return lambda value: f"{heading[:1].lower()}{heading[1:]} {value}"


def _format_word(value: Any) -> str:
    return MISSING if is_missing(value) else str(value)


def group(name: str, heading: str) -> Column:
    """Return a column for names that several rows share, such as datasets."""
    return Column(heading, lambda row: _format_word(row[name]), "group", name, _named(heading))


def label(
    name: str,
    heading: str | None = None,
    *,
    form: Callable[[Any], str] = _format_word,
    short: Mapping[str, str] | None = None,
    is_fact: bool = False,
) -> Column:
    """Return a column for row names or properties, such as systems, with short names in LaTeX."""
    heading = name if heading is None else heading
    names = short or {}
    return Column(
        heading,
        lambda row: Cell(form(row[name]), short=names.get(row[name], "")),
        "label",
        name,
        _named(heading) if is_fact else None,
    )


def prose(name: str, heading: str | None = None) -> Column:
    """Return a column for sentences."""
    return _column("text", _format_word, name, heading)


def number(name: str, heading: str | None = None, *, form: Callable[[Any], str]) -> Column:
    """Return a column for numbers with a custom format."""
    return _column("number", form, name, heading)


def count(name: str, heading: str | None = None) -> Column:
    """Return a column for counts, see `format_count`."""
    return number(name, heading, form=format_count)


def score(name: str, heading: str | None = None, *, digits: int = 2) -> Column:
    """Return a column for numbers with a fixed number of digits, see `format_score`."""
    return number(name, heading, form=partial(format_score, digits=digits))


@dataclass(frozen=True)
class Table:
    """A table, made from a frame and a list of columns.

    Attributes:
        key: file name.
        frame: one row per table row. A column `is_muted` marks rows that are not systems in the study (chance,
            published counts).
        full: values in full precision for the CSV file. None: the frame.
        note: sentences under the table, user-supplied or footnotes.
        new_block: frame column whose changes begin a new block. None: the columns with kind `group`.
        is_long: True if the page folds the table.
        widths: column widths in plain text. Longer cells are wrapped.
    """

    key: str
    title: str
    frame: pd.DataFrame
    columns: Sequence[Column]
    caption: str = ""
    note: str = ""
    full: pd.DataFrame | None = None
    new_block: str | None = None
    is_long: bool = False
    widths: tuple[int, ...] = ()

    @cached_property
    def _parts(self) -> tuple[list[Column], list[list[Cell]], list[str]]:
        """Displayed columns, cells by row, and words for columns with a single value."""
        columns = [column for column in self.columns if column.name is None or column.name in self.frame]
        rows = [[column.make(row) for column in columns] for row in records(self.frame)]
        cells = [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        numbers, scope = [], []
        for j, column in enumerate(columns):
            values = {row[j].text for row in cells} - {MISSING}
            if column.scope and cells and len(values) <= 1:
                scope += map(column.scope, values)
            else:
                numbers.append(j)
        return [columns[j] for j in numbers], [[row[j] for j in numbers] for row in cells], scope

    @property
    def shown(self) -> list[Column]:
        """Displayed columns, without columns that have a single value."""
        return self._parts[0]

    @property
    def cells(self) -> list[list[Cell]]:
        """Cells by row, before repeated labels are blanked."""
        return self._parts[1]

    @property
    def scope(self) -> str:
        """Values that all rows share, as a sentence. Empty without any."""
        words = ", ".join(self._parts[2])
        return f"{words[:1].upper()}{words[1:]}." if words else ""

    @property
    def heading(self) -> str:
        """Title with the values that all rows share."""
        words = ", ".join(self._parts[2])
        return f"{self.title} ({words})" if words else self.title

    @cached_property
    def header(self) -> list[str]:
        """Column headings."""
        return [column.heading for column in self.shown]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Cell texts by row. Labels that repeat the row above are blank."""
        texts = [[cell.shown for cell in row] for row in self.cells]
        return [[""] * n + row[n:] for n, row in zip(self._repeats, texts, strict=True)]

    @cached_property
    def _repeats(self) -> list[int]:
        """Number of leading groups that repeat the row above, by row.

        Counting ends at the first cell that differs, so that equal splits in two datasets are both named.
        """
        n_groups = next((j for j, kind in enumerate(self.kinds) if kind != "group"), len(self.kinds))
        repeats = [0] * len(self.cells)
        for i, (above, row) in enumerate(zip(self.cells, self.cells[1:], strict=False), start=1):
            repeats[i] = next((j for j in range(n_groups) if row[j].text != above[j].text), n_groups)
        return repeats

    @cached_property
    def breaks(self) -> frozenset[int]:
        """Rows that begin a new block."""
        if self.new_block is not None:
            values = list(self.frame[self.new_block])
            return frozenset(i for i in range(1, len(values)) if values[i] != values[i - 1])
        n_groups = self.kinds.count("group")
        return frozenset(i for i, n in enumerate(self._repeats) if i and n < n_groups)

    @cached_property
    def muted(self) -> frozenset[int]:
        """Rows that are not systems in the study."""
        return frozenset(i for i, row in enumerate(records(self.frame)) if row.get("is_muted"))

    @property
    def links(self) -> dict[tuple[int, int], str]:
        """Cell links by row and column."""
        return {(i, j): cell.link for i, row in enumerate(self.cells) for j, cell in enumerate(row) if cell.link}

    @cached_property
    def kinds(self) -> list[Kind]:
        """Column kinds."""
        return [column.kind for column in self.shown]

    @property
    def width(self) -> int:
        """Table width in characters, with a gap of two between columns. Sentences are wrapped."""
        columns = zip(self.kinds, self.header, *self.rows, strict=True)
        return sum(40 if kind == "text" else 2 + max(map(len, cells)) for kind, *cells in columns)

    @property
    def alignments(self) -> list[str]:
        """`left` or `right` by column."""
        return ["right" if kind == "number" else "left" for kind in self.kinds]

    @property
    def lead(self) -> int:
        """First column after the labels and seeds. A narrow page folds the columns after it."""
        n_labels = sum(kind in ("group", "label") for kind in self.kinds)
        return n_labels + (self.header[n_labels : n_labels + 1] == ["Seeds"])

    @property
    def pinned(self) -> int:
        """Column that stays visible on a narrow page: the systems, or the first column."""
        return self.header.index("System") if "System" in self.header else 0


def write_table(prefix: Path, table: Table, *, suffixes: Sequence[str] = ("csv", "md", "tex", "txt")) -> None:
    """Write a table as `.csv` (full precision), `.md`, `.tex` and `.txt`, or as some `suffixes`."""
    words = [text for text in (table.note, f"{table.heading}. {table.caption}".strip()) if text]
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
    """Return the values in full precision."""
    return (table.frame if table.full is None else table.full).to_csv(index=False)


def to_text(table: Table) -> str:
    """Return plain text for a terminal, with the note. Tables with wrapped cells are a grid without title."""
    if table.widths:
        return tabulate(table.rows, table.header, "grid", maxcolwidths=list(table.widths), disable_numparse=True)
    # Without `disable_numparse`, tabulate would read cells such as "1e5" or "007" as numbers and rewrite them.
    body = tabulate(table.rows, table.header, "simple", colalign=table.alignments, disable_numparse=True)
    note = f"\n\n{textwrap.fill(table.note, NOTE_WIDTH)}" if table.note else ""
    return f"{table.heading}\n\n{body}{note}"


# A `Form` line. A line with cells is a list: the text before, between and after the cells, then the cells.
Line = str | list[str]


@dataclass(frozen=True)
class Form:
    """A table in LaTeX or Markdown, line by line. The page can omit rows and columns."""

    head: Sequence[Line]
    rows: Sequence[Line]
    rule: str  # line before each row that begins a new block (empty: none)
    foot: Sequence[Line]


def latex_form(table: Table) -> Form:
    """Return a booktabs table with caption and label, and its note below in a smaller font."""
    is_gray = any(cell.is_at_chance for row in table.cells for cell in row)
    has_text = "text" in table.kinds
    packages = ["booktabs", *(["xcolor"] if is_gray else []), *(["tabularx", "array"] if has_text else [])]
    columns = [LATEX_COLUMNS.get(kind, NARROW if has_text else "l") for kind in table.kinds]
    note = [f"\\par\\smallskip\n{{\\footnotesize\\raggedright {escape_latex(table.note)}\\par}}"] if table.note else []
    caption = f"\\caption{{{escape_latex(f'{table.heading}. {table.caption}'.strip())}}}"
    label = f"\\label{{tab:{table.key}}}"
    header: Line = ["", " & ", " \\\\", *map(escape_latex, table.header)]
    rows: list[Line] = [
        [
            "",
            " & ",
            " \\\\",
            *(_latex_cell(cell) if is_visible else "" for cell, is_visible in zip(cells, row, strict=True)),
        ]
        for cells, row in zip(table.cells, table.rows, strict=True)
    ]
    if len(table.cells) > MAX_LATEX_ROWS and not has_text:  # `tabularx` cannot be broken
        head = [
            "% Needs \\onecolumn.",
            "\\begingroup\\scriptsize\\setlength{\\tabcolsep}{3pt}",
            ["\\begin{longtable}{", "", "}", *columns],
        ]
        head += [f"{caption}{label} \\\\", "\\toprule", header, "\\midrule", "\\endhead"]
        foot = ["\\bottomrule", "\\end{longtable}", "\\endgroup", *note]
        packages.append("longtable")
    else:
        environment = "table*" if table.width > COLUMN_WIDTH else "table"
        body, width = ("tabularx", "{\\linewidth}") if has_text else ("tabular", "")
        head = [f"\\begin{{{environment}}}[t]", "\\centering"]
        head += [
            *(["\\footnotesize"] if table.width > PAGE_WIDTH else []),
            [f"\\begin{{{body}}}{width}{{", "", "}", *columns],
        ]
        head += ["\\toprule", header, "\\midrule"]
        foot = ["\\bottomrule", f"\\end{{{body}}}", *note, caption, label, f"\\end{{{environment}}}"]
    needed = " and ".join(f"\\usepackage{{{name}}}" for name in packages)
    return Form([f"% Needs {needed}.", *head], rows, "\\midrule", foot)


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.short or cell.text)
    if cell.is_best:
        text = f"\\textbf{{{text}}}"
    if cell.is_at_chance:
        text = f"\\textcolor{{gray}}{{{text}}}"
    return text + (f"$^{{{','.join(MARKS[mark] for mark in cell.marks)}}}$" if cell.marks else "")


def markdown_form(table: Table) -> Form:
    """Return a pipe table."""
    rows = [
        [
            f"**{escape_markdown(text)}**" if cell.is_best else escape_markdown(text)
            for cell, text in zip(cells, row, strict=True)
        ]
        for cells, row in zip(table.cells, table.rows, strict=True)
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
    """Return a pipe table without title, caption and note."""
    return _join_lines(markdown_form(table), table.breaks)


def to_latex(table: Table) -> str:
    """Return a booktabs table with caption and label."""
    return _join_lines(latex_form(table), table.breaks) + "\n"


def one_line(text: str) -> str:
    """Replace line ends by blanks, since they would end a row or a paragraph."""
    return " ".join(text.splitlines())


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, in one line."""
    escaped = "".join(LATEX.get(character, character) for character in one_line(text))
    # At the start of a row, these would belong to the preceding line end: `\\*`, `\\[2pt]`.
    return f"{{}}{escaped}" if escaped.lstrip().startswith(("*", "[")) else escaped


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, in one line."""
    text = re.sub(r"([\\`*|\[\]<>~$]|&(?=#?\w+;))", r"\\\1", one_line(text))
    # At the start of a paragraph, these would create a heading or a list: `# `, `- `, `1. `.
    text = re.sub(r"^(\s*(?:\d+(?=[.)]))?)([-+#=.)])(?=[-+#=]*(?:\s|$))", r"\1\\\2", text)
    # An underscore inside a word is plain text in Markdown. At its edge, it would start emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
