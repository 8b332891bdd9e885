"""Tables in LaTeX and Markdown, and the files of a table.

LaTeX tables fit two-column pages: long headings are broken, wide tables span both columns, and tables that are still
too wide are split into parts below each other.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

from docmt.files import atomic_writer
from docmt.report.tables import Cell, Table, one_line, to_csv, to_text

# Characters with another form in LaTeX, for `str.translate`
LATEX = str.maketrans(
    {
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
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
)
# Signs after a score, in LaTeX: significance, not comparable, at chance
MARKS = {"*": "*", "**": "**", "†": r"\dagger", "°": r"\circ"}
EXPLANATIONS = ("Bold", *MARKS)  # first words of sentences that explain signs
MAX_NOTE_WORDS = 40  # longer notes do not fit under a table of a paper
# Sentence ends, apart from abbreviations such as “et al. (2021)” and “e.g.”
SENTENCE_END = re.compile(r"(?<=[.])(?<! al[.])(?<!e[.]g[.])(?<!i[.]e[.]) (?=[^a-z0-9(])")
# Tables with more lines are broken across pages. The header of each part takes the height of three lines.
MAX_LATEX_LINES = 44
HEADER_LINES = 3
MAX_LATEX_COLUMNS = 12  # per part
LABEL_SHARE = 0.17  # width of labels next to sentences
TEXT_WIDTH = 190.0  # minimum width for sentences in points
# Points, on A4 pages
COLUMN_WIDTH = 217.0
PAGE_WIDTH = 450.0
GAP = 12.0
# Widths of characters in Computer Modern at 10 pt
CHARACTER_WIDTHS = {
    **dict.fromkeys("ijl.,:;'!|", 2.8),
    **dict.fromkeys(" -fI", 3.4),
    **dict.fromkeys("rst()[]", 4.0),
    **dict.fromkeys("cez", 4.5),
    **dict.fromkeys("0123456789ago/–", 5.0),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZw", 7.4),
    **dict.fromkeys("mM%±−×", 8.4),
    "W": 10.3,
}
OTHER_WIDTH = 5.6
MARK_WIDTH = 4.2
BOLD = 1.15  # relative width of bold digits
# (environment, width, font size, relative width of letters), the preferred one first
SIZES = (
    ("table", COLUMN_WIDTH, "", 1.0),
    ("table", COLUMN_WIDTH, "\\footnotesize", 0.85),
    ("table*", PAGE_WIDTH, "", 1.0),
    ("table*", PAGE_WIDTH, "\\footnotesize", 0.85),
)
LONG_TABLE = ("longtable", PAGE_WIDTH, "\\scriptsize", 0.8)


@dataclass(frozen=True)
class LatexTable:
    """A table in LaTeX, and its cells, so that the page can leave out rows and columns.

    Attributes:
        text: the whole table.
        columns: column specifications such as `r`.
        parts: columns of the parts that are printed below each other.
    """

    text: str
    columns: Sequence[str]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    parts: Sequence[Sequence[int]]


def write_table(prefix: Path, table: Table, *, suffixes: Sequence[str] = ("csv", "md", "tex", "txt")) -> None:
    """Write a table as `.csv` (full precision), `.md`, `.tex` and `.txt`, or as some `suffixes`."""
    paragraphs = [to_markdown(table)]
    if table.note:
        paragraphs.append(escape_markdown(table.note))
    paragraphs.append(escape_markdown(f"{table.heading}. {table.caption}".strip()))
    forms = {
        "csv": to_csv(table),
        "md": "\n\n".join(paragraphs) + "\n",
        "tex": to_latex(table),
        "txt": f"{to_text(table)}\n\n{table.caption}\n",
    }
    for suffix in suffixes:
        with atomic_writer(prefix.with_name(f"{prefix.name}.{suffix}")) as file:
            file.write(forms[suffix])


def to_latex(table: Table) -> str:
    """Return a booktabs table with caption and label, and its note below in a smaller font."""
    return latex_table(table).text


def latex_table(table: Table) -> LatexTable:
    """Return a booktabs table as text, and its cells."""
    environment, size, parts = _layout(table)
    is_long = environment == "longtable"
    specifications = _latex_columns(table)
    header = _latex_header(table)
    rows = _latex_rows(table)
    printed, others = _latex_notes(table)
    caption = f"\\caption{{{escape_latex(f'{table.heading}. {table.caption}'.strip())}}}"
    label = f"\\label{{tab:{table.key}}}"
    body = "tabular"
    if is_long:
        body = "longtable"
    elif "text" in table.kinds:
        body = "tabularx}{\\linewidth"
    lines = _latex_comments(table, environment, others)
    if is_long:
        lines += ["% Needs \\onecolumn.", f"\\begingroup{size}\\setlength{{\\tabcolsep}}{{3pt}}\\raggedright"]
    else:
        lines += [f"\\begin{{{environment}}}[t]", "\\centering"]
        if size:
            lines.append(size)
    for i, columns in enumerate(parts):

        def join(texts: Sequence[str], separator: str = " & ", columns: Sequence[int] = columns) -> str:
            return separator.join(texts[j] for j in columns)

        lines.append(f"\\begin{{{body}}}{{{join(specifications, '')}}}")
        if is_long and i == 0:
            lines.append(f"{caption}{label} \\\\")
        lines += ["\\toprule", f"{join(header)} \\\\", "\\midrule"]
        if is_long:
            lines.append("\\endhead")
        for j, row in enumerate(rows):
            if j in table.breaks:
                lines.append("\\midrule")
            lines.append(f"{join(row)} \\\\")
        lines += ["\\bottomrule", f"\\end{{{body.split('}')[0]}}}"]
        if not is_long and i + 1 < len(parts):
            lines.append("\\par\\medskip")
    if is_long:
        lines.append("\\endgroup")
    if printed:
        lines.append(f"\\par\\smallskip\n{{\\footnotesize\\raggedright {escape_latex(printed)}\\par}}")
    if not is_long:
        lines += [caption, label, f"\\end{{{environment}}}"]
    return LatexTable("\n".join(lines) + "\n", specifications, header, rows, parts)


def _latex_comments(table: Table, environment: str, others: Sequence[str]) -> list[str]:
    """Return comments with the packages that the table needs, and with sentences that are not printed."""
    packages = ["\\usepackage{booktabs}"]
    if any(cell.is_at_chance for cell in itertools.chain.from_iterable(table.cells)):
        packages.append("\\usepackage{xcolor}")
    if "text" in table.kinds:
        packages.append("\\usepackage{tabularx}")
    if _is_ragged(table):
        packages.append("\\usepackage{array}")
    if environment == "longtable":
        packages.append("\\usepackage{longtable}")
    comments = [f"% Needs {', '.join(packages)}."]
    for sentence in others:
        comments.append(f"% Note: {one_line(sentence)}")
    return comments


def _is_ragged(table: Table) -> bool:
    """True if cells can be longer than a line."""
    return bool(table.widths) or "text" in table.kinds


def _layout(table: Table) -> tuple[str, str, list[list[int]]]:
    """Return environment, font size and columns by part.

    The first columns, such as the system, are repeated in every part. A published number stays next to the score.
    """
    all_columns = list(range(len(table.kinds)))
    if table.widths:
        return LONG_TABLE[0], LONG_TABLE[2], [all_columns]
    repeated = all_columns[: table.n_groups + 1]
    units: list[list[int]] = []
    for j in all_columns[len(repeated) :]:
        if table.header[j] == "published" and units:
            units[-1].append(j)
        else:
            units.append([j])
    widths = _column_widths(table)

    def fits(columns: Sequence[int], room: float, scale: float, gap: float = GAP) -> bool:
        return sum(scale * widths[j] + gap for j in columns) <= room and len(columns) <= MAX_LATEX_COLUMNS

    def split(room: float, scale: float, gap: float = GAP) -> list[list[int]]:
        parts = [repeated]
        for n_parts in range(1, len(units) + 1):
            n_units = math.ceil(len(units) / n_parts)
            parts = []
            for start in range(0, len(units), n_units):
                parts.append(list(itertools.chain(repeated, *units[start : start + n_units])))
            if all(fits(part, room, scale, gap) for part in parts):
                break
        return parts

    fitting = (row for row in SIZES if fits(all_columns, row[1], row[3]))
    environment, room, size, scale = next(fitting, SIZES[-1])
    parts = split(room, scale)
    # `tabularx` cannot be broken across pages
    if "text" not in table.kinds and len(parts) * (len(table.rows) + HEADER_LINES) > MAX_LATEX_LINES:
        environment, room, size, scale = LONG_TABLE
        parts = split(room, scale, GAP / 2)
    return environment, size, parts


def _column_widths(table: Table) -> list[float]:
    """Return the column widths in points, at the normal font size."""
    widths = []
    for kind, heading, *cells in zip(table.kinds, table.header, *table.cells, strict=True):
        if kind == "text":
            widths.append(TEXT_WIDTH)
            continue
        if "text" in table.kinds and kind != "number":
            widths.append(LABEL_SHARE * PAGE_WIDTH)
            continue
        width = 0.0
        for cell in cells:
            scale = BOLD if cell.is_best else 1
            width = max(width, scale * text_width(cell.short or cell.text) + MARK_WIDTH * len("".join(cell.marks)))
        widths.append(max(width, *map(text_width, break_heading(heading, width))))
    return widths


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
    if _is_ragged(table):
        return list(map(escape_latex, table.header))
    headings = []
    for heading, width, kind in zip(table.header, _column_widths(table), table.kinds, strict=True):
        lines = break_heading(heading, width)
        text = "\\\\".join(map(escape_latex, lines))
        if len(lines) > 1:
            side = "r" if kind == "number" else "l"
            text = f"\\shortstack[{side}]{{{text}}}"
        headings.append(text)
    return headings


def _latex_columns(table: Table) -> list[str]:
    if table.widths:
        # Columns are at least as wide as their longest word, and share the rest of the page.
        minima = []
        for texts in zip(table.header, *table.rows, strict=True):
            words = re.split(r"(?<=[_/-])| ", " ".join(texts))
            minima.append(LONG_TABLE[3] * max(map(text_width, words)) + 1)
        room = PAGE_WIDTH - sum(minima) - GAP / 2 * len(minima)
        columns = []
        for low, share in zip(minima, table.widths, strict=True):
            width = low + room * share / sum(table.widths)
            columns.append(f">{{\\raggedright\\arraybackslash}}p{{{width / PAGE_WIDTH:.3f}\\linewidth}}")
        return columns
    label = "l"
    if "text" in table.kinds:
        label = f">{{\\raggedright}}p{{{LABEL_SHARE}\\linewidth}}"
    specifications = {"group": label, "label": label, "number": "r", "text": ">{\\raggedright\\arraybackslash}X"}
    return [specifications[kind] for kind in table.kinds]


def _latex_rows(table: Table) -> list[list[str]]:
    is_ragged = _is_ragged(table)
    rows = []
    for cells, texts in zip(table.cells, table.rows, strict=True):
        row = []
        for cell, text in zip(cells, texts, strict=True):
            if text:
                row.append(_latex_cell(cell, is_ragged=is_ragged))
            else:  # a label that repeats the row above
                row.append("")
        rows.append(row)
    return rows


def _latex_notes(table: Table) -> tuple[str, list[str]]:
    """Return the printed note, and the sentences that are left out. Explanations of signs come first."""
    if not table.note:
        return "", []
    sentences = SENTENCE_END.split(one_line(table.note))
    sentences.sort(key=lambda sentence: not sentence.startswith(EXPLANATIONS))
    printed: list[str] = []
    others = []
    for sentence in sentences:
        if len(" ".join([*printed, sentence]).split()) <= MAX_NOTE_WORDS:
            printed.append(sentence)
        else:
            others.append(sentence)
    return " ".join(printed), others


def _latex_cell(cell: Cell, *, is_ragged: bool) -> str:
    text = escape_latex(cell.short or cell.text)
    if is_ragged:  # long names can be broken
        text = re.sub(r"(\\_|/)", r"\1\\allowbreak{}", text)
    if cell.is_best:
        text = f"\\textbf{{{text}}}"
    if cell.is_at_chance:
        text = f"\\textcolor{{gray}}{{{text}}}"
    if cell.marks:
        marks = ",".join(MARKS[mark] for mark in cell.marks)
        text += f"$^{{{marks}}}$"
    return text


def to_markdown(table: Table) -> str:
    """Return a pipe table without title, caption and note."""
    rows = []
    for cells, texts in zip(table.cells, table.rows, strict=True):
        row = []
        for cell, text in zip(cells, texts, strict=True):
            text = escape_markdown(text)
            if cell.is_best:
                text = f"**{text}**"
            row.append(text)
        rows.append(row)
    header = list(map(escape_markdown, table.header))
    return tabulate(rows, header, "pipe", colalign=table.alignments, disable_numparse=True)


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, in one line, with typographic quotation marks."""
    text = re.sub(r'(?<![^\s(\["])"(?=\S)', "“", one_line(text)).replace('"', "”")
    escaped = text.translate(LATEX)
    # At the start of a row, these would belong to the preceding line end: `\\*`, `\\[2pt]`.
    if escaped.lstrip().startswith(("*", "[")):
        return f"{{}}{escaped}"
    return escaped


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, in one line."""
    text = re.sub(r"([\\`*|\[\]<>~$]|&(?=#?\w+;))", r"\\\1", one_line(text))
    # At the start of a paragraph, these would create a heading or a list: `# `, `- `, `1. `.
    text = re.sub(r"^(\s*(?:\d+(?=[.)]))?)([-+#=.)])(?=[-+#=]*(?:\s|$))", r"\1\\\2", text)
    # An underscore inside a word is plain text in Markdown. At its edge, it would start emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)
