"""Tables, made from a frame and a list of columns, in CSV and plain text."""

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal

import pandas as pd
from tabulate import tabulate

from docmt.report.dataframes import Record, is_missing, records
from docmt.report.numbers import MISSING, format_count, format_score

NOTE_WIDTH = 100
BOLD_NOTE = "Bold: best."
"""Sentence of a note about `is_best`, left out where the table is plain text."""


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
    make: Callable[[Record], Cell]
    kind: Kind = "number"
    name: str | None = None
    scope: Callable[[str], str] | None = None


def _format_word(value: Any) -> str:
    if is_missing(value):
        return MISSING
    return str(value)


def _describe_scope(heading: str, value: str) -> str:
    return f"{heading[:1].lower()}{heading[1:]} {value}"


def group(name: str, heading: str) -> Column:
    """Return a column for names that several rows share, such as datasets."""
    return Column(
        heading, lambda row: Cell(_format_word(row[name])), "group", name, scope=partial(_describe_scope, heading)
    )


def label(
    name: str,
    heading: str | None = None,
    *,
    form: Callable[[Any], str] = _format_word,
    short: Mapping[str, str] = MappingProxyType({}),
    is_fact: bool = False,
) -> Column:
    """Return a column for row names or properties, such as systems, with short names in LaTeX."""
    if heading is None:
        heading = name
    scope = None
    if is_fact:
        scope = partial(_describe_scope, heading)
    return Column(
        heading, lambda row: Cell(form(row[name]), short=short.get(row[name], "")), "label", name, scope=scope
    )


def prose(name: str, heading: str) -> Column:
    """Return a column for sentences."""
    return Column(heading, lambda row: Cell(_format_word(row[name])), "text", name)


def number(name: str, heading: str | None = None, *, form: Callable[[Any], str]) -> Column:
    """Return a column for numbers with a custom format."""
    if heading is None:
        heading = name
    return Column(heading, lambda row: Cell(form(row[name])), "number", name)


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
    def _columns_and_scopes(self) -> tuple[list[tuple[Column, list[Cell]]], str]:
        """Displayed columns with their cells, and words for columns with a single value."""
        rows = records(self.frame)
        columns: list[tuple[Column, list[Cell]]] = []
        scopes: list[str] = []
        for column in self.columns:
            if column.name is not None and column.name not in self.frame:
                continue
            cells = [column.make(row) for row in rows]
            words = {cell.text for cell in cells}
            values = words - {MISSING}
            # A system without a property differs from the others. Rows without scores have no number of seeds.
            n_values = len(words if column.kind == "label" else values)
            if column.scope and cells and n_values <= 1:
                scopes += map(column.scope, values)
            else:
                columns.append((column, cells))
        return columns, ", ".join(scopes)

    @cached_property
    def cells(self) -> list[list[Cell]]:
        """Cells by row, before repeated labels are blanked."""
        columns, _ = self._columns_and_scopes
        rows = []
        for i in range(len(self.frame)):
            rows.append([cells[i] for _, cells in columns])
        return rows

    @property
    def scope(self) -> str:
        """Values that all rows share, as a sentence. Empty without any."""
        _, words = self._columns_and_scopes
        return words and f"{words[:1].upper()}{words[1:]}."

    @property
    def heading(self) -> str:
        """Title with the values that all rows share."""
        _, words = self._columns_and_scopes
        return f"{self.title} ({words})" if words else self.title

    @cached_property
    def header(self) -> list[str]:
        """Column headings."""
        return [column.heading for column, _ in self._columns_and_scopes[0]]

    @cached_property
    def kinds(self) -> list[Kind]:
        """Column kinds."""
        return [column.kind for column, _ in self._columns_and_scopes[0]]

    @cached_property
    def n_groups(self) -> int:
        """Number of leading `group` columns."""
        return len(list(itertools.takewhile(lambda kind: kind == "group", self.kinds)))

    @cached_property
    def rows(self) -> list[list[str]]:
        """Cell texts by row. Labels that repeat the row above are blank."""
        rows = []
        for n_blank, cells in zip(self._repeats, self.cells, strict=True):
            rows.append([""] * n_blank + [cell.shown for cell in cells[n_blank:]])
        return rows

    @cached_property
    def _repeats(self) -> list[int]:
        """Number of leading groups that repeat the row above, by row.

        Counting ends at the first cell that differs, so that equal splits in two datasets are both named.
        """
        repeats = [0] * len(self.cells)
        for i, (above, row) in enumerate(itertools.pairwise(self.cells), start=1):
            while repeats[i] < self.n_groups and row[repeats[i]].text == above[repeats[i]].text:
                repeats[i] += 1
        return repeats

    @cached_property
    def breaks(self) -> set[int]:
        """Rows that begin a new block."""
        if self.new_block is not None:
            values = self.frame[self.new_block].tolist()
            return {i for i in range(1, len(values)) if values[i] != values[i - 1]}
        return {i for i, n_repeats in enumerate(self._repeats) if i and n_repeats < self.n_groups}

    @cached_property
    def muted(self) -> set[int]:
        """Rows that are not systems in the study."""
        return {i for i, row in enumerate(records(self.frame)) if row.get("is_muted")}

    @property
    def has_links(self) -> bool:
        """True if cells have links to items in the reader."""
        return any(cell.link for cell in itertools.chain.from_iterable(self.cells))

    @property
    def alignments(self) -> list[str]:
        """`left` or `right` by column."""
        return ["right" if kind == "number" else "left" for kind in self.kinds]

    @property
    def lead(self) -> int:
        """First column after the labels and seeds. A narrow page folds the columns after it."""
        n_labels = self.kinds.count("group") + self.kinds.count("label")
        return n_labels + (self.header[n_labels : n_labels + 1] == ["Seeds"])

    @property
    def pinned(self) -> int:
        """Column that stays visible on a narrow page: the systems, or the first column."""
        if "System" not in self.header:
            return 0
        return self.header.index("System")


def to_csv(table: Table) -> str:
    """Return the values in full precision."""
    if table.full is None:
        return table.frame.to_csv(index=False)
    return table.full.to_csv(index=False)


def to_text(table: Table) -> str:
    """Return plain text for a terminal, with the note. Tables with wrapped cells are a grid without title."""
    if table.widths:
        return tabulate(table.rows, table.header, "grid", maxcolwidths=list(table.widths), disable_numparse=True)
    # Without `disable_numparse`, tabulate would read cells such as "1e5" or "007" as numbers and rewrite them.
    body = tabulate(table.rows, table.header, "simple", colalign=table.alignments, disable_numparse=True)
    text = f"{table.heading}\n\n{body}"
    note = table.note.replace(BOLD_NOTE, "").strip()
    if note:
        text += f"\n\n{textwrap.fill(note, NOTE_WIDTH)}"
    return text


def one_line(text: str) -> str:
    """Replace line ends by blanks, since they would end a row or a paragraph."""
    return " ".join(text.splitlines())
