"""Tables, made from a frame and a list of columns, in CSV and plain text."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import pandas as pd
from tabulate import tabulate

from docmt.report.dataframes import Record, is_missing, records
from docmt.report.numbers import MISSING, format_count, format_score

NOTE_WIDTH = 100


@dataclass(frozen=True)
class Cell:
    """A table cell.

    Attributes:
        marks: signs after a score: significance (`*`, `**`), not comparable (`†`), at chance (`°`).
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


def one_line(text: str) -> str:
    """Replace line ends by blanks, since they would end a row or a paragraph."""
    return " ".join(text.splitlines())
