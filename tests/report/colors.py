"""Color contrast for tests of pictures and pages."""

import re

import numpy as np

XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear(color):
    """Linear RGB for an sRGB color, `#rrggbb` or `rgb(r, g, b)`."""
    parts = re.findall(r"\d+", color) if color.startswith("rgb") else [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    values = np.array(parts[:3], dtype=float) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(color):
    """Luminance of an sRGB color by WCAG 2.1, 0 to 1."""
    return float(np.dot(XYZ[1], linear(color)))


def contrast(one, other):
    """Contrast between two colors by WCAG 2.1, 1 to 21."""
    low, high = sorted(luminance(color) + 0.05 for color in (one, other))
    return high / low
