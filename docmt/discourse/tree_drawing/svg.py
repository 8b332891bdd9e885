"""The SVG elements of the pictures. Lengths are in pixels; y grows downwards."""

import re
import unicodedata
from collections.abc import Sequence

FONT = "Helvetica, Arial, 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
COLORS = ("#1f3a5f", "#b3541e", "#2b7a4b", "#7a4a9c", "#a8324a", "#1c7c8c", "#7d6a14")
"""One per step from the root, repeated cyclically; dark enough for text on white."""
NARROW, WIDE = "fijlrtI.,;:'|!()[]-` ", "mwMW@%—"
XML_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Escape text for XML content or attributes; characters that XML forbids become U+FFFD."""
    text = XML_FORBIDDEN.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in a common sans-serif font of `size` pixels."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if is_wide(character):
        return 1.0
    if character in NARROW:
        return 0.31
    if character in WIDE:
        return 0.87
    return 0.68 if character.isupper() else 0.55


def is_wide(character: str) -> bool:
    """Tell whether a character is full-width, as Chinese characters are."""
    return unicodedata.east_asian_width(character) in "WF"


def text(x: float, y: float, content: str, *, size: float, color: str = "#222", extra: str = "") -> str:
    """Make a line of text whose baseline starts at (x, y); `extra` holds further attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}"{_more(extra)}>{escape(content)}</text>'


def edged_text(x: float, y: float, content: str, *, size: float, color: str) -> list[str]:
    """Make a line of text with a white outline, which keeps it readable on lines.

    These are two elements, because not every SVG viewer supports `paint-order`.
    """
    edge = 'stroke="#ffffff" stroke-width="3" stroke-linejoin="round"'
    return [text(x, y, content, size=size, color="#ffffff", extra=edge), text(x, y, content, size=size, color=color)]


def line(points: Sequence[tuple[float, float]], color: str, *, width: float, extra: str = "") -> str:
    """Make a line through points, with rounded corners where it makes a right angle."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start, end = _towards(corner, before), _towards(corner, after)
        parts.append(f"L{start[0]:.1f} {start[1]:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {end[0]:.1f} {end[1]:.1f}")
    parts.append(f"L{points[-1][0]:.1f} {points[-1][1]:.1f}")
    return f'<path d="{"".join(parts)}" fill="none" stroke="{color}" stroke-width="{width:g}"{_more(extra)}/>'


def _towards(corner: tuple[float, float], other: tuple[float, float], radius: float = 4.0) -> tuple[float, float]:
    """Find the point `radius` away from a corner towards another point, or halfway there if that is nearer."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy)
    share = min(radius / length, 0.5) if length else 0.0
    return corner[0] + share * dx, corner[1] + share * dy


def arrow_head(x: float, y: float, color: str) -> str:
    """Make an arrow head that points right and ends at (x, y)."""
    return f'<path d="M{x - 6:.1f} {y - 3:.1f}L{x:.1f} {y:.1f}L{x - 6:.1f} {y + 3:.1f}Z" fill="{color}"/>'


def dot(x: float, y: float, radius: float, color: str) -> str:
    """Make a filled circle."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{color}"/>'


def rectangle(x: float, y: float, width: float, height: float, color: str) -> str:
    """Make a filled rectangle without outline."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'


def _more(extra: str) -> str:
    return f" {extra}" if extra else ""
