"""Independent analysis of documents with nested segments, from English text and a gender dictionary."""

import re
from dataclasses import dataclass, field

OPENS = {"By the way": 0, "For example": 1, "Theoretically": 2, "At first sight": 3}
CLOSES = {"Anyway": 0, "Generally": 1, "Practically": 2, "Actually": 3}
SECTIONS = ("First", "Then", "Moreover", "Furthermore")
GENDERS = {
    **dict.fromkeys(["cake", "cheese", "printer", "toaster", "bus", "train", "tree", "bush"], "m"),
    **dict.fromkeys(["soup", "tart", "pump", "camera", "ferry", "tram", "rose", "tulip"], "f"),
    **dict.fromkeys(["steak", "omelette", "radio", "microscope", "boat", "taxi", "violet", "herb"], "n"),
}
PRONOUNS = {"er": "m", "ihn": "m", "sie": "f", "es": "n"}


@dataclass
class Reading:
    """A document's structure, as a reader can derive it.

    Attributes:
        topics: genders of all segments. `parents`: enclosing segments, −1 for a section.
        openers: sentences that open the segments.
        mentions: per sentence the segment whose topic it mentions, by name or as `it`. None without mention.
        section_of_last: segment of the last section.
    """

    topics: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    openers: list[int] = field(default_factory=list)
    mentions: list[int | None] = field(default_factory=list)
    sections: list[int] = field(default_factory=list)


def starts(text: str, markers) -> str | None:
    return next((marker for marker in markers if text.startswith(f"{marker} ")), None)


def read(src: list[str]) -> Reading:
    """Follow the segments. Fails if their markers are not nested."""
    reading = Reading()
    stack: list[tuple[int, int | None]] = []
    for index, text in enumerate(src):
        noun = next((word for word in re.findall(r"\w+", text) if word in GENDERS), None)
        section, opens, closes = starts(text, SECTIONS), starts(text, OPENS), starts(text, CLOSES)
        if closes:
            assert stack.pop()[1] == CLOSES[closes], text
        if section:
            assert len(stack) < 2, text
            stack = []
        if section or opens:
            reading.parents.append(-1 if section else stack[-1][0])
            reading.topics.append(GENDERS[noun])
            reading.openers.append(index)
            stack.append((len(reading.topics) - 1, None if section else OPENS[opens]))
            reading.sections += [stack[-1][0]] if section else []
        is_mention = section or opens or re.search(r"\b[Ii]t\b", text)
        reading.mentions.append(stack[-1][0] if is_mention else None)
    return reading


def gender_of(text: str) -> str:
    """Gender of the only pronoun in a German sentence."""
    return next(PRONOUNS[word.lower()] for word in re.findall(r"\w+", text) if word.lower() in PRONOUNS)
