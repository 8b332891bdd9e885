"""Tables in LaTeX and Markdown, and the files of a table.

LaTeX tables fit two-column pages: long headings are broken, wide tables span both columns, and tables that are still
too wide are split into parts below each other.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from docmt.files import atomic_writer
from docmt.report.tables import Cell, Table, one_line, to_csv, to_text

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
    "†": r"$\dagger$",
    "°": r"$^{\circ}$",
    "“": "``",
    "”": "''",
    "\N{NO-BREAK SPACE}": "~",
}
# Signs after a score, in LaTeX: significance, not comparable, at chance
MARKS = {"*": "*", "**": "**", "†": r"\dagger", "°": r"\circ"}
EXPLANATIONS = ("Bold", *MARKS)  # first words of sentences that explain signs
MAX_NOTE_WORDS = 40  # longer notes do not fit under a table of a paper
# Sentence ends, apart from abbreviations such as “et al. (2021)” and “e.g.”
SENTENCE_END = re.compile(r"(?<=[.])(?<! al[.])(?<!e[.]g[.])(?<!i[.]e[.]) (?=[^a-z0-9(])")
MAX_LATEX_ROWS = 50  # longer tables are broken across pages
MAX_LATEX_COLUMNS = 12  # per part
LABEL_SHARE, TEXT_WIDTH = 0.17, 190.0  # width of labels next to sentences, and minimum width for sentences in points
COLUMN_WIDTH, PAGE_WIDTH, GAP = 217.0, 450.0, 12.0  # points, on A4 pages
# Widths of characters in Computer Modern at 10 pt
CHARACTER_WIDTHS = {
    character: width
    for width, characters in {
        2.8: "ijl.,:;'!|",
        3.4: " -fI",
        4.0: "rst()[]",
        4.5: "cez",
        5.0: "0123456789ago/–",
        7.4: "ABCDEFGHJKLNOPQRSTUVXYZw",
        8.4: "mM%±−×",
        10.3: "W",
    }.items()
    for character in characters
}
OTHER_WIDTH = 5.6
# (environment, width, font size, relative width of letters), the preferred one first
SIZES = (
    ("table", COLUMN_WIDTH, "", 1.0),
    ("table", COLUMN_WIDTH, "\\footnotesize", 0.85),
    ("table*", PAGE_WIDTH, "", 1.0),
    ("table*", PAGE_WIDTH, "\\footnotesize", 0.85),
)
LONG_TABLE = ("longtable", PAGE_WIDTH, "\\scriptsize", 0.8)

# A `Form` line. A line with cells is a list: the text before, between and after the cells, then the cells.
Line = str | list[str]


@dataclass(frozen=True)
class Part:
    """Columns of a table that stand next to each other, with the lines before and after their rows."""

    columns: Sequence[int]
    head: Sequence[Line]
    foot: Sequence[Line] = ()


@dataclass(frozen=True)
class Form:
    """A table in LaTeX or Markdown, line by line. The page can omit rows and columns."""

    head: Sequence[str]
    parts: Sequence[Part]
    rows: Sequence[Line]
    rule: str  # line before each row that begins a new block (empty: none)
    foot: Sequence[str]


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


def latex_form(table: Table) -> Form:
    """Return a booktabs table with caption and label, and its note below in a smaller font."""
    is_gray = any(cell.is_at_chance for row in table.cells for cell in row)
    is_tabularx, is_ragged = "text" in table.kinds, bool(table.widths) or "text" in table.kinds
    packages = ["booktabs", *(["xcolor"] if is_gray else [])]
    packages += [*(["tabularx"] if is_tabularx else []), *(["array"] if is_ragged else [])]
    environment, size, parts = _layout(table)
    if environment == "longtable":
        packages.append("longtable")
    caption = f"\\caption{{{escape_latex(f'{table.heading}. {table.caption}'.strip())}}}"
    label = f"\\label{{tab:{table.key}}}"
    body = "longtable" if environment == "longtable" else "tabularx" if is_tabularx else "tabular"
    begin = f"\\begin{{{body}}}{{" + ("\\linewidth}{" if is_tabularx else "")
    header: Line = ["", " & ", " \\\\", *_latex_header(table)]
    forms = []
    for i, columns in enumerate(parts):
        head: list[Line] = [[begin, "", "}", *_latex_columns(table)], "\\toprule", header, "\\midrule"]
        foot = ["\\bottomrule", f"\\end{{{body}}}"]
        if environment == "longtable":
            head[1:1] = [f"{caption}{label} \\\\"] if i == 0 else []
            head.append("\\endhead")
        elif i + 1 < len(parts):
            foot.append("\\par\\medskip")
        forms.append(Part(columns, head, foot))
    rows: list[Line] = [
        [
            "",
            " & ",
            " \\\\",
            *(_latex_cell(cell) if is_visible else "" for cell, is_visible in zip(cells, row, strict=True)),
        ]
        for cells, row in zip(table.cells, table.rows, strict=True)
    ]
    printed, others = _latex_notes(table)
    note = [f"\\par\\smallskip\n{{\\footnotesize\\raggedright {escape_latex(printed)}\\par}}"] if printed else []
    if environment == "longtable":
        start = [
            "% Needs \\onecolumn.",
            f"\\begingroup{size}\\setlength{{\\tabcolsep}}{{3pt}}\\raggedright",
        ]
        end = ["\\endgroup", *note]
    else:
        start = [f"\\begin{{{environment}}}[t]", "\\centering", *([size] if size else [])]
        end = [*note, caption, label, f"\\end{{{environment}}}"]
    needed = ", ".join(f"\\usepackage{{{name}}}" for name in packages)
    comments = [f"% Needs {needed}.", *(f"% Note: {one_line(sentence)}" for sentence in others)]
    return Form([*comments, *start], forms, rows, "\\midrule", end)


def _layout(table: Table) -> tuple[str, str, list[list[int]]]:
    """Return environment, font size and columns by part.

    The first columns, such as the system, are repeated in every part. A published number stays next to the score.
    """
    n_groups = next((j for j, kind in enumerate(table.kinds) if kind != "group"), len(table.kinds))
    repeated = list(range(min(n_groups + 1, len(table.kinds))))
    units: list[list[int]] = []
    for j in range(len(repeated), len(table.kinds)):
        if table.header[j] == "published" and units:
            units[-1].append(j)
        else:
            units.append([j])
    widths = _column_widths(table)

    def split(n_parts: int) -> list[list[int]]:
        n_units = math.ceil(len(units) / n_parts)
        starts = range(0, max(1, len(units)), max(1, n_units))
        return [repeated + [j for unit in units[start : start + n_units] for j in unit] for start in starts]

    def fits(columns: Sequence[int], room: float, scale: float) -> bool:
        width = sum(scale * widths[j] + GAP for j in columns)
        return width <= room and len(columns) <= MAX_LATEX_COLUMNS

    environment, room, size, scale = next(
        (
            (environment, room, size, scale)
            for environment, room, size, scale in SIZES
            if fits(range(len(widths)), room, scale)
        ),
        SIZES[-1],
    )
    n_parts = 1
    if not table.widths:
        while n_parts < len(units) and not all(fits(columns, room, scale) for columns in split(n_parts)):
            n_parts += 1
    # `tabularx` cannot be broken across pages
    if "text" not in table.kinds and n_parts * _count_lines(table) > MAX_LATEX_ROWS:
        environment, room, size, scale = LONG_TABLE
    return environment, size, split(n_parts)


def _count_lines(table: Table) -> int:
    """Return the number of lines in the table, with wrapped cells."""
    if not table.widths:
        return len(table.rows)
    return sum(
        max(math.ceil(len(text) / width) for text, width in zip(row, table.widths, strict=True)) for row in table.rows
    )


def _column_widths(table: Table) -> list[float]:
    """Return the column widths in points, at the normal font size."""
    if table.widths:
        return [PAGE_WIDTH / len(table.widths) - GAP] * len(table.widths)
    widths = []
    for kind, heading, *cells in zip(table.kinds, table.header, *table.cells, strict=True):
        if kind == "text":
            widths.append(TEXT_WIDTH)
        elif "text" in table.kinds and kind != "number":
            widths.append(LABEL_SHARE * PAGE_WIDTH)
        else:
            of_cells = max(map(_cell_width, cells), default=0)
            widths.append(max(of_cells, *map(text_width, break_heading(heading, of_cells))))
    return widths


def _cell_width(cell: Cell) -> float:
    width = text_width(cell.short or cell.text) * (1.15 if cell.is_best else 1)
    return width + 4.2 * sum(map(len, cell.marks))


def text_width(text: str) -> float:
    """Return the width of the text in points, at the normal font size."""
    return sum(CHARACTER_WIDTHS.get(character, OTHER_WIDTH) for character in text)


def break_heading(heading: str, width: float) -> list[str]:
    """Return the lines of a heading over cells with this width. A line is as long as the cells or a single word."""
    words = re.split(" (?![/%])", heading)
    width = max([width, *map(text_width, words)])
    lines = words[:1]
    for word in words[1:]:
        line = f"{lines[-1]} {word}"
        if text_width(line) <= width:
            lines[-1] = line
        else:
            lines.append(word)
    return lines


def _latex_header(table: Table) -> list[str]:
    headings = []
    for heading, width, kind in zip(table.header, _column_widths(table), table.kinds, strict=True):
        lines = [heading] if table.widths or "text" in table.kinds else break_heading(heading, width)
        side = "r" if kind == "number" else "l"
        text = "\\\\".join(map(escape_latex, lines))
        headings.append(f"\\shortstack[{side}]{{{text}}}" if len(lines) > 1 else text)
    return headings


def _latex_columns(table: Table) -> list[str]:
    if table.widths:
        share = 1 - GAP * len(table.widths) / PAGE_WIDTH
        shares = [share * width / sum(table.widths) for width in table.widths]
        return [f">{{\\raggedright\\arraybackslash}}p{{{share:.3f}\\linewidth}}" for share in shares]
    label = f">{{\\raggedright}}p{{{LABEL_SHARE}\\linewidth}}" if "text" in table.kinds else "l"
    text = ">{\\raggedright\\arraybackslash}X"
    return [{"number": "r", "text": text}.get(kind, label) for kind in table.kinds]


def _latex_notes(table: Table) -> tuple[str, list[str]]:
    """Return the printed note, and the sentences that are left out. Explanations of signs come first."""
    sentences = SENTENCE_END.split(one_line(table.note)) if table.note else []
    sentences.sort(key=lambda sentence: not sentence.startswith(EXPLANATIONS))
    printed: list[str] = []
    others = []
    for sentence in sentences:
        is_short = len(" ".join([*printed, sentence]).split()) <= MAX_NOTE_WORDS
        (printed if is_short else others).append(sentence)
    return " ".join(printed), others


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
    return Form([], [Part(list(range(len(header))), lines[:2])], lines[2:], "", [])


def _join_lines(form: Form, breaks: frozenset[int]) -> str:
    rows = [
        line for i, row in enumerate(form.rows) for line in ([form.rule] if form.rule and i in breaks else []) + [row]
    ]
    lines = list(form.head)
    for part in form.parts:
        for line in (*part.head, *rows, *part.foot):
            if isinstance(line, list):
                before, between, after, *cells = line
                line = before + between.join(cells[j] for j in part.columns) + after
            lines.append(line)
    return "\n".join([*lines, *form.foot])


def to_markdown(table: Table) -> str:
    """Return a pipe table without title, caption and note."""
    return _join_lines(markdown_form(table), table.breaks)


def to_latex(table: Table) -> str:
    """Return a booktabs table with caption and label."""
    return _join_lines(latex_form(table), table.breaks) + "\n"


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, in one line, with typographic quotation marks."""
    text = re.sub(r'(?<![^\s(\["])"(?=\S)', "“", one_line(text)).replace('"', "”")
    escaped = "".join(LATEX.get(character, character) for character in text)
    # At the start of a row, these would belong to the preceding line end: `\\*`, `\\[2pt]`.
    return f"{{}}{escaped}" if escaped.lstrip().startswith(("*", "[")) else escaped


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, in one line."""
    text = re.sub(r"([\\`*|\[\]<>~$]|&(?=#?\w+;))", r"\\\1", one_line(text))
    # At the start of a paragraph, these would create a heading or a list: `# `, `- `, `1. `.
    text = re.sub(r"^(\s*(?:\d+(?=[.)]))?)([-+#=.)])(?=[-+#=]*(?:\s|$))", r"\1\\\2", text)
    # An underscore inside a word is plain text in Markdown. At its edge, it would start emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
