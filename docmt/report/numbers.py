"""Numbers as text: the sign is a minus (U+2212), and what rounds to zero has no minus."""

from collections.abc import Sequence

from docmt.report.dataframes import is_missing

MISSING = "–"


def format_number(value: float, *, digits: int, sign: str = "", separator: str = "") -> str:
    """Return a number with a fixed number of digits. With the sign `+`, positive numbers and zero have a plus."""
    return f"{value:{sign}z{separator}.{digits}f}".replace("-", "−")


def format_score(value: float | None, deviation: float | None = None, *, digits: int = 2) -> str:
    """Return `23.45`, `23.45 ± 0.12` with a deviation, or a dash for a missing value."""
    if value is None or is_missing(value):
        return MISSING
    text = format_number(value, digits=digits)
    if deviation is not None and not is_missing(deviation):
        text += f" ± {format_number(deviation, digits=digits)}"
    return text


def format_count(value: float | None) -> str:
    """Return a whole number with separators, another number with one digit, or a dash for a missing value."""
    if value is None or is_missing(value):
        return MISSING
    number = float(value)
    digits = 1
    if number.is_integer():
        digits = 0
    return format_number(number, digits=digits, separator=",")


def format_p(p: float, *, levels: Sequence[float]) -> str:
    """Return `p = 0.04` or `p < 0.001`, with as many digits as it takes to show on which side of a level p is."""
    if p < 0.001:
        return "p < 0.001"
    digits = 2 if p >= 0.01 else 3
    while any((round(p, digits) < level) != (p < level) for level in levels):
        digits += 1
    return f"p = {p:.{digits}f}"
