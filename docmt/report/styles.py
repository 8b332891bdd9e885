"""How systems look in every picture and page: a color, a mark and dashes for each."""

from collections.abc import Sequence
from typing import Any

from docmt.report.settings import ReportSettings

# Found by searches over colors that contrast with the page (3 by WCAG) for a large smallest CIEDE2000 distance between
# two: at least 20, and 15 as seen with deuteranopia and protanopia (Machado et al. 2009); tests/report/test_styles.py
# measures both. Each color of light pages and of files has a counterpart, mostly of a similar hue, on dark pages.
DARK_COLORS = {
    "#0f69af": "#9ae0fc",
    "#e87300": "#eeee00",
    "#5f044f": "#a8388c",
    "#127576": "#8cfce0",
    "#7c85ff": "#9a9afc",
    "#4e6500": "#62a800",
    "#cc5556": "#eeb68c",
    "#0000b9": "#5454fc",
    "#a18aad": "#a89aa8",
    "#5e4444": "#706262",
    "#95938c": "#8c8c70",
    "#3e2f00": "#7e620e",
}
COLORS = tuple(DARK_COLORS)
DASHES = ("-", "--", ":", "-.")
# Marks of matplotlib, each with a sign like it for text. Their number and that of the colors have no common factor, so
# that color and mark together repeat only after their product.
MARKERS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚", "X": "✖"}
HATCHES = ("", "//", "..", "xx")

Look = dict[str, Any]  # how matplotlib draws a line: arguments of `Axes.plot`


def in_both_schemes(color: str) -> str:
    """One of `COLORS` as CSS, with its counterpart for dark pages."""
    return f"light-dark({color}, {DARK_COLORS[color]})"


class Styles:
    """One color, dash and mark for each name in the legends, the same in every picture."""

    def __init__(self, systems: Sequence[str], settings: ReportSettings) -> None:
        labels = dict.fromkeys(settings.label(system) for system in systems)
        self._places = {label: i for i, label in enumerate(labels)}
        self._settings = settings

    def label(self, system: str) -> str:
        """The name in the legend."""
        # matplotlib leaves names that begin with `_` out of legends.
        label = self._settings.label(system)
        return f" {label}" if label.startswith("_") else label

    def color(self, system: str) -> str:
        """The color of lines, bars and bands."""
        return COLORS[self._place(system) % len(COLORS)]

    def line(self, system: str) -> Look:
        """Color and dashes."""
        return {"color": self.color(system), "linestyle": DASHES[self._round(system) % len(DASHES)]}

    def marker(self, system: str) -> str:
        """The mark at measurements."""
        return list(MARKERS)[self._place(system) % len(MARKERS)]

    def look(self, system: str) -> Look:
        """A line with its marks and its name in the legend."""
        return {**self.line(system), "marker": self.marker(system), "markersize": 4, "label": self.label(system)}

    def hatch(self, system: str) -> str:
        """The pattern that fills bars whose color another system has, too."""
        return HATCHES[self._round(system) % len(HATCHES)]

    def sign(self, system: str) -> str:
        """The mark in text."""
        return MARKERS[self.marker(system)]

    def _place(self, system: str) -> int:
        return self._places[self._settings.label(system)]

    def _round(self, system: str) -> int:
        return self._place(system) // len(COLORS)
