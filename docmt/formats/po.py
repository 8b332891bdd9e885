"""PO catalogs: untranslated and fuzzy messages are filled and marked as fuzzy, translated ones are context."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import polib

from docmt.errors import UserError
from docmt.formats.files import Edit, TextFile
from docmt.formats.segments import FileSegment, plain_segment

LINE = re.compile(r"[^\n]*\n|[^\n]+$")
KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*(\".*\")$")
STRING = re.compile(r"\".*\"$")
PAGE = re.compile(r"#:\s*\u2068?(\S+?)(?::\d+)?\u2069?(?:\s|$)")
N_FORMS = re.compile(r"nplurals\s*=\s*(\d+)")


@dataclass
class _Message:
    """A message.

    Attributes:
        page: the file of its first reference.
        flags: where the line of its flags starts.
        is_fuzzy: whether it has the flag `fuzzy`.
        strings: by keyword.
        places: where the strings are that are translations.
        first: where its first keyword is.
    """

    page: str = ""
    flags: int | None = None
    is_fuzzy: bool = False
    strings: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    first: int = -1

    @property
    def is_open(self) -> bool:
        """Whether a translation is missing or fuzzy."""
        return self.is_fuzzy or not all(self.strings[key] for key in self.places)

    def comment(self, line: str, start: int) -> None:
        """Take in a comment before the message."""
        if line.startswith("#,"):
            self.flags = start if self.flags is None else self.flags
            self.is_fuzzy |= "fuzzy" in re.split(r"[,\s]+", line)
        elif (found := PAGE.match(line)) and not self.page:
            self.page = found[1]


class PoFile(TextFile):
    """A PO file: the messages of a page (the file of the first `#:` reference) are a document."""

    name = "po"
    suffixes = (".po", ".pot")

    def find(self) -> list[list[FileSegment]]:
        """A segment for each message, two for one with a plural."""
        messages = list(_messages(self.text, self.where))
        header = next((m for m in messages if not m.strings["msgid"] and "msgctxt" not in m.strings), _Message())
        counted = N_FORMS.search(header.strings.get("msgstr", ""))
        self._n_forms = int(counted[1]) if counted else 0
        self._open: list[tuple[_Message, dict[str, FileSegment]]] = []
        pages: dict[str, list[FileSegment]] = defaultdict(list)
        for message in messages:
            texts = {key: text for key, text in message.strings.items() if key in ("msgid", "msgid_plural") and text}
            segments = {key: plain_segment(text, is_wanted=message.is_open) for key, text in texts.items()}
            pages[message.page] += segments.values()
            if segments and message.is_open:
                self._open.append((message, segments))
        return list(pages.values())

    def edits(self) -> Iterable[Edit]:
        """Translations of all forms of a message, or none, and the flag `fuzzy`."""
        end = "\r\n" if "\r\n" in self.text else "\n"
        for message, segments in self._open:
            new = {key: self.render(s, s.filled) for key, s in segments.items() if s.filled is not None}
            if len(new) < len(segments):
                continue
            if not message.is_fuzzy and message.flags is not None:
                place = message.flags + len("#,")
                yield place, place, " fuzzy,"
            elif not message.is_fuzzy:
                yield message.first, message.first, f"#, fuzzy{end}"
            start, stop = min(message.places.values())[0], max(message.places.values())[1]
            yield start, stop, "".join(_written(key, text, end) for key, text in self._forms(message, new))

    def _forms(self, message: _Message, new: dict[str, str]) -> Iterator[tuple[str, str]]:
        """What follows each keyword: the first of several plural forms is the singular."""
        if "msgid_plural" not in new:
            yield "msgstr", new["msgid"]
            return
        n_forms = self._n_forms or len(message.places)
        for number in range(n_forms):
            yield f"msgstr[{number}]", new["msgid_plural" if number or n_forms == 1 else "msgid"]


def _messages(text: str, where: str) -> Iterator[_Message]:
    """The messages of a PO file, except obsolete ones. Raises UserError at a line that does not belong there."""
    message, key, position = _Message(), "", 0
    for number, found in enumerate(LINE.finditer(text), start=1):
        start = found.start() + (position == 0 and text.startswith("\ufeff"))
        position = found.end()
        line = text[start:position].strip()
        keyword = KEYWORD.match(line)
        begins = not STRING.match(line) and not (keyword and key and not key.startswith("msgstr"))
        if begins and key.startswith("msgstr") and not (keyword and keyword[1].startswith("msgstr")):
            yield message
            message, key = _Message(), ""
        if not line or line.startswith("#~"):
            message = message if key else _Message()
        elif line.startswith("#"):
            message.comment(line, start)
        elif keyword and keyword[1] in message.strings:
            raise UserError(f"{where}: line {number} has a second {keyword[1]} of one message: msgstr is missing")
        elif keyword or (key and STRING.match(line)):
            key = _take(message, keyword[1] if keyword else key, keyword[2] if keyword else line, start, position)
        else:
            raise UserError(f"{where}: line {number} is not part of a PO message: {line[:40]!r}")
    if key and not message.places:
        raise UserError(f"{where}: the last message has no msgstr")
    if key:
        yield message


def _take(message: _Message, key: str, string: str, start: int, end: int) -> str:
    """Add a string, or another line of it, to a message; returns its keyword."""
    message.first = start if message.first < 0 else message.first
    message.strings[key] = message.strings.get(key, "") + polib.unescape(string[1:-1])
    if key.startswith("msgstr"):
        message.places[key] = message.places.get(key, (start, end))[0], end
    return key


def _written(key: str, text: str, end: str) -> str:
    """A string as PO files write it: one of several lines begins with an empty one."""
    lines = LINE.findall(text) or [""]
    strings = [f'"{polib.escape(line)}"' for line in (["", *lines] if len(lines) > 1 else lines)]
    return f"{key} {end.join(strings)}{end}"
