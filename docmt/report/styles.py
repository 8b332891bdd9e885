"""Figure and page style: a hue per system family, a mark and dashes per system."""

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


def in_both_schemes(color: str) -> str:
    """Return one of `COLORS` as CSS, with its counterpart for dark pages."""
    return f"light-dark({color}, {DARK_COLORS[color]})"


def family_of(system: str) -> str:
    """Return a name's first word, for example `rst` for `rst_mix` and `RST-Transformer`."""
    return next(iter(re.findall(r"[^\W_]+", system.lower())), system)


class Styles:
    """Color, dashes and mark by name, the same in every figure.

    Systems in a family share a hue. Its two shades alternate, and marks distinguish more than two members.
    """

    def __init__(self, systems: Sequence[str], settings: ReportSettings) -> None:
        self._settings = settings
        self._places: dict[str, tuple[int, int, int]] = {}  # label → (position, family number, position in the family)
        families: dict[str, int] = {}
        for system in systems:
            family, label = family_of(system), settings.label(system)
            if label not in self._places:
                number = list({**families, family: 0}).index(family)
                self._places[label] = (len(self._places), number, families.get(family, 0))
                families[family] = families.get(family, 0) + 1

    def label(self, system: str) -> str:
        """Return the name in the legend."""
        # matplotlib leaves names that begin with `_` out of legends.
        label = self._settings.label(system)
        return f" {label}" if label.startswith("_") else label

    def color(self, system: str) -> str:
        """Return the color for lines, bars and bands."""
        _, family, member = self._place(system)
        shade = (member + family // N_HUES) % 2
        return COLORS[family % N_HUES + N_HUES * shade]

    def line(self, system: str) -> LineStyle:
        """Return color and dashes."""
        number, _, _ = self._place(system)
        return {"color": self.color(system), "linestyle": DASHES[number // len(MARKERS) % len(DASHES)]}

    def marker(self, system: str) -> str:
        """Return the mark at measurements."""
        return list(MARKERS)[self._place(system)[0] % len(MARKERS)]

    def marked_line(self, system: str) -> LineStyle:
        """Return the style for a line with marks and its name in the legend."""
        return {**self.line(system), "marker": self.marker(system), "markersize": 4, "label": self.label(system)}

    def bar(self, system: str) -> LineStyle:
        """Return the style for a bar with its name in the legend. The pattern shows the position in the family."""
        _, family, member = self._place(system)
        hatch = HATCHES[(member + family // len(COLORS)) % len(HATCHES)]
        return {"color": self.color(system), "hatch": hatch, "label": self.label(system)}

    def sign(self, system: str) -> str:
        """Return the mark in text."""
        return MARKERS[self.marker(system)]

    def _place(self, system: str) -> tuple[int, int, int]:
        return self._places[self._settings.label(system)]
