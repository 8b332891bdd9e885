"""Figure panels, legend and files."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docmt.report.styles import COLORS, INK, STYLE, in_both_schemes

LEGEND_CHARACTERS_PER_INCH = 12.8

Draw = Callable[[Axes], None]  # draws one panel


@dataclass(frozen=True)
class Picture:
    """A figure with title and caption. The key is the file name."""

    key: str
    title: str
    caption: str
    svg: str  # on a transparent ground
    png: bytes  # on white
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
    """Draw panels row by row (None: empty panel) with one legend below.

    Every horizontal axis has the `x_label`, and the first panel in a row the `y_label`. `height` is the row height in
    inches. The page folds a figure with `is_long`.
    """
    n_columns = min(len(panels), n_columns)  # a single panel is as wide as three
    n_rows = math.ceil(len(panels) / n_columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.6, height * n_rows), layout="constrained")
        grid = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for index, (axes, panel) in enumerate(zip_longest(grid, panels)):
            if panel is None:
                axes.remove()
                continue
            heading, draw = panel
            axes.set(title=textwrap.fill(heading, 100 // n_columns), xlabel=x_label)
            draw(axes)  # after the labels, since it can set ticks and limits
            if index % n_columns == 0:
                axes.set_ylabel(y_label)
        handles = [axes.get_legend_handles_labels() for axes in figure.axes]
        entries = {label: handle for pairs in handles for handle, label in zip(*pairs, strict=True)}
        # About this many characters fit below the panels. Entries need 8 additional characters for line and margins.
        room = int(LEGEND_CHARACTERS_PER_INCH * figure.get_figwidth())
        columns = max(1, min(len(entries), room // (max(map(len, entries), default=0) + 8)))
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)
        svg, png = io.StringIO(), io.BytesIO()
        # Without date and software, the same figure gives the same bytes.
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
        figure.savefig(png, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    # The key becomes a file name and an id, but contains user-supplied dataset names.
    return Picture(re.sub(r"[^A-Za-z0-9_-]", "_", key), title, caption, svg.getvalue(), png.getvalue(), is_long)
