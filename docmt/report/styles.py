"""Figure and page style: a color, a mark and dashes per system, and related hues in a system family."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from docmt.report.settings import ReportSettings

INK = "#1b1f24"
# Found by a search over colors of five hues (blue, orange, green, magenta, gray) that contrast with the page (3 by
# WCAG), for a large smallest CIEDE2000 distance between two: at least 19, and 14.5 as seen with deuteranopia and
# protanopia (Machado et al. 2009); tests/report/test_styles.py measures both. The first five are one shade of each hue,
# the others the second. Each color of light pages and of files has a counterpart of its hue on dark pages.
DARK_COLORS = {
    "#3797ec": "#17a9e3",
    "#f15300": "#a76313",
    "#38a25e": "#17f92c",
    "#983975": "#b82093",
    "#929292": "#a6a6a6",
    "#1c4eef": "#0463fe",
    "#7a4303": "#fcd4b4",
    "#0d382d": "#239d6a",
    "#420c51": "#fccfea",
    "#605f4d": "#6a6765",
}
COLORS = tuple(DARK_COLORS)
N_HUES = 5
DASHES = ("-", "--", ":", "-.")
# matplotlib's marks with similar text signs. Marks and dashes together distinguish systems without colors.
MARKERS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "X": "✖"}
HATCHES = ("", "//", "..", "xx")

LineStyle = dict[str, Any]  # arguments for matplotlib's `Axes.plot`
# Other systems in a panel for one system
OTHERS: LineStyle = {"color": INK, "linestyle": "-", "linewidth": 0.6, "alpha": 0.3}
CHANCE: LineStyle = {"color": INK, "linestyle": (0, (4, 3)), "linewidth": 1}
BARS: LineStyle = {"elinewidth": 0.8, "capsize": 1.5}  # intervals

# matplotlib settings
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # names can contain dollars
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
# Changes for files in a paper, where letters keep their size
PAPER_STYLE: dict[Any, Any] = {
    "font.size": 7.5,
    "axes.titlesize": 8,
    "lines.linewidth": 1.1,
    "legend.handlelength": 2.4,
    "pdf.fonttype": 42,  # conferences refuse the default, Type 3
}


def in_both_schemes(color: str) -> str:
    """Return one of `COLORS` as CSS, with its counterpart for dark pages."""
    return f"light-dark({color}, {DARK_COLORS[color]})"


def family_of(system: str) -> str:
    """Return a name's first word, for example `rst` for `rst_mix` and `RST-Transformer`."""
    return next(iter(re.findall(r"[^\W_]+", system.lower())), system)


class Styles:
    """Color, dashes and mark by name, the same in every figure.

    The first two systems in a family have the shades of one hue, if they are free. Other systems have any free color.
    Only if no color is left, a color repeats, with another mark.
    """

    def __init__(self, systems: Sequence[str], settings: ReportSettings) -> None:
        self._settings = settings
        self._numbers: dict[str, int] = {}  # by label
        self._members: dict[str, int] = {}  # position in the family by label
        families: dict[str, list[str]] = {}
        for system in systems:
            label = settings.label(system)
            if label not in self._numbers:
                members = families.setdefault(family_of(system), [])
                self._numbers[label] = len(self._numbers)
                self._members[label] = len(members)
                members.append(label)
        self._colors: dict[str, str] = {}
        for number, labels in enumerate(families.values()):
            first_shade = number // N_HUES % 2
            for label, shade in zip(labels, (first_shade, 1 - first_shade), strict=False):
                color = COLORS[number % N_HUES + N_HUES * shade]
                if color not in self._colors.values():
                    self._colors[label] = color
        others = [label for label in self._numbers if label not in self._colors]
        free = [color for color in COLORS if color not in self._colors.values()]
        self._colors |= zip(others, itertools.chain(free, itertools.cycle(COLORS)), strict=False)

    def label(self, system: str) -> str:
        """Return the name in the legend."""
        # matplotlib leaves names that begin with `_` out of legends.
        label = self._settings.label(system)
        if label.startswith("_"):
            return f" {label}"
        return label

    def color(self, system: str) -> str:
        """Return the color for lines, bars and bands."""
        return self._colors[self._settings.label(system)]

    def line(self, system: str) -> LineStyle:
        """Return color and dashes."""
        return {"color": self.color(system), "linestyle": DASHES[self._number(system) // len(MARKERS) % len(DASHES)]}

    def marker(self, system: str) -> str:
        """Return the mark at measurements."""
        return list(MARKERS)[self._number(system) % len(MARKERS)]

    def marked_line(self, system: str) -> LineStyle:
        """Return the style for a line with marks and its name in the legend."""
        return {**self.line(system), "marker": self.marker(system), "markersize": 4, "label": self.label(system)}

    def bar(self, system: str) -> LineStyle:
        """Return the style for a bar with its name in the legend. The pattern shows the position in the family."""
        member = self._members[self._settings.label(system)]
        hatch = HATCHES[(member + self._number(system) // len(COLORS)) % len(HATCHES)]
        return {"color": self.color(system), "hatch": hatch, "label": self.label(system)}

    def sign(self, system: str) -> str:
        """Return the mark in text."""
        return MARKERS[self.marker(system)]

    def _number(self, system: str) -> int:
        return self._numbers[self._settings.label(system)]
