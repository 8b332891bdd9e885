"""What all pictures share: their look, panels, legends and files."""

import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from docmt.errors import UserError
from docmt.files import read_text
from docmt.report.styles import Look, Styles

INK = "#1b1f24"
LEGEND_CHARACTERS_PER_INCH = 12.8
MOST_BANDS = 6
"""Bands of more systems than this hide each other: each system then has its panels alone."""

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    # The same data give the same file.
    "svg.hashsalt": "docmt",
    "svg.fonttype": "path",
}
COLUMNS = 4
"""Panels beside each other where each system has its own."""
SVG_ELEMENTS = frozenset({"svg", "g", "title", "text", "rect", "path", "circle"})
"""Elements of our pictures of trees; the page includes no others."""
OTHERS: Look = {"color": INK, "linestyle": "-", "linewidth": 0.6, "alpha": 0.3}
"""Line style of the other systems in a single-system panel."""

Draw = Callable[..., None]
"""Draws the values of a system: `draw(axes, values, look, has_band=True)`, where bands show their spread."""


@dataclass(frozen=True)
class Picture:
    """A figure with its title and caption.

    Attributes:
        key: name of its files.
        title: heading.
        caption: what it shows.
        svg: the figure as SVG on a transparent ground.
        png: the same as pixels on white, where there are any.
        is_long: whether the page shows it folded.
    """

    key: str
    title: str
    caption: str
    svg: str
    png: bytes | None
    is_long: bool = False

    @property
    def inline_svg(self) -> str:
        """The SVG element for an HTML page: it takes on the page's text color, and its ids are unique there."""
        svg = self.svg[self.svg.index("<svg") :].replace(INK, "currentColor")
        svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
        svg = re.sub(r'(<svg [^>]*?)height="[^"]*"', rf'\1role="img" aria-label="{self.key}"', svg, count=1)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{self.key}-", svg)


def draw_systems(
    data: Mapping[tuple[str, str], Any],
    draw: Draw,
    styles: Styles,
    *,
    key: str,
    title: str,
    caption: str,
    x_label: str,
    y_label: str,
    has_bands: bool = True,
) -> list[Picture]:
    """A picture with a panel for each heading; where bands would hide each other, one more with a panel per system.

    Args:
        data: what is drawn, by heading and system.
        draw: how it is drawn.
        styles: of the study.
        key: of the picture, as are title and caption.
        title: heading.
        caption: what it shows.
        x_label: words at the horizontal axes.
        y_label: words at the vertical axis.
        has_bands: whether the values have a spread.
    """
    headings = list(dict.fromkeys(heading for heading, _ in data))
    is_crowded = has_bands and len({system for _, system in data}) > MOST_BANDS
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 3.1), layout="constrained")
        panels = figure.subplots(1, len(headings), squeeze=False)[0]
        for (heading, system), values in data.items():
            draw(panels[headings.index(heading)], values, styles.look(system), has_band=not is_crowded)
        for axes, heading in zip(panels, headings, strict=True):
            axes.set(title=heading, xlabel=x_label)
        panels[0].set_ylabel(y_label)
        add_legend(figure, panels)
        pictures = [finish_picture(figure, key, title, caption)]
        if is_crowded:
            apart = _panel_for_each(data, draw, styles, x_label=x_label, y_label=y_label)
            remark = "A panel for each system, the others in gray."
            pictures.append(finish_picture(apart, f"{key}_by_system", f"{title}, by system", f"{remark} {caption}"))
    return pictures


def _panel_for_each(
    data: Mapping[tuple[str, str], Any], draw: Draw, styles: Styles, *, x_label: str, y_label: str
) -> Figure:
    blocks: dict[str, list[str]] = {}
    for heading, system in data:
        blocks.setdefault(heading, []).append(system)
    heights = {heading: math.ceil(len(systems) / COLUMNS) for heading, systems in blocks.items()}
    n_rows = sum(heights.values())
    figure = Figure(figsize=(8.6, 1.9 * n_rows), layout="constrained")
    rows = iter(figure.subplots(n_rows, COLUMNS, squeeze=False))
    for heading, systems in blocks.items():
        panels = [axes for _ in range(heights[heading]) for axes in next(rows)]
        for axes, system in zip(panels, systems, strict=False):
            for other in systems:
                if other != system:
                    draw(axes, data[heading, other], OTHERS, has_band=False)
            draw(axes, data[heading, system], styles.look(system), has_band=True)
            axes.set_title(textwrap.fill(styles.label(system), 26), fontsize=8)
            axes.set_xlabel(x_label, fontsize=8)
        for axes in panels[len(systems) :]:
            axes.remove()
        panels[0].set_ylabel(f"{heading}\n{y_label}", fontsize=8)
    return figure


def add_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend under all panels."""
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    # About this many characters fit below the panels; each entry takes 8 more for its line and margins.
    room = int(LEGEND_CHARACTERS_PER_INCH * figure.get_figwidth())
    columns = max(1, min(len(entries), room // (max(map(len, entries), default=0) + 8)))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def finish_picture(figure: Figure, key: str, title: str, caption: str) -> Picture:
    """The figure as SVG and PNG; the same figure gives the same bytes."""
    svg, png = io.StringIO(), io.BytesIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    figure.savefig(png, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    # The key becomes a file name and an id, and dataset names are the user's.
    return Picture(re.sub(r"[^A-Za-z0-9_-]", "_", key), title, caption, svg.getvalue(), png.getvalue())


def read_tree_pictures(paths: Mapping[str, Path]) -> list[Picture]:
    """Pictures drawn by `docmt discourse draw`, by name.

    Raises UserError when a file is not such a picture: the page includes it unchanged.
    """
    pictures = []
    for name, path in paths.items():
        svg = read_text(path)
        if problem := _find_foreign_svg(svg):
            raise UserError(f"{path}: not a picture of `docmt discourse draw` ({problem})")
        pictures.append(
            Picture(
                key="tree_" + re.sub(r"[^A-Za-z0-9]+", "_", name),
                title=f"A tree of {name}",
                caption="The first document. EDUs run from top to bottom; sentences are bands.",
                svg=svg,
                png=None,
                is_long=True,
            )
        )
    return pictures


def _find_foreign_svg(svg: str) -> str | None:
    """What makes an SVG unsafe to include in a page: only the plain elements of our pictures of trees are allowed."""
    # Entities are refused before parsing, because the parser would expand them.
    if "<!" in svg:
        return "it has a document type, an entity or a comment"
    try:
        elements = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError as error:
        return str(error)
    names = [element.tag.removeprefix("{http://www.w3.org/2000/svg}") for element in elements]
    if names[0] != "svg":
        return "it is not SVG"
    foreign = [name for name in names if name not in SVG_ELEMENTS]
    foreign += [name for element in elements for name in element.attrib if name.lower().startswith("on")]
    return f"it has {foreign[0]!r}" if foreign else None
