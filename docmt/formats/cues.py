"""The cues of subtitle files: when they are shown, and where their text is."""

import re
from dataclasses import dataclass

from docmt.errors import UserError

TIME = r"(?:\d+:)?\d{1,2}:\d{2}[,.]\d{1,3}"
TIMES = re.compile(rf"[ \t]*({TIME})[ \t]*-->[ \t]*({TIME})[^\n]*(?:\n|$)")
LINE = re.compile(r"[^\n]*(?:\n|$)")


@dataclass(frozen=True)
class Cue:
    """A cue: when it is shown, in seconds, and where its text is, without the last line end."""

    begin: float
    end: float
    place: tuple[int, int]


def read_cues(text: str, *, where: str) -> list[Cue]:
    """The cues of a file, in its order. Raises UserError when there are none."""
    cues = []
    for found in TIMES.finditer(text):
        if found.start() and text[found.start() - 1] != "\n":
            continue
        start = stop = found.end()
        while (line := LINE.match(text, stop)) and line[0].strip():
            stop = line.end()
        content = text[start:stop].rstrip("\r\n")
        cues.append(Cue(_seconds(found[1]), _seconds(found[2]), (start, start + len(content))))
    if not cues and text.strip("\ufeff \t\r\n").removeprefix("WEBVTT"):
        raise UserError(f"{where}: has no cues (lines such as 00:00:01,000 --> 00:00:02,500)")
    return cues


def _seconds(time: str) -> float:
    total = 0.0
    for part in time.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total
