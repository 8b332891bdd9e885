"""Figure panels, legend and files."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docmt.report.styles import COLORS, INK, PAPER_STYLE, STYLE, in_both_schemes

# Characters per inch that fit at a font size of 1 pt
LEGEND_CHARACTERS = 115
HEADING_CHARACTERS = 1000
# Widths in papers with two columns
COLUMN_INCHES = 3.03
PAGE_INCHES = 6.3
MAX_COLUMN_PANELS = 3  # figures with more panels span both columns

Draw = Callable[[Axes], None]  # draws one panel


@dataclass(frozen=True)
class Picture:
    """A figure with title and caption. The key is the file name."""

    key: str
    title: str
    caption: str
    svg: str  # on a transparent ground
    png: bytes  # on white
    pdf: bytes  # for papers with two columns
    is_long: bool = False  # the page folds it

    @property
    def inline_svg(self) -> str:
        """SVG element for an HTML page, with page colors and unique ids."""
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub("|".join(COLORS), lambda match: in_both_schemes(match[0]), svg)
        svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
        svg = re.sub(r'(<svg [^>]*?)height="[^"]*"', rf'\1role="img" aria-label="{self.key}"', svg, count=1)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{self.key}-", svg)


@dataclass(frozen=True)
class Plot:
    """A figure with its data in full precision."""

    picture: Picture
    values: pd.DataFrame


def draw_picture(
    panels: Sequence[tuple[str, Draw] | None],
    *,
    key: str,
    title: str,
    caption: str,
    x_label: str = "",
    y_label: str = "",
    n_columns: int = 3,
    height: float = 3.3,
    is_long: bool = False,
) -> Picture:
    """Draw panels row by row (None: empty panel) with one legend below, for pages and for papers.

    Every horizontal axis has the `x_label`, and the first panel in a row the `y_label`. `height` is the row height in
    inches. The page folds a figure with `is_long`.
    """
    options = {"x_label": x_label, "y_label": y_label}
    with matplotlib.rc_context(STYLE):
        # A single panel is as wide as three.
        figure = _draw_figure(panels, width=8.6, n_columns=min(len(panels), n_columns), height=height, **options)
        svg = io.StringIO()
        png = io.BytesIO()
        # Without date and software, the same figure gives the same bytes.
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
        figure.savefig(png, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    with matplotlib.rc_context(STYLE | PAPER_STYLE):
        if len(panels) > MAX_COLUMN_PANELS:
            figure = _draw_figure(panels, width=PAGE_INCHES, n_columns=n_columns, height=1.7, **options)
        else:
            figure = _draw_figure(panels, width=COLUMN_INCHES, n_columns=1, height=2, **options)
        pdf = io.BytesIO()
        figure.savefig(pdf, format="pdf", transparent=True, metadata={"CreationDate": None})
    # The key becomes a file name and an id, but contains user-supplied dataset names.
    return Picture(
        re.sub(r"[^A-Za-z0-9_-]", "_", key), title, caption, svg.getvalue(), png.getvalue(), pdf.getvalue(), is_long
    )


def _draw_figure(
    panels: Sequence[tuple[str, Draw] | None],
    *,
    width: float,
    n_columns: int,
    height: float,
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw panels and legend in a figure with this width in inches, in the current matplotlib style."""
    n_rows = math.ceil(len(panels) / n_columns)
    figure = Figure(figsize=(width, height * n_rows), layout="constrained")
    grid = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
    heading_width = int(HEADING_CHARACTERS * width / matplotlib.rcParams["axes.titlesize"] / n_columns)
    for index, (axes, panel) in enumerate(zip_longest(grid, panels)):
        if panel is None:
            axes.remove()
            continue
        heading, draw = panel
        axes.set(title=textwrap.fill(heading, heading_width), xlabel=x_label)
        draw(axes)  # after the labels, since it can set ticks and limits
        if index % n_columns == 0:
            axes.set_ylabel(y_label)
    entries = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        entries.update(zip(names, handles, strict=True))
    # About this many characters fit below the panels. Entries need 8 additional characters for line and margins.
    room = int(LEGEND_CHARACTERS * width / matplotlib.rcParams["font.size"])
    labels = [textwrap.fill(label, room - 8, drop_whitespace=False) for label in entries]
    columns = max(1, min(len(entries), room // (max(map(len, entries), default=0) + 8)))
    extra_height = len(labels) / columns * matplotlib.rcParams["font.size"] * 1.4 / 72
    if width < PAGE_INCHES:  # the panels keep their height
        figure.set_figheight(height * n_rows + extra_height)
    figure.legend(entries.values(), labels, loc="outside lower center", ncols=columns)
    return figure
